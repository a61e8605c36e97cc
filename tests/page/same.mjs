// SPDX-License-Identifier: MIT
// Both builds, the same calls: images and tables are the same bytes, for every kind.
//     node same.mjs TAMIZ.wasm PAGE_NATIVE
import { createHash } from "node:crypto";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Engine } from "../../tools/page/src/engine.js";

const [wasm, native] = process.argv.slice(2);
const policies = ["none", "bloom:10", "blocked:10", "split:10", "ribbon:7", "ribbon:fpr=0.01", "bumped:7", "fuse:6", "fuse8", "fuse16", "fuse4", "xor8",
    "xor16", "cuckoo:9.5", "counting:40", "scalable:fpr=0.02"];

const syllables = ["ta", "miz", "fil", "tro", "bu", "ka", "le", "so", "ra", "ni"];
const words = Array.from({ length: 20000 }, (_, i) => {
    let word = "";
    for (let left = (i * 7919) % 1000003; left > 0; left = Math.floor(left / 10)) word += syllables[left % 10];
    return word;
});
const text = words.join("\n");
const sha = (bytes) => createHash("sha256").update(bytes).digest("hex");
let failed = 0;
const check = (name, ok, words) => {
    if (!ok) failed++;
    console.log(`${ok ? "same" : "DIFFERENT"}  ${name}  ${words}`);
};

const e = await Engine.load(readFileSync(wasm));
const directory = mkdtempSync(join(tmpdir(), "page-same-"));
try {
    execFileSync(native, [directory, ...policies], { input: text, stdio: ["pipe", "inherit", "inherit"] });
    const native_files = new Set(readdirSync(directory));
    const hashes = e.hashes(words);
    const compare = (name, bytes) => {
        const there = native_files.delete(name);
        const other = there ? sha(readFileSync(join(directory, name))) : "not there";
        check(name, other === sha(bytes), `${bytes.length} bytes ${sha(bytes).slice(0, 16)} ${other.slice(0, 16)}`);
    };
    for (const policy of policies) {
        if (policy !== "none") {
            const filter = e.build(policy, hashes);
            compare(`${policy}-image`, filter.image());
            filter.free();
        }
        const store = e.store();
        store.open(`filter=${policy} memtable=1MiB table=256KiB block=4KiB`);
        store.fill(words, 1);
        store.flush();
        store.compact();
        const half = new TextDecoder().decode(new TextEncoder().encode(text).subarray(0, Math.floor(text.length / 2)));
        store.fill(half.split("\n"), 7);
        store.flush();
        for (const { name } of store.files()) if (name.endsWith(".sst")) compare(`${policy}-${name}`, store.read(name));
        store.free();
    }
    for (const left of native_files) check(left, false, "made by the native build alone");

    // The places that the page draws are the bits that a filter of one key has.
    let wrong = 0;
    for (let i = 0; i < 500; i++) {
        const bits = 64 * (1 + (i % 64)), k = 1 + (i % 12), hash = hashes.slice(8 * i, 8 * i + 8);
        const filter = e.bloom(bits, k);
        filter.add(hash);
        const drawn = new Uint8Array(bits / 8);
        for (const b of e.places(bits, k, hash)) drawn[b >> 3] |= 1 << (b & 7);
        if (Buffer.compare(Buffer.from(drawn), Buffer.from(filter.payload())) !== 0) wrong++;
        filter.free();
    }
    check("places of 500 keys", wrong === 0, `${wrong} wrong`);
} finally {
    rmSync(directory, { recursive: true });
}
console.log(failed ? `${failed} different` : "all the same");
process.exit(failed ? 1 : 0);
