// What scripts have in common that make up cases, have a program judge them, and judge them as well.

import { execFileSync } from 'node:child_process';

// The same numbers for the same seed (mulberry32).
export function diceOf(seed) {
    let state = Number(seed) >>> 0;

    function below(n) {
        state = (state + 0x6d2b79f5) >>> 0;
        let t = Math.imul(state ^ (state >>> 15), state | 1);
        t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
        return ((t ^ (t >>> 14)) >>> 0) % n;
    }

    return { below, oneOf: (list) => list[below(list.length)] };
}

// What the program says to these lines, a line for each.
export function judgedBy(program, lines) {
    return execFileSync(program, {
        input: lines.map((line) => `${line}\n`).join(''),
        encoding: 'ascii',
        maxBuffer: 1 << 30,
    }).trimEnd().split('\n');
}
