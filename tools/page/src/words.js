// SPDX-License-Identifier: MIT
// Words that nobody ever said, for filling filters and stores: syllables by a small generator with a seed, the same on every
// machine. Word number i is always the same, and no two numbers give the same word.

const onsets = ["b", "c", "d", "f", "g", "l", "m", "n", "p", "r", "s", "t", "v", "z", "br", "tr"];
const vowels = ["a", "e", "i", "o", "u", "ia", "ue", "io"];

// A bijection on 21 bits, so that neighbours differ in every syllable: odd multiplier, then an exclusive or of a shift.
const BITS = 21, MASK = (1 << BITS) - 1;
const shuffle = (i) => {
    let x = (Math.imul(i & MASK, 1234567) ^ 0x155555) & MASK;
    x ^= x >> 10;
    return Math.imul(x, 987653) & MASK;
};

export const MOST_WORDS = 1 << BITS;

export function inventedWord(i) {
    let x = shuffle(i), word = "";
    for (let part = 0; part < 3; part++, x >>= 7) word += onsets[x & 15] + vowels[(x >> 4) & 7];
    return word;
}

export const inventedWords = (first, n) => Array.from({ length: n }, (_, i) => inventedWord(first + i));

// Numbers from here on are never filled in: words that are surely absent.
export const ABSENT = 1 << 20;

// One word a line, or between blanks and commas where it is a single line of text. Empty ones vanish.
export const wordsOf = (text) => (text.includes("\n") ? text.split(/\r?\n/) : text.split(/[\s,;]+/)).map((w) => w.trim()).filter(Boolean);
