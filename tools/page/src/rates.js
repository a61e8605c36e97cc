// SPDX-License-Identifier: MIT
// A measured rate and what so many probes can tell of it.

// The textbook's: every bit is clear with probability e^(-kn/m), and k of them must be set.
export const bloomFormula = (m, k, n) => (1 - Math.exp((-k * n) / m)) ** k;

// Where 99 of 100 measurements of `rate` over n probes lie (the normal approximation of the binomial, widened by half a count).
export function band(rate, n) {
    const half = 2.576 * Math.sqrt((rate * (1 - rate)) / n) + 0.5 / n;
    return [Math.max(0, rate - half), Math.min(1, rate + half)];
}

export const inside = (x, [low, high]) => x >= low - 1e-12 && x <= high + 1e-12;

export function measure(engine, filter, seed, n) {
    const answers = filter.ask(engine.probes(seed, n));
    let maybes = 0;
    for (const a of answers) maybes += a;
    return maybes / n;
}
