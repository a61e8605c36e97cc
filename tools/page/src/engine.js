// SPDX-License-Identifier: MIT
// The engine behind plain JavaScript. One WebAssembly instance; texts and hashes are copied in, what comes out is copied out
// and freed. A call that fails throws an EngineError with the library's own words.

export class EngineError extends Error {
    constructor(status, words) {
        super(words);
        this.status = status;
    }
}

export const STATUS = { OK: 0, NOT_FOUND: 1, INVALID_ARGUMENT: -1, CORRUPTION: -4, NOT_SUPPORTED: -6, OUT_OF_MEMORY: -7 };

const encoder = new TextEncoder();
const decoder = new TextDecoder();

// wasi-libc wants these for stdio, which the engine never uses: nothing is ever written.
const BAD_FILE = 8;
const imports = { wasi_snapshot_preview1: { fd_close: () => BAD_FILE, fd_seek: () => BAD_FILE, fd_write: () => BAD_FILE } };

// Bytes that are no UTF-8 would not survive; keys typed in a page always are.
export const bytesOf = (text) => encoder.encode(text);

export class Engine {
    static async load(bytes) {
        const { instance } = await WebAssembly.instantiate(bytes, imports);
        return new Engine(instance.exports);
    }

    constructor(exports) {
        this.c = exports;
        this.scratch = exports.page_alloc(16);
    }

    get version() {
        return this.text(this.c.page_version());
    }

    // The memory may have grown since: views are made anew for each use.
    bytes(address, size) {
        return new Uint8Array(this.c.memory.buffer, address, size);
    }

    word(address) {
        return new DataView(this.c.memory.buffer).getUint32(address, true);
    }

    text(address) {
        const all = new Uint8Array(this.c.memory.buffer);
        return decoder.decode(all.subarray(address, all.indexOf(0, address)));
    }

    check(status) {
        if (status < 0) throw new EngineError(status, this.text(this.c.page_error()));
        return status;
    }

    room(size) {
        const address = this.c.page_alloc(Math.max(size, 1));
        if (!address) throw new EngineError(STATUS.OUT_OF_MEMORY, "out of memory");
        return address;
    }

    // Calls `use(address, size, …)` with each part (text or bytes, NUL behind it) in the engine's memory for as long as it runs.
    lend(parts, use) {
        const held = [];
        try {
            for (const part of parts) {
                const bytes = typeof part === "string" ? bytesOf(part) : part;
                const address = this.room(bytes.length + 1);
                held.push(address, bytes.length);
                const there = this.bytes(address, bytes.length + 1);
                there.set(bytes);
                there[bytes.length] = 0;
            }
            return use(...held);
        } finally {
            for (let i = 0; i < held.length; i += 2) this.c.page_free(held[i]);
        }
    }

    // What call(out) put into a struct page_bytes.
    taken(call) {
        const status = this.check(call(this.scratch));
        const data = this.word(this.scratch);
        const size = this.word(this.scratch + 4);
        const copy = data ? this.bytes(data, size).slice() : null;
        this.c.page_free(data);
        return status === STATUS.OK ? copy : null;
    }

    json(call) {
        return JSON.parse(decoder.decode(this.taken(call)));
    }

    // ---- hashes: Uint8Array of 8 bytes each ----

    hashes(words) {
        return this.lend([words.join("\n")], (text, size) => {
            const at = this.room(words.length * 8);
            const n = this.c.page_hash_lines(text, size, at, words.length);
            const copy = this.bytes(at, Math.min(n, words.length) * 8).slice();
            this.c.page_free(at);
            return copy;
        });
    }

    probes(seed, n) {
        const at = this.room(n * 8);
        this.c.page_hash_probes(seed, at, n);
        const copy = this.bytes(at, n * 8).slice();
        this.c.page_free(at);
        return copy;
    }

    // k places for each hash, one hash behind the other.
    places(bits, k, hashes) {
        const n = hashes.length / 8;
        return this.lend([hashes], (address) => {
            const at = this.room(n * k * 4);
            this.c.page_bloom_places(bits, k, address, n, at);
            const copy = new Uint32Array(this.c.memory.buffer.slice(at, at + n * k * 4));
            this.c.page_free(at);
            return copy;
        });
    }

    bestBits(n, p) {
        return this.c.page_bloom_bits(n, p);
    }

    bestHashes(bits, n) {
        return this.c.page_bloom_hashes(bits, n);
    }

    bloomRate(bits, k, n) {
        return this.c.page_bloom_rate(bits, k, n);
    }

    filter(make) {
        this.check(make(this.scratch));
        return new Filter(this, this.word(this.scratch));
    }

    build(policy, hashes) {
        return this.lend([policy, hashes], (text, _, at, size) => this.filter((out) => this.c.page_filter_build(text, at, size / 8, out)));
    }

    empty(policy, capacity) {
        return this.lend([policy], (text) => this.filter((out) => this.c.page_filter_new(text, capacity, out)));
    }

    bloom(bits, k, counting = false) {
        return this.filter((out) => this.c.page_filter_bloom(bits, k, counting ? 1 : 0, out));
    }

    openImage(image) {
        return this.lend([image], (at, size) => this.filter((out) => this.c.page_filter_open(at, size, out)));
    }

    store() {
        const at = this.c.page_store_new();
        if (!at) throw new EngineError(STATUS.OUT_OF_MEMORY, "out of memory");
        return new Store(this, at);
    }
}

export class Filter {
    constructor(engine, at) {
        this.engine = engine;
        this.at = at;
    }

    add(hashes) {
        const e = this.engine;
        return e.lend([hashes], (at, size) => e.check(e.c.page_filter_add(this.at, at, size / 8)));
    }

    // false: surely was not in it.
    remove(hash) {
        const e = this.engine;
        return e.lend([hash], (at) => e.check(e.c.page_filter_remove(this.at, at)) === STATUS.OK);
    }

    // One byte for each hash: 1 maybe, 0 certainly not.
    ask(hashes) {
        const e = this.engine;
        const n = hashes.length / 8;
        return e.lend([hashes, new Uint8Array(n)], (at, _, out) => {
            e.c.page_filter_ask(this.at, at, n, out);
            return e.bytes(out, n).slice();
        });
    }

    image() {
        return this.engine.taken((out) => this.engine.c.page_filter_image(this.at, out));
    }

    // The bits alone: what follows the header of 64 bytes.
    payload() {
        return this.image().subarray(64);
    }

    info() {
        return this.engine.json((out) => this.engine.c.page_filter_info(this.at, out));
    }

    free() {
        this.engine.c.page_filter_free(this.at);
        this.at = 0;
    }
}

export class Store {
    constructor(engine, at) {
        this.engine = engine;
        this.at = at;
    }

    call(name, ...parts) {
        const e = this.engine;
        return e.lend(parts, (...held) => e.check(e.c[name](this.at, ...held)));
    }

    open(options) {
        const e = this.engine;
        return e.lend([options], (at) => e.check(e.c.page_store_open(this.at, at)));
    }

    file(name, bytes) {
        const e = this.engine;
        return e.lend([name, bytes], (n, _, at, size) => e.check(e.c.page_store_file(this.at, n, at, size)));
    }

    adopt() {
        return this.call("page_store_adopt");
    }

    put(key, value) {
        return this.call("page_store_put", key, value);
    }

    delete(key) {
        return this.call("page_store_delete", key);
    }

    fill(words, first = 1) {
        const e = this.engine;
        return e.lend([words.join("\n")], (at, size) => e.check(e.c.page_store_fill(this.at, at, size, first)));
    }

    // null: absent.
    get(key, filters = true) {
        const e = this.engine;
        const value = e.lend([key], (at, size) => e.taken((out) => e.c.page_store_get(this.at, at, size, filters ? 1 : 0, out)));
        return value && decoder.decode(value);
    }

    explain(key, filters = true) {
        const e = this.engine;
        return e.lend([key], (at, size) => e.json((out) => e.c.page_store_explain(this.at, at, size, filters ? 1 : 0, out)));
    }

    // How many of the words are there.
    ask(words, filters = true) {
        const e = this.engine;
        return e.lend([words.join("\n")], (at, size) => {
            e.check(e.c.page_store_ask(this.at, at, size, filters ? 1 : 0, e.scratch));
            return e.word(e.scratch);
        });
    }

    flush() {
        return this.call("page_store_flush");
    }

    compact() {
        return this.call("page_store_compact");
    }

    // One piece of background work; true: there is more.
    step() {
        const e = this.engine;
        e.check(e.c.page_store_step(this.at, e.scratch));
        return e.word(e.scratch) !== 0;
    }

    verify() {
        return this.call("page_store_verify");
    }

    property(name) {
        const e = this.engine;
        return e.lend([name], (at) => decoder.decode(e.taken((out) => e.c.page_store_property(this.at, at, out))));
    }

    stats() {
        return JSON.parse(this.property("stats.json"));
    }

    tables() {
        return this.engine.json((out) => this.engine.c.page_store_tables(this.at, out));
    }

    files() {
        return this.engine.json((out) => this.engine.c.page_store_files(this.at, out));
    }

    read(name) {
        const e = this.engine;
        return e.lend([name], (at) => e.taken((out) => e.c.page_store_read(this.at, at, out)));
    }

    free() {
        this.engine.c.page_store_free(this.at);
        this.at = 0;
    }
}
