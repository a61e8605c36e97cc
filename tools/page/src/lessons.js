// SPDX-License-Identifier: MIT
// Six lessons. Each tells a little, asks for a prediction, and then lets the engine count.

import { button, field, fill, h } from "./dom.js";
import { number, percent, t } from "./language.js";
import { bloomFormula, measure } from "./rates.js";
import { LabStore } from "./store.js";
import { ABSENT, inventedWords } from "./words.js";

const tenth = (x) => Math.round(x * 1000) / 10;

// Averages over filters of other words: with ten words in 64 bits, one filter is luck.
function averageRate(engine, m, k, n, filters) {
    let sum = 0;
    for (let i = 0; i < filters; i++) {
        const filter = engine.bloom(m, k);
        filter.add(engine.hashes(inventedWords(i * n, n)));
        sum += measure(engine, filter, i + 1, 2000);
        filter.free();
    }
    return sum / filters;
}

function withStore(engine, state, use) {
    const lab = new LabStore(engine, { kind: "bloom", bits: 10, shape: "leveled", ...state });
    try {
        return use(lab);
    } finally {
        lab.free();
    }
}

const wasted = (lab, words) => lab.ask(words, true);

export const lessons = () => [
    {
        title: t("What a filter is", "Qué es un filtro"),
        text: [
            t("A filter is a row of m bits, all clear. Adding a word sets k of them, at places that the word’s hash decides. Asking looks at the same k places.",
                "Un filtro es una fila de m bits, todos apagados. Añadir una palabra enciende k de ellos, en los lugares que decide el hash de la palabra. Preguntar mira esos mismos k lugares."),
            t("By hand: m = 64, k = 3, n = 10 words. 30 bits are set, some of them twice, so about 1 − e^(−30/64) = 37 % of all. An absent word is taken for a member where all three of its bits happen to be set.",
                "A mano: m = 64, k = 3, n = 10 palabras. Se encienden 30 bits, algunos dos veces, así que un 1 − e^(−30/64) = 37 % del total. Una palabra ausente pasa por presente si sus tres bits resultan estar encendidos."),
        ],
        ask: t("How many of 100 absent words will be answered “maybe”?", "¿A cuántas de 100 palabras ausentes se responderá «quizá»?"),
        unit: "%", low: 0, high: 100,
        run: (e) => {
            const rate = averageRate(e, 64, 3, 10, 200);
            return { answer: tenth(rate), near: 1.5, words: t(`200 filters of 10 words each, 2,000 probes each: ${percent(rate)}. By hand: ${percent(bloomFormula(64, 3, 10))}.`, `200 filtros de 10 palabras, 2000 pruebas cada uno: ${percent(rate)}. A mano: ${percent(bloomFormula(64, 3, 10))}.`) };
        },
        see: { view: "filter", m: 64, k: 3, words: "amber,birch,cloud,dune,ember,fjord,grove,heron,inlet,juniper" },
    },
    {
        title: t("How a read skips the disk", "Cómo una lectura se salta el disco"),
        text: [
            t("A store keeps sorted tables on disk and a filter of each in memory. A get asks the filter first. “No” is certain, and the table is not read.",
                "Un almacén guarda tablas ordenadas en disco y un filtro de cada una en memoria. Una lectura pregunta primero al filtro. El «no» es seguro, y la tabla no se lee."),
            t("We load 5,000 words and ask for 1,000 that are not there. Without filters nearly each costs a device read or more.",
                "Cargamos 5000 palabras y preguntamos por 1000 que no están. Sin filtros, casi cada una cuesta una lectura del disco o más."),
        ],
        ask: t("With 10 bits a key: how many device reads will the 1,000 gets make?", "Con 10 bits por clave: ¿cuántas lecturas del disco harán las 1000 preguntas?"),
        unit: t("reads", "lecturas"), low: 0, high: 5000,
        run: (e) => withStore(e, {}, (lab) => {
            lab.act("fill", inventedWords(0, 5000));
            lab.act("flush");
            const asked = wasted(lab, inventedWords(ABSENT, 1000));
            return { answer: asked.reads, near: 15, words: t(`${number(asked.reads)} made, ${number(asked.avoided)} avoided. Each one made was a false positive.`, `${number(asked.reads)} hechas, ${number(asked.avoided)} evitadas. Cada una de las hechas fue un falso positivo.`) };
        }),
        see: { view: "store", fill: 5000, bits: 10, kind: "bloom" },
    },
    {
        title: t("Where false positives come from", "De dónde salen los falsos positivos"),
        text: [
            t("Two things make a filter wrong: bits that others set, and hashes that are equal. The first you can buy off with bits. The second is decided by the width of the hash: with 32 bits, among 100 million keys about 2.3 % of absent words share a hash with some member, and no filter can tell them apart. With 64 bits it is one in 184 thousand million.",
                "Dos cosas hacen que un filtro se equivoque: bits que otros encendieron, y hashes iguales. Lo primero se compra con bits. Lo segundo lo decide la anchura del hash: con 32 bits, entre 100 millones de claves, cerca del 2,3 % de las ausentes comparte hash con alguna presente, y ningún filtro puede distinguirlas. Con 64 bits es una de cada 184 mil millones."),
            t("Take m = 1,024 bits and k = 5, meant for 100 words. Now add 300.", "Toma m = 1024 bits y k = 5, pensado para 100 palabras. Ahora añade 300."),
        ],
        ask: t("At 100 words it errs in about 1 of 100. And at 300?", "Con 100 palabras se equivoca en una de cada 100. ¿Y con 300?"),
        unit: "%", low: 0, high: 100,
        run: (e) => {
            const few = averageRate(e, 1024, 5, 100, 20), many = averageRate(e, 1024, 5, 300, 20);
            return { answer: tenth(many), near: 6, words: t(`100 words: ${percent(few)}. 300 words: ${percent(many)}, not three times but ${number(many / few)} times as often.`, `100 palabras: ${percent(few)}. 300 palabras: ${percent(many)}; no el triple, sino ${number(many / few)} veces más.`) };
        },
        see: { view: "filter", m: 1024, k: 5 },
    },
    {
        title: t("Why negatives are not avoided reads", "Por qué un «no» no es una lectura evitada"),
        text: [
            t("A filter that says no does not always save a read. Without it, the table’s index might have said no; the block might have been in the cache; and a get that finds its key in the first table never asks the rest. So tamiz counts both, and never adds them up as one.",
                "Un filtro que dice no, no siempre ahorra una lectura. Sin él, el índice de la tabla podría haber dicho no; el bloque podría estar en la caché; y quien encuentra su clave en la primera tabla no pregunta a las demás. Por eso tamiz cuenta las dos cosas y nunca las suma."),
            t("Here a store has a cache large enough for all its blocks. We ask for 1,000 absent words, and then for the same again.", "Aquí un almacén tiene una caché donde caben todos sus bloques. Preguntamos por 1000 palabras ausentes, y luego por las mismas otra vez."),
        ],
        ask: t("The second time, filters say no about 1,000 times. How many reads does that avoid?", "La segunda vez, los filtros dicen no unas 1000 veces. ¿Cuántas lecturas evita eso?"),
        unit: t("reads", "lecturas"), low: 0, high: 1000,
        run: (e) => {
            const store = e.store();
            try {
                store.open("filter=bloom:10 memtable=32KiB table=32KiB block=1KiB cache=16MiB");
                store.fill(inventedWords(0, 5000));
                store.flush();
                const words = inventedWords(ABSENT, 1000);
                store.ask(words, false); // as a store without filters: all blocks come into the cache
                const before = store.stats().total;
                store.ask(words, true);
                const middle = store.stats().total;
                store.ask(words, false);
                const after = store.stats().total;
                const negatives = middle.filter_negatives - before.filter_negatives;
                const avoided = after.device_reads - middle.device_reads - (middle.device_reads - before.device_reads);
                return { answer: avoided, near: 0, words: t(`${number(negatives)} negatives, ${number(avoided)} device reads avoided: every block was in the cache.`, `${number(negatives)} noes, ${number(avoided)} lecturas evitadas: todos los bloques estaban en la caché.`) };
            } finally {
                store.free();
            }
        },
        see: { view: "store", fill: 5000, bits: 4, kind: "bloom", shape: "tiered" },
    },
    {
        title: t("Bits where they count", "Bits donde cuentan"),
        text: [
            t("A small table and a large one cost the same when their filter is wrong: one read. But a bit more per key is cheap for the small one and dear for the large one. Monkey (Dayan and others, 2017) gives small, young levels more bits and the last level fewer, with the same memory in all.",
                "Una tabla pequeña y una grande cuestan lo mismo cuando su filtro se equivoca: una lectura. Pero un bit más por clave es barato en la pequeña y caro en la grande. Monkey (Dayan y otros, 2017) da más bits a los niveles pequeños y jóvenes y menos al último, con la misma memoria en total."),
            t("The same 40,000 words with 5 bits a key, uniform and spread so. We count wasted reads of 4,000 absent words.", "Las mismas 40 000 palabras con 5 bits por clave, uniforme y repartido así. Contamos las lecturas inútiles de 4000 palabras ausentes."),
        ],
        ask: t("Per cent of the uniform store’s wasted reads that are left with Monkey?", "¿Qué porcentaje de las lecturas inútiles del uniforme queda con Monkey?"),
        unit: "%", low: 0, high: 200,
        run: (e) => {
            const one = (memory) => withStore(e, { bits: 5, memory, memtable: "16KiB", runs: 2 }, (lab) => {
                for (let i = 0; i < 40; i++) lab.act("fill", inventedWords(i * 1000, 1000));
                lab.act("flush");
                const shape = lab.store.tables().runs;
                const total = lab.store.stats().total;
                return { reads: wasted(lab, inventedWords(ABSENT, 4000)).reads, bytes: total.filter_bytes, runs: shape.length };
            });
            const uniform = one("uniform"), monkey = one("monkey");
            return { answer: Math.round((100 * monkey.reads) / uniform.reads), near: 15, words: t(
                `Uniform: ${number(uniform.reads)} wasted reads with ${number(uniform.bytes)} bytes of filters. Monkey: ${number(monkey.reads)} with ${number(monkey.bytes)} bytes, over ${uniform.runs} runs. The fewer runs there are, the less there is to win.`,
                `Uniforme: ${number(uniform.reads)} lecturas inútiles con ${number(uniform.bytes)} bytes de filtros. Monkey: ${number(monkey.reads)} con ${number(monkey.bytes)} bytes, en ${uniform.runs} series. Cuantas menos haya, menos hay que ganar.`) };
        },
        see: { view: "store", fill: 40000, bits: 5, kind: "bloom" },
    },
    {
        title: t("Choosing a kind", "Elegir un tipo"),
        text: [
            t("Bloom costs 44 % more bits than must be; ribbon comes within a few per cent and takes longer to build; blocked touches one cache line and pays with a few more bits. What changes later needs bloom, counting, cuckoo or scalable.",
                "Bloom gasta un 44 % más de bits de lo necesario; ribbon se queda a unos pocos por ciento y tarda más en construirse; blocked toca una sola línea de caché y lo paga con algunos bits. Lo que cambia después pide bloom, counting, cuckoo o scalable."),
            t("A famous question: going from a rate of 0.1 to 0.01, how does the memory of a Bloom filter grow? Two well-known manuals contradict each other. Bits grow with the logarithm of the rate.",
                "Una pregunta famosa: al pasar de una tasa de 0,1 a 0,01, ¿cuánto crece la memoria de un filtro de Bloom? Dos manuales conocidos se contradicen. Los bits crecen con el logaritmo de la tasa."),
        ],
        ask: t("How many times the memory does 0.01 take, compared with 0.1?", "¿Cuántas veces la memoria de 0,1 necesita 0,01?"),
        unit: t("times", "veces"), low: 1, high: 100,
        run: (e) => {
            const hashes = e.hashes(inventedWords(0, 10000));
            const bits = (p) => {
                const filter = e.build(`bloom:fpr=${p}`, hashes);
                const { bits_per_key } = filter.info();
                filter.free();
                return bits_per_key;
            };
            const rough = bits(0.1), fine = bits(0.01);
            return { answer: Math.round((10 * fine) / rough) / 10, near: 0.1, words: t(`Built both over 10,000 keys: ${number(rough, 2)} bits a key for 0.1, ${number(fine, 2)} for 0.01. Twice, not ten times.`, `Construidos los dos con 10 000 claves: ${number(rough, 2)} bits por clave para 0,1 y ${number(fine, 2)} para 0,01. El doble, no diez veces.`) };
        },
        see: { view: "curves" },
    },
];

export class LessonsView {
    constructor(app) {
        this.app = app;
    }

    mount(root) {
        const all = lessons();
        const at = this.app.state.lesson;
        const go = (n) => {
            this.app.state.lesson = n;
            this.app.remount();
            document.querySelector("#lesson h3")?.focus();
        };
        fill(root,
            h("h2", null, t("Six lessons", "Seis lecciones")),
            h("ol", { class: "lesson-list" }, all.map((lesson, i) => h("li", null, button(`${i + 1}. ${lesson.title}`, () => go(i + 1), { "aria-current": i + 1 === at ? "step" : null })))),
            this.lesson(all[at - 1], at, all.length, go));
        this.app.remember();
    }

    lesson(lesson, at, count, go) {
        const guess = h("input", { type: "number", id: "guess", min: lesson.low, max: lesson.high, step: "any" });
        const result = h("div", { role: "status", id: "result" });
        const check = () => {
            const said = Number(guess.value);
            if (guess.value === "" || !Number.isFinite(said))
                return fill(result, h("p", { class: "warning" }, t("First a prediction: any number will do.", "Primero una predicción: vale cualquier número.")));
            const { answer, near, words } = lesson.run(this.app.engine);
            const close = Math.abs(said - answer) <= near;
            result.dataset.answer = answer;
            fill(result, h("p", { class: close ? "good" : "other" }, close
                ? t(`You said ${number(said, 2)}, the engine counted ${number(answer, 2)} ${lesson.unit}. Well predicted.`, `Dijiste ${number(said, 2)}; el motor contó ${number(answer, 2)} ${lesson.unit}. Bien predicho.`)
                : t(`You said ${number(said, 2)}, the engine counted ${number(answer, 2)} ${lesson.unit}.`, `Dijiste ${number(said, 2)}; el motor contó ${number(answer, 2)} ${lesson.unit}.`)), h("p", null, words));
        };
        guess.addEventListener("keydown", (e) => e.key === "Enter" && check());
        const see = `#${new URLSearchParams({ lang: this.app.state.lang, ...lesson.see })}`;
        return h("section", { class: "panel", id: "lesson" }, h("h3", { tabindex: -1 }, `${at}. ${lesson.title}`), lesson.text.map((p) => h("p", null, p)),
            field(`${lesson.ask} (${lesson.unit})`, guess), h("div", { class: "row" }, button(t("Check by counting", "Comprobar contando"), check, { class: "main" })), result,
            h("p", null, h("a", { href: see }, t("See it in the other view", "Verlo en la otra vista"))),
            h("div", { class: "row" }, at > 1 ? button(t("Back", "Atrás"), () => go(at - 1)) : "", at < count ? button(t("Next lesson", "Lección siguiente"), () => go(at + 1)) : ""));
    }
}
