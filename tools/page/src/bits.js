// SPDX-License-Identifier: MIT
// The bits on a canvas: one square each, drawn only when something changed, by requestAnimationFrame. A newly set bit glows for a
// moment, unless the reader wants less motion.

const GLOW_MS = 700;

export const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

export const colors = () => {
    const style = getComputedStyle(document.documentElement);
    const of = (name) => style.getPropertyValue(name).trim();
    return { clear: of("--bit-clear"), set: of("--bit-set"), glow: of("--bit-glow"), mine: of("--bit-mine"), yes: of("--bit-yes"), no: of("--bit-no"),
        cursor: of("--text") };
};

export class BitCanvas {
    constructor(canvas) {
        this.canvas = canvas;
        this.pen = canvas.getContext("2d");
        this.values = new Uint8Array(0); // 0: clear; counters may be more than 1
        this.since = new Float64Array(0);
        this.marks = new Map(); // bit -> "mine", "yes" or "no"
        this.cursor = -1;
        this.frames = []; // milliseconds that each drawing took
        this.waiting = false;
        this.theme();
    }

    theme() {
        this.color = colors();
        this.ask();
    }

    show(values) {
        const grown = values.length === this.values.length;
        const now = performance.now();
        const since = new Float64Array(values.length);
        for (let i = 0; i < values.length; i++) since[i] = !grown ? -GLOW_MS : values[i] && !this.values[i] ? now : this.since[i];
        this.values = values;
        this.since = since;
        this.ask();
    }

    mark(marks) {
        this.marks = marks;
        this.ask();
    }

    point(cursor) {
        this.cursor = cursor;
        this.ask();
    }

    layout() {
        const ratio = window.devicePixelRatio || 1;
        const width = Math.max(this.canvas.parentElement.clientWidth, 64);
        const columns = this.values.length <= 128 ? 16 : this.values.length <= 1024 ? 32 : 64;
        const cell = Math.min(width / columns, 40);
        const rows = Math.ceil(this.values.length / columns);
        const w = Math.round(columns * cell * ratio), height = Math.round(rows * cell * ratio);
        if (this.canvas.width !== w || this.canvas.height !== height) {
            this.canvas.width = w;
            this.canvas.height = height;
            this.canvas.style.width = `${columns * cell}px`;
            this.canvas.style.height = `${rows * cell}px`;
        }
        return { columns, cell: cell * ratio };
    }

    // The bit at a place of the page, or -1.
    at(x, y) {
        const box = this.canvas.getBoundingClientRect();
        const { columns } = this.layout();
        const cell = box.width / columns;
        const bit = Math.floor((y - box.top) / cell) * columns + Math.floor((x - box.left) / cell);
        return x >= box.left && x < box.right && bit >= 0 && bit < this.values.length ? bit : -1;
    }

    ask() {
        if (this.waiting) return;
        this.waiting = true;
        requestAnimationFrame((now) => {
            this.waiting = false;
            const started = performance.now();
            const more = this.draw(now);
            this.frames.push(performance.now() - started);
            if (this.frames.length > 240) this.frames.shift();
            if (more) this.ask();
        });
    }

    // true: something still moves.
    draw(now) {
        if (!this.canvas.isConnected) return false;
        const { columns, cell } = this.layout();
        const { pen, color } = this;
        const gap = cell > 6 ? Math.max(1, cell * 0.12) : 0.5, size = cell - gap;
        const still = calm();
        let moving = false;
        const draw = (i, style) => {
            pen.fillStyle = style;
            pen.fillRect((i % columns) * cell, Math.floor(i / columns) * cell, size, size);
        };
        pen.clearRect(0, 0, this.canvas.width, this.canvas.height);
        for (const wanted of [0, 1]) {
            // One colour after the other: changing it costs more than the squares.
            pen.fillStyle = wanted ? color.set : color.clear;
            for (let i = 0; i < this.values.length; i++)
                if ((this.values[i] ? 1 : 0) === wanted) pen.fillRect((i % columns) * cell, Math.floor(i / columns) * cell, size, size);
        }
        for (let i = 0; i < this.values.length && !still; i++) {
            const age = now - this.since[i];
            if (!this.values[i] || age >= GLOW_MS) continue;
            pen.globalAlpha = Math.min(1, 1 - age / GLOW_MS);
            draw(i, color.glow);
            moving = true;
        }
        pen.globalAlpha = 1;
        for (const [bit, how] of this.marks) draw(bit, color[how]);
        if (cell >= 16) this.counters(columns, cell, size);
        if (this.cursor >= 0) {
            pen.strokeStyle = color.cursor;
            pen.lineWidth = Math.max(2, cell * 0.1);
            pen.strokeRect((this.cursor % columns) * cell, Math.floor(this.cursor / columns) * cell, size, size);
        }
        return moving;
    }

    // Numbers in squares that hold more than one bit can say.
    counters(columns, cell, size) {
        const { pen } = this;
        pen.fillStyle = this.color.clear;
        pen.font = `${Math.floor(size * 0.6)}px system-ui, sans-serif`;
        pen.textAlign = "center";
        pen.textBaseline = "middle";
        for (let i = 0; i < this.values.length; i++)
            if (this.values[i] > 1) pen.fillText(this.values[i], (i % columns) * cell + size / 2, Math.floor(i / columns) * cell + size / 2);
    }
}
