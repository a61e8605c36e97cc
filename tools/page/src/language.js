// SPDX-License-Identifier: MIT
// Two languages, side by side where each sentence stands: t("English", "español"). So none can be missing.

const spanish = { now: false };

export const language = () => (spanish.now ? "es" : "en");
export const setLanguage = (code) => {
    spanish.now = code === "es";
    document.documentElement.lang = language();
};
export const t = (english, spanishWords) => (spanish.now ? spanishWords : english);

export const number = (x, digits = 0) =>
    new Intl.NumberFormat(language(), { maximumFractionDigits: digits, minimumFractionDigits: 0, useGrouping: Math.abs(x) >= 10000 }).format(x);

// Three digits that count, as far as a per cent needs them.
export const percent = (p) => {
    const x = p * 100;
    const digits = x === 0 || x >= 10 ? 1 : x >= 1 ? 2 : x >= 0.01 ? 3 : 5;
    return `${number(x, digits)}\u00a0%`;
};

export const bytes = (n) => (n < 1024 ? `${number(n)} B` : n < 1048576 ? `${number(n / 1024, 1)} KiB` : `${number(n / 1048576, 2)} MiB`);

export const duration = (ms) => (ms < 1 ? `${number(ms * 1000)} µs` : ms < 1000 ? `${number(ms, 1)} ms` : `${number(ms / 1000, 2)} s`);
