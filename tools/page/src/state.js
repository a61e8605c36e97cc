// SPDX-License-Identifier: MIT
// What can be shared stands in the address, behind the #: a teacher's link opens the same filter, store or lesson. Whatever is
// malformed there is left out, and the default stands.

const clamp = (text, low, high, otherwise) => {
    const x = Number(text);
    return text !== null && text !== "" && Number.isFinite(x) ? Math.min(high, Math.max(low, x)) : otherwise;
};

export const VIEWS = ["filter", "store", "curves", "lessons"];
export const LIMITS = { m: [64, 4096], k: [1, 16] };
const WORDS_IN_ADDRESS = 200;

export const wholeBits = (m) => Math.min(LIMITS.m[1], Math.max(LIMITS.m[0], Math.round(m / 64) * 64));

export function readState(hash) {
    const q = new URLSearchParams(hash.replace(/^#/, ""));
    const view = VIEWS.includes(q.get("view")) ? q.get("view") : "filter";
    return {
        view,
        lang: q.get("lang"),
        filter: {
            m: wholeBits(clamp(q.get("m"), ...LIMITS.m, 256)),
            k: Math.round(clamp(q.get("k"), ...LIMITS.k, 4)),
            words: q.has("words") ? q.get("words").split(",").map((w) => w.slice(0, 200)).filter(Boolean) : null,
            drawn: q.get("drawn") === "counting" ? "counting" : "bloom",
            seed: Math.round(clamp(q.get("seed"), 1, 1e9, 1)),
            n: Math.round(clamp(q.get("n"), 1, 1e9, 100)),
            p: clamp(q.get("p"), 1e-9, 0.999, 0.01),
        },
        store: {
            kind: q.get("kind") ?? "bloom",
            bits: clamp(q.get("bits"), 1, 24, 10),
            shape: ["leveled", "tiered", "lazy"].includes(q.get("shape")) ? q.get("shape") : "leveled",
            fill: Math.round(clamp(q.get("fill"), 0, 50000, 0)),
            key: (q.get("key") ?? "").slice(0, 200),
        },
        lesson: Math.round(clamp(q.get("lesson"), 1, 6, 1)),
    };
}

export function writeState(state) {
    const q = new URLSearchParams({ view: state.view, lang: state.lang });
    const { filter: f, store: s } = state;
    if (state.view === "filter") {
        q.set("m", f.m);
        q.set("k", f.k);
        q.set("drawn", f.drawn);
        q.set("n", f.n);
        q.set("p", f.p);
        if (f.seed !== 1) q.set("seed", f.seed);
        if (f.words && f.words.length <= WORDS_IN_ADDRESS && !f.words.some((w) => w.includes(","))) q.set("words", f.words.join(","));
    }
    if (state.view === "store") {
        q.set("kind", s.kind);
        q.set("bits", s.bits);
        q.set("shape", s.shape);
        if (s.fill) q.set("fill", s.fill);
        if (s.key) q.set("key", s.key);
    }
    if (state.view === "lessons") q.set("lesson", state.lesson);
    return `#${q}`;
}
