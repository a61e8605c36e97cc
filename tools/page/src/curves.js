// SPDX-License-Identifier: MIT
// The Curves view: rate against bits per key, and against fill; lines are theory, points are measured on filters that the engine
// builds here and now.

import uPlot from "uplot";
import { fill, h, table } from "./dom.js";
import { number, percent, t } from "./language.js";
import { bloomFormula, measure } from "./rates.js";
import { inventedWords } from "./words.js";

const KEYS = 4000, PROBES = 50000, BITS = [4, 5, 6, 7, 8, 9, 10, 12, 14, 16];
const DRAWN = [["bloom", 1], ["blocked", 1], ["split", 1], ["ribbon", 1], ["fuse", 1], ["cuckoo", 1], ["counting", 4]];
const FILL_BITS = 16384, FILL_K = 7, FILL_STEPS = 16;

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const hue = (i) => css(`--line-${i + 1}`);
const tick = (v) => (v === null ? "" : percent(v));

export class CurvesView {
    constructor(app) {
        this.app = app;
        this.chosen = new Set(["bloom", "blocked", "ribbon"]);
        this.cache = new Map();
    }

    mount(root) {
        this.bitsBox = h("div", { class: "chart", id: "chart-bits", "aria-hidden": "true" });
        this.fillBox = h("div", { class: "chart", id: "chart-fill", "aria-hidden": "true" });
        this.bitsTable = h("div", { id: "table-bits" });
        this.fillTable = h("div", { id: "table-fill" });
        const boxes = DRAWN.map(([kind], i) => h("label", { class: "check" }, h("input", { type: "checkbox", checked: this.chosen.has(kind), onchange: (e) => {
            this.chosen[e.target.checked ? "add" : "delete"](kind);
            this.drawBits();
        } }), h("span", { class: "swatch", style: `background: ${hue(i)}`, "aria-hidden": "true" }), kind));
        fill(root,
            h("h2", null, t("Curves: theory and measurement", "Curvas: teoría y medida")),
            h("p", { class: "lead" }, t(`Lines: what theory expects. Points: ${number(PROBES)} probes of absent keys on a filter of ${number(KEYS)} keys, built by the engine.`,
                `Líneas: lo que espera la teoría. Puntos: ${number(PROBES)} pruebas de claves ausentes en un filtro de ${number(KEYS)} claves, construido por el motor.`)),
            h("section", { class: "panel" }, h("h3", null, t("Rate against bits per key", "Tasa según bits por clave")), h("fieldset", { class: "row" }, h("legend", null, t("Kinds", "Tipos")), boxes), this.bitsBox, this.bitsTable),
            h("section", { class: "panel" }, h("h3", null, t(`Rate against fill: bloom, m = ${number(FILL_BITS)}, k = ${FILL_K}`, `Tasa según el llenado: bloom, m = ${number(FILL_BITS)}, k = ${FILL_K}`)), this.fillBox, this.fillTable));
        this.drawBits();
        this.drawFill();
        this.observer?.disconnect();
        this.observer = new ResizeObserver(() => this.resize());
        this.observer.observe(root);
    }

    theme() {
        if (this.bitsBox?.isConnected) this.app.remount();
    }

    resize() {
        for (const [plot, box] of [[this.bitsPlot, this.bitsBox], [this.fillPlot, this.fillBox]])
            if (plot && Math.abs(plot.width - box.clientWidth) > 4) plot.setSize({ width: box.clientWidth, height: plot.height });
    }

    // Each kind is measured once.
    series(kind, times) {
        if (!this.cache.has(kind)) {
            const { engine } = this.app;
            const hashes = engine.hashes(inventedWords(0, KEYS));
            this.cache.set(kind, BITS.map((bits) => {
                const filter = engine.build(`${kind}:${bits * times}`, hashes);
                const info = filter.info(), measured = measure(engine, filter, 3, PROBES);
                filter.free();
                return { bits: info.bits_per_key, expected: info.expected_fpr, measured };
            }));
        }
        return this.cache.get(kind);
    }

    axes(x, y) {
        const stroke = css("--text"), grid = { stroke: css("--line"), width: 1 };
        return [{ label: x, stroke, grid, ticks: grid }, { label: y, stroke, grid, ticks: grid, size: 84, values: (_, ticks) => ticks.map(tick) }];
    }

    plot(box, x, y, series, data) {
        box.replaceChildren();
        return new uPlot({ width: box.clientWidth || 600, height: 320, legend: { show: false }, cursor: { show: false },
            scales: { x: { time: false }, y: { distr: 3, range: [1e-5, 1] } }, axes: this.axes(x, y), series: [{}, ...series] }, data, box);
    }

    drawBits() {
        const shown = DRAWN.map(([kind, times], i) => ({ kind, times, i })).filter(({ kind }) => this.chosen.has(kind));
        const points = shown.map(({ kind, times }) => this.series(kind, times));
        const xs = [...new Set(points.flatMap((p) => p.map((q) => q.bits)))].sort((a, b) => a - b);
        const column = (p, name) => xs.map((x) => {
            const hit = p.find((q) => q.bits === x);
            return hit ? hit[name] || null : undefined;
        });
        const series = shown.flatMap(({ kind, i }) => [
            { label: kind, stroke: hue(i), width: 2, spanGaps: true, points: { show: false } },
            { label: kind, stroke: hue(i), width: 0, spanGaps: false, paths: () => null, points: { show: true, size: 8, stroke: hue(i), fill: hue(i) } }]);
        const data = [xs, ...points.flatMap((p) => [column(p, "expected"), column(p, "measured")])];
        this.bitsPlot?.destroy();
        this.bitsPlot = xs.length ? this.plot(this.bitsBox, t("bits per key", "bits por clave"), t("false-positive rate", "tasa de falsos positivos"), series, data) : null;
        fill(this.bitsTable, h("details", null, h("summary", null, t("The same as a table", "Lo mismo en una tabla")),
            table(t("Rate against bits per key", "Tasa según bits por clave"), [t("kind", "tipo"), t("bits a key", "bits por clave"), t("theory", "teoría"), t("measured", "medida")],
                shown.flatMap(({ kind }, i) => points[i].map((q) => [kind, number(q.bits, 2), percent(q.expected), percent(q.measured)])))));
    }

    drawFill() {
        const { engine } = this.app;
        const filter = engine.bloom(FILL_BITS, FILL_K);
        const each = 400, rows = [];
        for (let step = 0; step < FILL_STEPS; step++) {
            filter.add(engine.hashes(inventedWords(step * each, each)));
            const n = (step + 1) * each, info = filter.info();
            rows.push({ n, fill: info.fill, theory: bloomFormula(FILL_BITS, FILL_K, n), measured: measure(engine, filter, 5, PROBES) });
        }
        filter.free();
        const color = hue(0);
        this.fillPlot?.destroy();
        this.fillPlot = this.plot(this.fillBox, t("share of bits set", "parte de bits encendidos"), t("false-positive rate", "tasa de falsos positivos"), [
            { label: t("theory", "teoría"), stroke: color, width: 2, points: { show: false } },
            { label: t("measured", "medida"), stroke: color, paths: () => null, points: { show: true, size: 8, stroke: color, fill: color } }],
        [rows.map((r) => r.fill), rows.map((r) => r.theory), rows.map((r) => r.measured || null)]);
        fill(this.fillTable, h("details", null, h("summary", null, t("The same as a table", "Lo mismo en una tabla")),
            table(t("Rate against fill", "Tasa según el llenado"), [t("words", "palabras"), t("fill", "llenado"), t("theory", "teoría"), t("measured", "medida")],
                rows.map((r) => [number(r.n), percent(r.fill), percent(r.theory), percent(r.measured)]))));
    }
}
