// SPDX-License-Identifier: MIT
// The Filter view: words, the bits they set, what a query looks at, and how often the answer "maybe" is wrong.

import { BitCanvas, calm } from "./bits.js";
import { button, field, fill, h, select, table } from "./dom.js";
import { bytes, duration, number, percent, t } from "./language.js";
import { band, bloomFormula, inside, measure } from "./rates.js";
import { LIMITS, wholeBits } from "./state.js";
import { inventedWords, wordsOf } from "./words.js";

const PROBES = 2000, WORDS_MAX = 100000, TEXT_MAX = 4 << 20, FULL = 0.7, SIDE_PROBES = 20000, SIDE_KEYS = 10000, LISTED = 300;

const sampleWords = () =>
    t("amber birch cloud dune ember fjord grove heron inlet juniper", "ámbar bosque cielo duna espuma faro garza hiedra isla jara").split(" ");

export class FilterView {
    constructor(app) {
        this.app = app;
        this.engine = app.engine;
        this.filter = null;
        this.query = null;
        this.query_seed = 0;
    }

    get state() {
        return this.app.state.filter;
    }

    // ---- the model: a filter of the engine, and which word set which bit ----

    get words() {
        return (this.state.words ??= sampleWords());
    }

    rebuild() {
        const { m, k, drawn } = this.state;
        this.filter?.free();
        this.filter = this.engine.bloom(m, k, drawn === "counting");
        this.words_hashes = this.engine.hashes(this.words);
        this.filter.add(this.words_hashes);
        this.places = this.engine.places(m, k, this.words_hashes);
        this.setters = null;
        this.refresh();
    }

    refresh() {
        const payload = this.filter.payload();
        const counting = this.state.drawn === "counting";
        this.values = new Uint8Array(this.state.m);
        for (let i = 0; i < this.values.length; i++)
            this.values[i] = counting ? (payload[i >> 1] >> (4 * (i & 1))) & 15 : (payload[i >> 3] >> (i & 7)) & 1;
        this.info = this.filter.info();
        this.measured = measure(this.engine, this.filter, this.state.seed, PROBES);
        this.canvas?.show(this.values);
        this.space?.show(this.values);
        this.say();
        this.app.remember();
    }

    // Which words set each bit: made when somebody first asks.
    settersOf(bit) {
        const { k } = this.state;
        if (!this.setters) {
            this.setters = new Map();
            for (let w = 0; w < this.words.length; w++)
                for (let i = 0; i < k; i++) {
                    const at = this.places[w * k + i];
                    if (!this.setters.has(at)) this.setters.set(at, new Set());
                    this.setters.get(at).add(w);
                }
        }
        return [...(this.setters.get(bit) ?? [])].map((w) => this.words[w]);
    }

    verdict(word) {
        const hash = this.engine.hashes([word]);
        const places = [...this.engine.places(this.state.m, this.state.k, hash)];
        const no = places.findIndex((bit) => !this.values[bit]);
        return { word, places, no, maybe: this.filter.ask(hash)[0] === 1, member: this.words.includes(word) };
    }

    add(text) {
        if (text.length > TEXT_MAX)
            return this.tell(t(`That is ${bytes(text.length)} of text; this page takes up to ${bytes(TEXT_MAX)} at once.`,
                `Son ${bytes(text.length)} de texto; esta página admite hasta ${bytes(TEXT_MAX)} de una vez.`));
        const fresh = [...new Set(wordsOf(text))].filter((w) => !this.known().has(w));
        if (!fresh.length) return this.tell(t("There is no new word in that.", "Ahí no hay ninguna palabra nueva."));
        const room = WORDS_MAX - this.words.length;
        this.state.words = this.words.concat(fresh.slice(0, room));
        this.query = null;
        this.rebuild();
        this.tell(fresh.length > room
            ? t(`Added ${number(room)} words; ${number(WORDS_MAX)} is the most that this page shows.`, `Añadidas ${number(room)} palabras; esta página muestra ${number(WORDS_MAX)} como mucho.`)
            : t(`Added ${number(fresh.length)} ${fresh.length === 1 ? "word" : "words"}.`, `${fresh.length === 1 ? "Añadida" : "Añadidas"} ${number(fresh.length)} ${fresh.length === 1 ? "palabra" : "palabras"}.`));
    }

    known() {
        return new Set(this.words);
    }

    // A Bloom filter cannot forget: it is built anew from the words that are left. A counting one counts down.
    remove(word) {
        const counting = this.state.drawn === "counting";
        if (counting) this.filter.remove(this.engine.hashes([word]));
        this.state.words = this.words.filter((w) => w !== word);
        this.query = null;
        if (counting) {
            this.words_hashes = this.engine.hashes(this.words);
            this.places = this.engine.places(this.state.m, this.state.k, this.words_hashes);
            this.setters = null;
            this.refresh();
        } else this.rebuild();
        this.tell(counting
            ? t(`“${word}” was removed: its ${this.state.k} counters went down by one. No other word changed.`, `«${word}» se ha quitado: sus ${this.state.k} contadores bajaron en uno. Ninguna otra palabra cambió.`)
            : t(`A Bloom filter cannot remove: other words may share its bits. It was built anew without “${word}”.`, `Un filtro de Bloom no puede quitar: otras palabras pueden compartir sus bits. Se ha construido de nuevo sin «${word}».`));
    }

    // ---- the view ----

    tell(words) {
        if (this.notice) this.notice.textContent = words;
    }

    mount(root) {
        this.notice = h("p", { class: "notice", role: "status" });
        fill(root,
            h("h2", null, t("A filter, bit by bit", "Un filtro, bit a bit")),
            h("p", { class: "lead" }, t(
                "Add words: each sets k of the m bits. Ask for a word: if one of its bits is clear, it was never added, and that is certain. If all are set, it is only maybe there.",
                "Añade palabras: cada una enciende k de los m bits. Pregunta por una palabra: si uno de sus bits está apagado, nunca se añadió, y eso es seguro. Si todos están encendidos, sólo es posible que esté.")),
            h("div", { class: "two" }, h("div", { class: "panel" }, this.controls(), this.notice), h("div", { class: "panel" }, this.picture())),
            this.rates(), this.sideBySide());
        this.canvas = new BitCanvas(this.drawing);
        this.observer?.disconnect();
        this.observer = new ResizeObserver(() => this.canvas.ask());
        this.observer.observe(this.drawing.parentElement);
        this.rebuild();
    }

    controls() {
        const { m, k, drawn } = this.state;
        const text = h("textarea", { rows: 2, spellcheck: "false", placeholder: t("one word, or many", "una palabra, o muchas") });
        const add = () => {
            this.add(text.value);
            text.value = "";
        };
        text.addEventListener("keydown", (e) => {
            if (e.key === "Enter" && !e.shiftKey) {
                e.preventDefault();
                add();
            }
        });
        const query = h("input", { type: "text", id: "query", spellcheck: "false", autocomplete: "off", oninput: () => this.ask(query.value) });
        query.addEventListener("keydown", (e) => e.key === "Enter" && this.ask(query.value));
        this.query_input = query;
        this.answer = h("p", { class: "answer", role: "status", id: "answer" });
        this.m_value = h("output", null, number(m));
        this.k_value = h("output", null, number(k));
        const slider = (name, step, change) => h("input", { type: "range", id: `slider-${name}`, min: LIMITS[name][0], max: LIMITS[name][1], step, value: this.state[name], oninput: (e) => change(Number(e.target.value)) });
        this.m_slider = slider("m", 64, (x) => this.reshape({ m: wholeBits(x) }));
        this.k_slider = slider("k", 1, (x) => this.reshape({ k: x }));
        return [
            field(t("Words to add", "Palabras que añadir"), text, t("Enter adds; blanks, commas or lines between words.", "Intro añade; espacios, comas o líneas entre palabras.")),
            h("div", { class: "row" }, button(t("Add", "Añadir"), add, { class: "main" }),
                button(t("Add 100 invented words", "Añadir 100 palabras inventadas"), () => this.add(inventedWords(this.words.length, 100).join("\n"))),
                button(t("Start empty", "Empezar de cero"), () => {
                    this.state.words = [];
                    this.query = null;
                    this.rebuild();
                    this.tell(t("The filter is empty: it answers no to everything.", "El filtro está vacío: a todo responde que no."));
                })),
            field(t("Ask for a word", "Pregunta por una palabra"), query),
            this.answer,
            h("div", { class: "field" }, h("label", { for: "slider-m" }, t("m, bits: ", "m, bits: "), this.m_value), this.m_slider),
            h("div", { class: "field" }, h("label", { for: "slider-k" }, t("k, bits a word sets: ", "k, bits por palabra: "), this.k_value), this.k_slider),
            field(t("What is drawn", "Qué se dibuja"), select([["bloom", t("Bloom: one bit each", "Bloom: un bit cada uno")], ["counting", t("counting: a counter each, can remove", "con contadores: puede quitar")]], drawn, (x) => this.reshape({ drawn: x }))),
            this.calculator(),
        ];
    }

    reshape(change) {
        Object.assign(this.state, change);
        this.m_value.textContent = number(this.state.m);
        this.k_value.textContent = number(this.state.k);
        this.m_slider.value = this.state.m;
        this.k_slider.value = this.state.k;
        this.rebuild();
        if (this.query) this.ask(this.query.word);
    }

    calculator() {
        const out = h("p", { role: "status", id: "best" });
        const n = h("input", { type: "number", min: 1, max: 1e9, step: 1, value: this.state.n, id: "calc-n" });
        const p = h("input", { type: "number", min: 1e-9, max: 0.999, step: "any", value: this.state.p, id: "calc-p" });
        const use = button(t("Use these m and k", "Usar estos m y k"), () => this.reshape(this.best));
        const compute = () => {
            const keys = Number(n.value), rate = Number(p.value);
            use.hidden = true;
            if (!(keys >= 1 && keys <= 1e9 && rate > 0 && rate < 1)) {
                out.textContent = t("n from 1 to 1,000,000,000, and p between 0 and 1 (0.01 is one in a hundred).", "n de 1 a 1 000 000 000, y p entre 0 y 1 (0,01 es una de cada cien).");
                return;
            }
            this.state.n = keys;
            this.state.p = rate;
            const bits = this.engine.bestBits(keys, rate), hashes = this.engine.bestHashes(bits, keys);
            out.textContent = t(
                `Best: m = ${number(Math.ceil(bits))} bits (${number(bits / keys, 2)} a word), k = ${hashes}.`,
                `Lo mejor: m = ${number(Math.ceil(bits))} bits (${number(bits / keys, 2)} por palabra), k = ${hashes}.`);
            const fits = bits <= LIMITS.m[1] && hashes <= LIMITS.k[1];
            this.best = { m: wholeBits(Math.ceil(bits / 64) * 64), k: Math.min(hashes, LIMITS.k[1]) };
            use.hidden = !fits;
            this.app.remember();
        };
        n.addEventListener("input", compute);
        p.addEventListener("input", compute);
        compute();
        return h("fieldset", null, h("legend", null, t("How large should it be?", "¿De qué tamaño conviene?")),
            h("div", { class: "row" }, field(t("n, words", "n, palabras"), n), field(t("p, wanted rate", "p, tasa deseada"), p)), out, use);
    }

    picture() {
        this.drawing = h("canvas", { "aria-hidden": "true" });
        this.frame = h("div", { class: "bits", tabindex: 0, role: "group", "aria-roledescription": t("bits", "bits"), "aria-describedby": "bits-words bit-words" }, h("div", null, this.drawing));
        this.bit_words = h("p", { id: "bit-words", class: "bit-words", role: "status" }, "");
        this.summary = h("p", { id: "bits-words" });
        this.frame.addEventListener("pointermove", (e) => this.point(this.canvas.at(e.clientX, e.clientY)));
        this.frame.addEventListener("pointerleave", () => this.point(-1));
        this.frame.addEventListener("keydown", (e) => this.walk(e));
        this.space_box = h("div", { class: "space", hidden: true });
        this.space_button = button(t("See it in 3D", "Verlo en 3D"), () => this.toggleSpace());
        this.space?.stop();
        this.space = null;
        this.list = h("div", { class: "words", id: "words" });
        return [this.summary, this.frame, this.bit_words,
            h("ul", { class: "legend" }, ["set", "clear", "mine", "yes", "no"].map((c, i) => h("li", null, h("span", { class: `swatch ${c}`, "aria-hidden": "true" }),
                [t("set", "encendido"), t("clear", "apagado"), t("this word’s", "de esta palabra"), t("probed, set", "mirado, encendido"), t("probed, clear: the no", "mirado, apagado: el no")][i]))),
            this.space_button, this.space_box, h("h3", null, t("The words in it", "Las palabras que contiene")), this.list];
    }

    // Arrow keys walk over the bits, as the pointer does.
    walk(e) {
        const { columns } = this.canvas.layout();
        const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[e.key];
        if (e.key === "Escape") this.point(-1);
        if (!step) return;
        e.preventDefault();
        const next = this.canvas.cursor < 0 ? 0 : this.canvas.cursor + step;
        if (next >= 0 && next < this.values.length) this.point(next);
    }

    point(bit) {
        this.canvas.point(bit);
        if (bit < 0) {
            this.bit_words.textContent = t("Point at a bit, or focus the picture and use the arrow keys.", "Señala un bit, o enfoca el dibujo y usa las flechas.");
            return;
        }
        const words = this.settersOf(bit);
        const some = words.slice(0, 12).join(", ") + (words.length > 12 ? "…" : "");
        this.bit_words.textContent = words.length
            ? t(`Bit ${bit}: set by ${some}.`, `Bit ${bit}: encendido por ${some}.`)
            : t(`Bit ${bit}: clear. Every word that needs it is certainly absent.`, `Bit ${bit}: apagado. Toda palabra que lo necesite falta con seguridad.`);
    }

    highlight(word) {
        const { m, k } = this.state;
        this.canvas.mark(new Map(word === null ? [] : [...this.engine.places(m, k, this.engine.hashes([word]))].map((bit) => [bit, "mine"])));
        if (word === null && this.query) this.ask(this.query.word);
    }

    ask(word) {
        word = word.trim().slice(0, 10000);
        if (!word) {
            this.query = null;
            this.canvas.mark(new Map());
            fill(this.answer, "");
            return;
        }
        const v = (this.query = this.verdict(word));
        const looked = v.no < 0 ? v.places : v.places.slice(0, v.no + 1);
        this.canvas.mark(new Map(looked.map((bit) => [bit, this.values[bit] ? "yes" : "no"])));
        this.space?.mark(this.canvas.marks);
        const where = looked.map((bit, i) => h("li", null, t("bit ", "bit "), bit, ": ", this.values[bit] ? t("set", "encendido") : h("strong", null, i === v.no ? t("clear: this one said no", "apagado: éste dijo que no") : "")));
        const words = !v.maybe
            ? t(`“${word}” is certainly not in it.`, `«${word}» no está, con toda seguridad.`)
            : v.member
                ? t(`Maybe: and “${word}” is in it. A true positive.`, `Quizá: y «${word}» sí está. Un positivo verdadero.`)
                : t(`Maybe, but “${word}” was never added: a false positive.`, `Quizá, pero «${word}» nunca se añadió: un falso positivo.`);
        this.answer.className = `answer ${v.maybe ? (v.member ? "true" : "false") : "no"}`;
        fill(this.answer, h("strong", null, words), h("ol", null, where));
    }

    async toggleSpace() {
        if (this.space) {
            this.space.stop();
            this.space = null;
            this.space_box.hidden = true;
            this.space_button.textContent = t("See it in 3D", "Verlo en 3D");
            return;
        }
        this.space_box.hidden = false;
        try {
            this.space = await this.app.openSpace(this.space_box, calm());
            this.space.show(this.values);
            this.space.mark(this.canvas.marks);
            this.space_button.textContent = t("Close the 3D view", "Cerrar la vista 3D");
        } catch {
            fill(this.space_box, h("p", { role: "status" }, t("This browser offers no WebGL; the flat picture shows the same.", "Este navegador no ofrece WebGL; el dibujo plano muestra lo mismo.")));
        }
    }

    // ---- what the picture and the rates say, in words ----

    say() {
        const { m, k } = this.state;
        const n = this.words.length;
        const set = this.values.reduce((sum, v) => sum + (v ? 1 : 0), 0);
        this.summary.textContent = t(
            `${number(n)} ${n === 1 ? "word" : "words"}, ${number(m)} bits, ${number(set)} of them set (${percent(set / m)}).`,
            `${number(n)} ${n === 1 ? "palabra" : "palabras"}, ${number(m)} bits, ${number(set)} encendidos (${percent(set / m)}).`);
        if (this.canvas.cursor < 0) this.point(-1);
        this.showRates(set);
        this.listWords();
    }

    rates() {
        this.rate_box = h("div", { class: "figures", id: "rates" });
        this.full_box = h("div", { role: "status" });
        return h("section", { class: "panel" }, h("h3", null, t("How often is “maybe” wrong?", "¿Cuántas veces se equivoca el «quizá»?")), this.rate_box,
            button(t("Other 2,000 probes", "Otras 2000 pruebas"), () => {
                this.state.seed++;
                this.refresh();
            }), this.full_box);
    }

    showRates(set) {
        const { m, k } = this.state;
        const n = this.words.length;
        const theory = bloomFormula(m, k, n), own = this.info.expected_fpr;
        const limits = band(own, PROBES);
        const ok = inside(this.measured, limits);
        const figure = (id, head, value, note) => h("div", { class: "figure" }, h("h4", null, head), h("p", { class: "big", id }, value), h("p", { class: "hint" }, note));
        fill(this.rate_box,
            figure("rate-theory", t("Theory", "Teoría"), percent(theory), `(1 − e^(−kn/m))^k, k=${k}, n=${number(n)}, m=${number(m)}`),
            figure("rate-own", t("This very filter", "Este mismo filtro"), percent(own), t(`its share of set bits to the k-th: ${percent(set / m)} ^ ${k}`, `su parte de bits encendidos a la k: ${percent(set / m)} ^ ${k}`)),
            figure("rate-measured", t("Measured", "Medido"), percent(this.measured),
                t(`over ${number(PROBES)} random absent keys. 99 of 100 such samples of this filter lie in ${percent(limits[0])} to ${percent(limits[1])}: this one ${ok ? "does" : "does not"}.`,
                    `con ${number(PROBES)} claves ausentes al azar. 99 de cada 100 muestras de este filtro caen entre ${percent(limits[0])} y ${percent(limits[1])}: ésta ${ok ? "también" : "no"}.`)));
        this.rate_box.dataset.inside = ok;
        if (set / m < FULL) return fill(this.full_box, "");
        const bits = Math.ceil(this.engine.bestBits(n, 0.01) / 64) * 64;
        const fits = bits <= LIMITS.m[1];
        fill(this.full_box, h("p", { class: "warning" },
            t(`This filter is full: ${percent(set / m)} of its bits are set, and it takes ${percent(own)} of all absent words for members. Bits can’t be given back; build it anew, larger. For ${number(n)} words at 1 %, m = ${number(bits)}.`,
                `Este filtro está lleno: el ${percent(set / m)} de sus bits está encendido, y toma el ${percent(own)} de las palabras ausentes por presentes. Los bits no se devuelven; hay que construirlo de nuevo, más grande. Para ${number(n)} palabras al 1 %, m = ${number(bits)}.`)),
        fits ? button(t("Build it anew, larger", "Construirlo de nuevo, más grande"), () => this.reshape({ m: bits, k: Math.min(LIMITS.k[1], this.engine.bestHashes(bits, n)) }))
            : h("p", { class: "hint" }, t("That is more than the picture can draw; where you don’t know how many words will come, the kind “scalable” adds a layer when one is full.", "Es más de lo que el dibujo puede mostrar; cuando no se sabe cuántas palabras vendrán, el tipo «scalable» añade otra capa al llenarse una.")));
    }

    listWords() {
        fill(this.list, h("ul", null, this.words.slice(0, LISTED).map((word) => {
            const on = () => this.highlight(word), off = () => this.highlight(null);
            return h("li", { onpointerenter: on, onpointerleave: off },
                h("span", null, word), button("×", () => this.remove(word), { "aria-label": t(`remove ${word}`, `quitar ${word}`), onfocus: on, onblur: off }));
        })), this.words.length > LISTED ? h("p", { class: "hint" }, t(`… and ${number(this.words.length - LISTED)} more.`, `… y ${number(this.words.length - LISTED)} más.`)) : "");
    }

    // ---- kinds side by side ----

    sideBySide() {
        this.side = h("div", { id: "kinds" });
        return h("section", { class: "panel" }, h("h3", null, t("All kinds, the same keys", "Todos los tipos, las mismas claves")),
            h("p", null, t("Built by the library itself, from your words; with fewer than 1,000, invented ones are added up to 10,000.", "Construidos por la propia biblioteca con tus palabras; si son menos de 1000, se añaden inventadas hasta 10 000.")),
            button(t("Build them all", "Construirlos todos"), () => this.compareKinds(), { class: "main" }), this.side);
    }

    compareKinds() {
        const keys = this.words.length >= 1000 ? this.words : this.words.concat(inventedWords(0, SIDE_KEYS - this.words.length));
        const hashes = this.engine.hashes(keys);
        const changes = { bloom: t("add", "añadir"), counting: t("add, remove", "añadir, quitar"), cuckoo: t("add, remove", "añadir, quitar"), scalable: t("add, grows", "añadir, crece") };
        const rows = SIDE_KINDS.map((policy) => {
            const started = performance.now();
            const filter = this.engine.build(policy, hashes);
            const took = performance.now() - started;
            const info = filter.info(), rate = measure(this.engine, filter, 7, SIDE_PROBES);
            const missing = filter.ask(hashes).indexOf(0) >= 0;
            filter.free();
            return [policy, number(info.bits_per_key, 2), percent(info.expected_fpr), percent(rate), duration(took), changes[info.kind] ?? t("built once", "se construye una vez"), missing ? "!" : t("none", "ninguna")];
        });
        fill(this.side, table(t(`${number(keys.length)} keys, ${number(SIDE_PROBES)} random absent probes`, `${number(keys.length)} claves, ${number(SIDE_PROBES)} pruebas ausentes al azar`),
            [t("kind", "tipo"), t("bits a key", "bits por clave"), t("expected", "esperada"), t("measured", "medida"), t("built in", "construido en"), t("changes", "cambios"), t("members denied", "claves negadas")], rows));
    }
}

export const SIDE_KINDS = ["bloom:10", "blocked:10", "split:10", "counting:40", "cuckoo:10", "xor8", "fuse8", "ribbon:fpr=0.01"];
