// SPDX-License-Identifier: MIT
// The Store view: the whole engine on a disk in memory. What was done to it is a journal, so that another filter or other bits
// can be tried on the same history: it is played again.
//
// Reads avoided are measured, not estimated: a twin with the same files answers the same questions without asking filters, and
// the difference of the two counts of device reads is what the filters saved.

import { download, tar } from "./archive.js";
import { calm } from "./bits.js";
import { button, field, fill, h, select, table } from "./dom.js";
import { EngineError, STATUS } from "./engine.js";
import { bytes, duration, number, percent, t } from "./language.js";
import { tell } from "./tale.js";
import { ABSENT, inventedWord, inventedWords, wordsOf } from "./words.js";

export const KINDS = ["bloom", "blocked", "split", "ribbon", "bumped", "fuse", "fuse4", "xor8", "cuckoo", "counting", "scalable", "none"];
const FIXED = { fuse4: true, xor8: true, none: true }; // no bits to choose
const MOST_FILE = 64 << 20, MOST_WORDS = 100000, PLAY_MS = 900, ASKED = 1000;
const DISKS = { nvme: 0.1, ssd: 0.5, hdd: 8 }; // milliseconds a read

export const policyOf = ({ kind, bits }) => (FIXED[kind] ? kind : kind === "counting" ? `${kind}:${bits * 4}` : `${kind}:${bits}`);
export const optionsOf = (state) =>
    `filter=${policyOf(state)} memtable=${state.memtable ?? "32KiB"} table=32KiB block=1KiB cache=0 level0_runs=${state.runs ?? 4} size_ratio=4 compaction=${state.shape} idle_merge=0 filter_memory=${state.memory ?? "uniform"}`;

// A store of the engine with its journal and its twin.
export class LabStore {
    constructor(engine, state) {
        this.engine = engine;
        this.journal = [];
        this.start(state);
    }

    start(state) {
        this.store?.free();
        this.drop();
        this.store = this.engine.store();
        this.filled = 0;
        this.imported = false;
        this.store.open(optionsOf(state));
    }

    drop() {
        this.twin?.free();
        this.twin = null;
    }

    // One thing done, and noted.
    act(name, ...args) {
        this.drop();
        this.perform(name, args);
        this.journal.push([name, args]);
    }

    perform(name, args) {
        if (name === "fill") {
            this.store.fill(args[0], this.filled + 1);
            this.filled += args[0].length;
        } else this.store[name](...args);
    }

    replay(state) {
        if (this.imported) {
            this.drop();
            return this.store.open(optionsOf(state));
        }
        this.start(state);
        for (const [name, args] of this.journal) this.perform(name, args);
    }

    // Files from outside: a whole store where CURRENT is among them, else tables that get a store around them.
    import(files, state) {
        const fresh = this.engine.store();
        try {
            for (const { name, bytes: content } of files) fresh.file(name, content);
            if (!files.some((f) => f.name === "CURRENT")) fresh.adopt();
            fresh.open(`${optionsOf(state)} create_if_missing=false`);
            fresh.verify();
        } catch (error) {
            fresh.free();
            throw error;
        }
        this.store.free();
        this.drop();
        this.store = fresh;
        this.journal = [];
        this.imported = true;
    }

    withoutFilters() {
        if (!this.twin) {
            this.twin = this.engine.store();
            for (const { name } of this.store.files()) this.twin.file(name, this.store.read(name));
            this.twin.open("read_only=true cache=0 filter=none");
        }
        return this.twin;
    }

    // The story of one get, and what the same get costs without filters.
    get(key, filters) {
        const story = this.store.explain(key, filters);
        const plain = this.withoutFilters().explain(key, false);
        return { story, reads: story.device_reads, avoided: plain.device_reads - story.device_reads, value: story.found ? this.withoutFilters().get(key, false) : null };
    }

    ask(words, filters) {
        const reads = (store, use) => {
            const before = store.stats().total.device_reads;
            const found = store.ask(words, use);
            return { found, reads: store.stats().total.device_reads - before };
        };
        const mine = reads(this.store, filters), plain = reads(this.withoutFilters(), false);
        return { found: mine.found, reads: mine.reads, avoided: plain.reads - mine.reads };
    }

    free() {
        this.drop();
        this.store.free();
    }
}

export class StoreView {
    constructor(app) {
        this.app = app;
        this.lab = null;
        this.made = 0;
        this.avoided = 0;
        this.filters = true;
        this.disk = "hdd";
        this.story = null;
        this.last = "";
        this.list = null;
    }

    get state() {
        return this.app.state.store;
    }

    open() {
        if (this.lab) return;
        try {
            this.lab = new LabStore(this.app.engine, this.state);
        } catch {
            Object.assign(this.state, { kind: "bloom", bits: 10 }); // the address said nonsense
            this.lab = new LabStore(this.app.engine, this.state);
        }
        if (this.state.fill) this.lab.act("fill", inventedWords(0, this.state.fill));
    }

    // Runs one action; what goes wrong is a sentence, and the page lives on.
    do(words, action) {
        try {
            const said = action();
            this.last = said ?? words;
        } catch (error) {
            this.last = this.explainError(error);
        }
        this.refresh();
    }

    explainError(error) {
        if (!(error instanceof EngineError)) return t(`That went wrong inside the page: ${error.message}`, `Algo falló dentro de la página: ${error.message}`);
        if (/packed with codec/.test(error.message))
            return t("This table’s blocks are packed with zstd, which this page is built without. Load it again with the tool and -o compression=none.", "Los bloques de esta tabla están comprimidos con zstd, que esta página no incluye. Cárgala de nuevo con la herramienta y -o compression=none.");
        if (error.status === STATUS.CORRUPTION) return t(`Damaged, and refused: ${error.message}`, `Dañado, y rechazado: ${error.message}`);
        return t(`The engine refused: ${error.message}`, `El motor lo rechazó: ${error.message}`);
    }

    mount(root) {
        this.open();
        this.notice = h("p", { class: "notice", role: "status", id: "store-notice" });
        this.levels = h("div", { class: "levels", id: "levels" });
        this.tale = h("div", { id: "tale" });
        this.counts = h("div", { id: "counts" });
        this.fileBox = h("div", { id: "files" });
        fill(root,
            h("h2", null, t("A store, read by read", "Un almacén, lectura a lectura")),
            h("p", { class: "lead" }, t(
                "Writes go to a memtable; full, it becomes a sorted table on the disk; compaction merges tables into deeper levels. Each table carries a filter in memory, so that a get can skip tables without reading them.",
                "Las escrituras van a una memtable; llena, se convierte en una tabla ordenada en el disco; la compactación funde tablas en niveles más hondos. Cada tabla lleva un filtro en memoria, para que una lectura pueda saltarse tablas sin leerlas.")),
            h("div", { class: "two" }, h("div", { class: "panel" }, this.writing()), h("div", { class: "panel" }, this.reading())),
            this.notice,
            h("section", { class: "panel" }, h("h3", null, t("Levels", "Niveles")), this.levels),
            h("section", { class: "panel" }, h("h3", null, t("Device reads", "Lecturas del disco")), this.counts),
            h("section", { class: "panel" }, h("h3", null, t("The story of the last get", "La historia de la última lectura")), this.tale),
            this.filesPanel());
        this.refresh();
        if (this.state.key && !this.story) this.get(this.state.key);
    }

    writing() {
        const s = this.state;
        const key = h("input", { type: "text", id: "put-key", spellcheck: "false", autocomplete: "off" });
        const value = h("input", { type: "text", id: "put-value", spellcheck: "false", autocomplete: "off" });
        const act = (words, name) => () => this.do(words, () => this.lab.act(name));
        this.bits_value = h("output", null, number(s.bits));
        this.bits_input = h("input", { type: "range", id: "store-bits", min: 2, max: 24, step: 1, value: s.bits, disabled: FIXED[s.kind] ?? false, oninput: (e) => this.change({ bits: Number(e.target.value) }) });
        return [
            h("div", { class: "row" }, field(t("Key", "Clave"), key), field(t("Value", "Valor"), value)),
            h("div", { class: "row" },
                button(t("Put", "Escribir"), () => this.do(t(`“${key.value}” was put.`, `«${key.value}» se ha escrito.`), () => this.lab.act("put", key.value, value.value)), { class: "main" }),
                button(t("Delete", "Borrar"), () => this.do(t(`“${key.value}” was deleted: a tombstone was written.`, `«${key.value}» se ha borrado: se escribió una lápida.`), () => this.lab.act("delete", key.value)))),
            h("div", { class: "row" },
                button(t("Fill 1,000 words", "Llenar con 1000 palabras"), () => this.fillWords(1000)),
                button(t("Fill 5,000 words", "Llenar con 5000 palabras"), () => this.fillWords(5000)),
                this.pick(t("Fill from a word list…", "Llenar con una lista…"), "text/plain,.txt", false, (files) => this.fillList(files))),
            h("div", { class: "row" },
                button(t("Flush", "Volcar"), act(t("The memtable became a table.", "La memtable se convirtió en una tabla."), "flush")),
                button(t("Compact all", "Compactar todo"), act(t("All tables were merged into one run.", "Todas las tablas se fundieron en una sola serie."), "compact")),
                button(t("One step", "Un paso"), () => this.step()),
                button(t("Start anew", "Empezar de nuevo"), () => this.anew())),
            h("div", { class: "row" },
                field(t("Filter", "Filtro"), select(KINDS.map((k) => [k, k === "none" ? t("none", "ninguno") : k]), s.kind, (kind) => this.change({ kind }))),
                h("div", { class: "field" }, h("label", { for: "store-bits" }, t("bits a key: ", "bits por clave: "), this.bits_value), this.bits_input),
                field(t("Shape", "Forma"), select([["leveled", t("leveled", "por niveles")], ["tiered", t("tiered", "por capas")], ["lazy", t("lazy", "perezosa")]], s.shape, (shape) => this.change({ shape })))),
        ];
    }

    reading() {
        const key = h("input", { type: "text", id: "get-key", spellcheck: "false", autocomplete: "off", value: this.state.key });
        key.addEventListener("keydown", (e) => e.key === "Enter" && this.get(key.value));
        this.get_key = key;
        this.play_button = button(this.playing ? t("Pause", "Pausa") : t("Play", "Reproducir"), () => this.play(), { "aria-pressed": this.playing ? "true" : "false" });
        const some = (present) => {
            const n = Math.max(this.lab.filled, 1);
            key.value = present ? inventedWord(Math.floor(Math.random() * n)) : inventedWord(ABSENT + Math.floor(Math.random() * 100000));
            this.get(key.value);
        };
        return [
            field(t("Get a key", "Leer una clave"), key),
            h("div", { class: "row" }, button(t("Get", "Leer"), () => this.get(key.value), { class: "main" }),
                button(t("One that is there", "Una que está"), () => some(true)), button(t("One that is not", "Una que no está"), () => some(false))),
            h("div", { class: "row" }, this.play_button,
                button(t("Ask for 1,000 absent words", "Preguntar por 1000 ausentes"), () => this.askMany())),
            h("div", { class: "field check" }, h("input", { type: "checkbox", id: "use-filters", checked: this.filters, onchange: (e) => (this.filters = e.target.checked) }),
                h("label", { for: "use-filters" }, t("ask the filters", "preguntar a los filtros"))),
            field(t("The disk", "El disco"), select([["nvme", t("NVMe, 0.1 ms a read", "NVMe, 0,1 ms por lectura")], ["ssd", t("network SSD, 0.5 ms", "SSD en red, 0,5 ms")], ["hdd", t("hard disk, 8 ms", "disco duro, 8 ms")]], this.disk, (disk) => {
                this.disk = disk;
                this.showCounts();
            }), t("Simulated: reads here come from memory, the time is reads × this.", "Simulado: aquí se lee de la memoria; el tiempo es lecturas × esto.")),
            button(t("Counters to zero", "Contadores a cero"), () => {
                this.made = this.avoided = 0;
                this.showCounts();
            }),
        ];
    }

    fillWords(n) {
        this.do(t(`${number(n)} invented words were put.`, `Se escribieron ${number(n)} palabras inventadas.`), () => {
            if (this.lab.filled + n > MOST_WORDS) return t("That is as many as this page keeps; start anew.", "Esta página no guarda más; empieza de nuevo.");
            const first = this.lab.filled;
            this.lab.act("fill", inventedWords(first, n));
            if (!this.lab.imported) this.state.fill = Math.min(50000, first + n);
        });
    }

    async fillList(files) {
        const text = await files[0].text();
        this.do("", () => {
            const words = wordsOf(text).slice(0, MOST_WORDS - this.lab.filled);
            if (!words.length) return t("There are no words in that file.", "Ese archivo no contiene palabras.");
            this.lab.act("fill", words);
            return t(`${number(words.length)} words of ${files[0].name} were put.`, `Se escribieron ${number(words.length)} palabras de ${files[0].name}.`);
        });
    }

    step() {
        this.do("", () => {
            const before = this.lab.store.stats();
            this.lab.act("step");
            const after = this.lab.store.stats();
            return after.flushes > before.flushes ? t("One step: a flush.", "Un paso: un volcado.")
                : after.compactions > before.compactions ? t("One step: a compaction.", "Un paso: una compactación.")
                    : t("One step: nothing had to be done.", "Un paso: no había nada que hacer.");
        });
    }

    anew() {
        this.state.fill = 0;
        this.do(t("An empty store.", "Un almacén vacío."), () => {
            this.lab.journal = [];
            this.lab.start(this.state);
            this.made = this.avoided = 0;
            this.story = null;
        });
    }

    change(what) {
        Object.assign(this.state, what);
        this.bits_value.textContent = number(this.state.bits);
        this.bits_input.disabled = FIXED[this.state.kind] ?? false;
        this.do("", () => {
            this.lab.replay(this.state);
            return this.lab.imported
                ? t(`Opened again with filter=${policyOf(this.state)}: tables made from now on get it.`, `Abierto de nuevo con filter=${policyOf(this.state)}: lo llevarán las tablas que se hagan desde ahora.`)
                : t(`The same history was played again with filter=${policyOf(this.state)}.`, `La misma historia se repitió con filter=${policyOf(this.state)}.`);
        });
    }

    get(key) {
        this.do("", () => {
            const asked = this.lab.get(key, this.filters);
            this.story = { key, ...asked };
            this.made += asked.reads;
            this.avoided += asked.avoided;
            this.state.key = key;
            return asked.story.found
                ? t(`“${key}” is there: ${asked.value}.`, `«${key}» está: ${asked.value}.`)
                : t(`“${key}” is not there.`, `«${key}» no está.`);
        });
    }

    askMany() {
        this.do("", () => {
            const asked = this.lab.ask(inventedWords(ABSENT, ASKED), this.filters);
            this.made += asked.reads;
            this.avoided += asked.avoided;
            return t(`1,000 absent words: ${number(asked.reads)} device reads made, ${number(asked.avoided)} avoided.`, `1000 palabras ausentes: ${number(asked.reads)} lecturas hechas, ${number(asked.avoided)} evitadas.`);
        });
    }

    // Gets by itself, one after the other: every second key is there.
    play() {
        this.playing = this.playing ? clearInterval(this.playing) : setInterval(() => {
            if (!this.tale.isConnected) return this.play();
            this.turn = !this.turn;
            const n = Math.max(this.lab.filled, 1);
            this.get_key.value = this.turn ? inventedWord(Math.floor(Math.random() * n)) : inventedWord(ABSENT + Math.floor(Math.random() * 100000));
            this.get(this.get_key.value);
        }, PLAY_MS);
        this.play_button.textContent = this.playing ? t("Pause", "Pausa") : t("Play", "Reproducir");
        this.play_button.setAttribute("aria-pressed", this.playing ? "true" : "false");
    }

    // ---- pictures ----

    refresh() {
        this.notice.textContent = this.last;
        this.showLevels();
        this.showCounts();
        this.showTale();
        this.showFiles();
        this.app.remember();
    }

    showLevels() {
        const shape = this.lab.store.tables();
        const most = Math.max(1, ...shape.runs.flatMap((r) => r.tables.map((x) => x.bytes)));
        const told = new Map((this.story?.story.steps ?? []).filter((s) => s.table).map((s) => [s.table, s.step]));
        const memory = shape.memtables.map((size, i) => h("div", { class: "table memtable" }, h("strong", null, i ? t("sealed memtable", "memtable sellada") : "memtable"), h("span", null, bytes(size))));
        const levels = new Map();
        for (const run of shape.runs) levels.set(run.level, [...(levels.get(run.level) ?? []), run]);
        const row = (name, boxes) => h("div", { class: "level" }, h("h4", null, name), h("div", { class: "run" }, boxes));
        const box = (x) => {
            const f = x.filter;
            const none = f.kind === "none" || !f.kind;
            return h("div", { class: `table ${told.has(x.table) ? "asked" : ""}`, style: `--size: ${Math.sqrt(x.bytes / most).toFixed(3)}` },
                h("strong", null, t(`table ${x.table}`, `tabla ${x.table}`)),
                h("span", null, t(`${number(x.keys)} keys, ${bytes(x.bytes)}`, `${number(x.keys)} claves, ${bytes(x.bytes)}`)),
                h("span", { class: "range" }, `${x.smallest} … ${x.largest}`),
                none ? h("span", null, t("no filter", "sin filtro"))
                    : [h("span", null, `${f.kind}, ${number(f.bits_per_key, 1)} ${t("bits a key", "bits por clave")}`),
                        h("span", { class: "fill", style: `--fill: ${(f.fill * 100).toFixed(1)}%` }, h("span", null, t(`${percent(f.fill)} full, rate ${percent(f.expected_fpr)}`, `lleno al ${percent(f.fill)}, tasa ${percent(f.expected_fpr)}`)))]);
        };
        fill(this.levels, row(t("memory", "memoria"), memory),
            [...levels].map(([level, runs]) => runs.map((run, i) => row(runs.length > 1 ? t(`level ${level}, run ${i + 1}`, `nivel ${level}, serie ${i + 1}`) : t(`level ${level}`, `nivel ${level}`), run.tables.map(box)))),
            shape.runs.length ? "" : h("p", { class: "hint" }, t("No table yet: put or fill, then flush.", "Ninguna tabla aún: escribe o llena, y luego vuelca.")));
    }

    showCounts() {
        const stats = this.lab.store.stats().total;
        const ms = DISKS[this.disk];
        const figure = (id, head, value, note) => h("div", { class: "figure" }, h("h4", null, head), h("p", { class: "big", id }, value), h("p", { class: "hint" }, note));
        const all = this.made + this.avoided;
        fill(this.counts, h("div", { class: "figures" },
            figure("reads-made", t("Made", "Hechas"), number(this.made), t(`${duration(this.made * ms)} of disk`, `${duration(this.made * ms)} de disco`)),
            figure("reads-avoided", t("Avoided", "Evitadas"), number(this.avoided), t(`${duration(this.avoided * ms)} saved${all ? `, ${percent(this.avoided / all)} of all` : ""}: against a twin that asks no filter`, `${duration(this.avoided * ms)} ahorrados${all ? `, ${percent(this.avoided / all)} del total` : ""}: frente a un gemelo que no pregunta a los filtros`)),
            figure("negatives", t("Filters said no", "Los filtros dijeron no"), number(stats.filter_negatives), t(`of ${number(stats.filter_probes)} times asked; wrong maybes: ${number(stats.filter_false_positives)}. The engine’s own counters.`, `de ${number(stats.filter_probes)} preguntas; quizás falsos: ${number(stats.filter_false_positives)}. Contadores del propio motor.`))),
            h("div", null, h("h4", null, t("Waiting for the disk", "Esperando al disco")),
                [[t("with filters", "con filtros"), this.made], [t("without", "sin filtros"), all]].map(([name, reads]) => h("div", { class: "bar" }, h("span", null, name),
                    h("span", { class: "track" }, h("span", { class: "length", style: `width: ${all ? Math.max(0.4, (100 * reads) / all) : 0}%` })), h("span", null, duration(reads * ms))))));
    }

    showTale() {
        if (!this.story) return fill(this.tale, h("p", { class: "hint" }, t("Get a key, and each step stands here.", "Lee una clave, y aquí estará cada paso.")));
        const { key, story, reads, avoided } = this.story;
        const ms = DISKS[this.disk];
        const steps = tell(story);
        const delay = calm() ? 0 : 0.08;
        fill(this.tale,
            h("p", null, h("strong", null, `get “${key}”`)),
            h("ol", { class: "tale" }, steps.map((s, i) => h("li", { class: s.tone, style: `animation-delay: ${(i * delay).toFixed(2)}s` }, s.words))),
            h("p", { id: "tale-end" }, story.found ? t("Present", "Presente") : t("Absent", "Ausente"), ": ",
                t(`${reads} ${reads === 1 ? "read" : "reads"} made (${duration(reads * ms)}), ${avoided} avoided (${duration(avoided * ms)}).`, `${reads} ${reads === 1 ? "lectura hecha" : "lecturas hechas"} (${duration(reads * ms)}), ${avoided} evitadas (${duration(avoided * ms)}).`)));
    }

    // ---- files ----

    pick(words, accept, many, take) {
        const input = h("input", { type: "file", accept, multiple: many, class: "hidden-file", "aria-label": words, tabindex: -1 });
        input.addEventListener("change", async () => {
            if (input.files.length) await take([...input.files]);
            input.value = "";
        });
        return [button(words, () => input.click()), input];
    }

    filesPanel() {
        const [open, input] = this.pick(t("Open files of a store…", "Abrir archivos de un almacén…"), null, true, (files) => this.take(files));
        input.id = "open-files";
        const zone = h("section", { class: "panel drop", id: "drop" }, h("h3", null, t("Files in and out", "Archivos dentro y fuera")),
            h("p", null, t("Drop a table (000012.sst) or all files of a store that the command-line tool made, unpacked (compression=none). Nothing leaves this computer.",
                "Suelta una tabla (000012.sst) o todos los archivos de un almacén hecho con la herramienta, sin comprimir (compression=none). Nada sale de este equipo.")),
            h("div", { class: "row" }, open, input, button(t("Download the whole store (.tar)", "Descargar el almacén entero (.tar)"), () => this.downloadAll())), this.fileBox);
        zone.addEventListener("dragover", (e) => {
            e.preventDefault();
            zone.classList.add("over");
        });
        zone.addEventListener("dragleave", () => zone.classList.remove("over"));
        zone.addEventListener("drop", (e) => {
            e.preventDefault();
            zone.classList.remove("over");
            this.take([...e.dataTransfer.files]);
        });
        return zone;
    }

    async take(files) {
        const ours = files.filter((f) => f.name !== "LOCK");
        const size = ours.reduce((sum, f) => sum + f.size, 0);
        const contents = size > MOST_FILE ? null : await Promise.all(ours.map(async (f) => ({ name: f.name, bytes: new Uint8Array(await f.arrayBuffer()) })));
        this.do("", () => {
            if (!contents) return t(`That is ${bytes(size)}; this page takes up to ${bytes(MOST_FILE)}.`, `Son ${bytes(size)}; esta página admite hasta ${bytes(MOST_FILE)}.`);
            if (!contents.length) return t("There was no file in that.", "Ahí no había ningún archivo.");
            this.lab.import(contents, this.state);
            this.state.fill = 0;
            this.story = null;
            this.made = this.avoided = 0;
            return t(`Opened ${contents.length} ${contents.length === 1 ? "file" : "files"}; every block was checked.`, `${contents.length === 1 ? "Abierto" : "Abiertos"} ${contents.length} ${contents.length === 1 ? "archivo" : "archivos"}; se comprobó cada bloque.`);
        });
    }

    downloadAll() {
        const s = this.lab.store;
        download(tar("lab", s.files().map(({ name }) => ({ name, bytes: s.read(name) }))), "lab.tar");
    }

    showFiles() {
        const s = this.lab.store;
        fill(this.fileBox, table(t("Files on the disk in memory", "Archivos en el disco en memoria"), [t("name", "nombre"), t("bytes", "bytes"), t("take", "llevar")],
            s.files().map(({ name, size }) => [name, number(size), button(t("Download", "Descargar"), () => download(new Blob([s.read(name)]), name), { "aria-label": t(`download ${name}`, `descargar ${name}`) })])));
    }
}
