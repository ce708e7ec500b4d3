// usage.mjs JUDGE COUNT SEED: makes up bodies of JSON and of event streams, has JUDGE
// (t/model/usage_judge.cpp) say which usage they tell of, and finds it itself with JSON.parse.
//
// JSON.parse makes doubles of numbers. So each document is written twice, the second time with
// 0, 1, 2 … in the place of its numbers: parsed, that says which of them it is, and what it is
// rounded up to is reckoned with whole numbers of any size.
//
// Out, as JSON: how many documents were compared, how many bodies had a usage, how many had none, how
// many were spoilt so that there is nothing to compare, and some about which the two do not agree.

import { diceOf, judgedBy } from './made_up.mjs';

const [judge, count, seed] = process.argv.slice(2);
const { below, oneOf } = diceOf(seed);
const times = (n, make) => Array.from({ length: n }, make);

// Few, so that paths often lead somewhere, and keys are often there twice.
const names = ['usage', 'total', 'a', 'b', 'é', '😀', 'a/b', 'q"\\', 'length', '__proto__', '0', '1', '2', '01',
    'k'.repeat(64)];

const digits = (most) => times(1 + below(most), () => below(10)).join('');

function makeNumber() {
    const whole = oneOf(['0', '0', '7', '12', '100', '999999999999999', () => `${1 + below(9)}${digits(20)}`,
        () => `${1 + below(9)}${'0'.repeat(below(300))}`]);
    const fraction = oneOf(['', '', '', '.0', '.5', '.25', '.000', () => `.${digits(20)}`,
        () => `.${'0'.repeat(below(300))}${below(10)}`]);
    const exponent = oneOf(['', '', '', 'e1', 'E+2', 'e-1', 'e-3', 'e0', 'e-0',
        () => `e${oneOf(['', '-', '+'])}${below(320)}`, () => `e${oneOf(['', '-'])}${digits(40)}`]);
    const text = (part) => (typeof part === 'function' ? part() : part);

    return oneOf(['', '', '', '-']) + text(whole) + text(fraction) + text(exponent);
}

// null if it is below zero.
function roundedUp(number) {
    const [, minus, whole, fraction = '', exponent = '0'] =
        number.match(/^(-?)(\d+)(?:\.(\d+))?(?:[eE]([-+]?\d+))?$/);
    const mantissa = BigInt(whole + fraction);
    const shift = BigInt(exponent) - BigInt(fraction.length);
    const largest = 10n ** 15n;

    if (mantissa === 0n) return 0n;
    if (minus) return null;
    if (shift > 20n) return largest;
    if (shift < -2000n) return 1n;   // of no number here are there as many digits

    const rounded = shift >= 0n ? mantissa * 10n ** shift : (mantissa + 10n ** -shift - 1n) / 10n ** -shift;
    return rounded < largest ? rounded : largest;
}

// A string of JSON, in one of many ways to write it.
function quoted(text) {
    const escape = (unit) => `\\u${oneOf([(hex) => hex, (hex) => hex.toUpperCase()])(
        unit.charCodeAt(0).toString(16).padStart(4, '0'))}`;
    const written = [...text].map((character) => {
        if (below(6) === 0) return [...character.split('')].map(escape).join('');
        if (character === '/' && below(2)) return '\\/';
        return JSON.stringify(character).slice(1, -1);
    });
    return `"${written.join('')}"`;
}

const makeText = () => oneOf([() => oneOf(names), () => '{"usage":{"total":7}}', () => 'data: {"a":1}\n\n', () => '\\',
    () => '"]}', () => times(below(100), () => oneOf([...'abc\\"{}[],: \n\té'])).join('')])();

// Where numbers stand their texts do, in objects, so that they can be written in two ways.
function makeValue(depth, space) {
    const gap = () => oneOf(['', '', '', space()]);
    const list = (open, close, members) => [
        open, gap(), ...members.flatMap((member, i) => (i ? [',', gap(), ...member, gap()] : [...member, gap()])), close];
    const member = () => [quoted(oneOf(names)), gap(), ':', gap(), ...makeValue(depth + 1, space)];
    const kind = depth === 0 ? 7 + below(14) : below(depth < 5 ? 18 : 8);

    switch (kind) {
    case 0: return [oneOf(['true', 'false', 'null'])];
    case 1: case 2: return [quoted(makeText())];
    case 3: case 4: case 5: case 6: case 7: return [{ number: makeNumber() }];
    case 8: case 9: case 10: return list('[', ']', times(below(4), () => makeValue(depth + 1, space)));
    case 11: if (below(20) === 0) return makeDeep(space);   // falls through
    default: return list('{', '}', times(below(5), member));
    }
}

function makeDeep(space) {
    const brackets = times(1 + below(300), () => oneOf([['[', ']'], ['{"a":', '}'], ['{"b":"","usage":', '}']]));
    return [brackets.map(([open]) => open).join(''), ...makeValue(5, space),
        brackets.map(([, close]) => close).reverse().join('')];
}

// A document, as it is and as it is parsed.
function makeDocument(space) {
    const parts = makeValue(0, space);
    const numbers = [];

    return {
        text: parts.map((part) => part.number ?? part).join(''),
        parsed: JSON.parse(parts.map((part) => (part.number ? numbers.push(part.number) - 1 : part)).join('')),
        numbers,
    };
}

function find(value, path) {
    for (const name of path) {
        const isThere = Array.isArray(value) ? isIndex(name) && Object.hasOwn(value, name)
            : typeof value === 'object' && value !== null && Object.hasOwn(value, name);
        if (!isThere) return undefined;
        value = value[name];
    }
    return value;
}

function usageOf({ parsed, numbers }, paths) {
    for (const path of paths) {
        const found = find(parsed, path);
        const usage = typeof found === 'number' ? roundedUp(numbers[found]) : null;
        if (usage !== null) return usage;
    }
    return null;
}

const isIndex = (name) => /^(0|[1-9]\d*)$/.test(name);

// Of an array that is a list of documents these; the numbers are those of all.
function documentsIn({ parsed, numbers }, paths) {
    const isList = Array.isArray(parsed) && !paths.some(([first]) => isIndex(first));
    return (isList ? parsed : [parsed]).map((one) => ({ parsed: one, numbers }));
}

// One that leads somewhere in a document, or one that rarely does.
function makePath({ parsed: document }) {
    const parsed = Array.isArray(document) && document.length && below(2) ? oneOf(document) : document;

    if (below(3) === 0) return times(1 + below(3), () => oneOf(names));

    const path = [];
    for (let value = parsed; typeof value === 'object' && value !== null && path.length < 8;) {
        const keys = Object.keys(value);
        if (keys.length === 0) break;
        path.push(oneOf(keys));
        value = value[path.at(-1)];
    }
    return path.length ? path : ['usage'];
}

function makeJson() {
    const documents = times(1 + below(below(3) ? 1 : 4), () => makeDocument(() => oneOf([' ', '\n  ', '\t', '\r\n'])));
    return { documents, body: documents.map(({ text }) => text + oneOf(['\n', ' ', '\r\n\r\n'])).join('') };
}

// Line ends within a document become lines of data; others are in its strings as escapes.
function makeEvents() {
    const documents = times(1 + below(4), () => makeDocument(() => oneOf([' ', '\n  ', '\n\n', '\t'])));
    const end = oneOf(['\n', '\r\n', '\r']);
    const line = () => oneOf(['', '', '', `: {"a":1}${end}`, `event: message${end}`, `id${end}`, `datas: 1${end}`]);
    const value = (data) => (data === '' && below(2) ? ''
        : `:${data.startsWith(' ') || below(2) ? ' ' : ''}${data}`);
    const after = () => oneOf(['', '', end, `data: [DONE]${end}${end}`]);
    const events = documents.map(({ text }) =>
        text.split('\n').map((data) => `${line()}data${value(data)}${end}`).join('') + end + after());

    return { documents, body: events.join('') };
}

function spoil(bytes) {
    if (below(2)) return bytes.subarray(0, below(bytes.length));

    const spoilt = [...bytes];
    const signs = [...Buffer.from('{}[]",:\\ \n\r-+.eE019u'), below(256)];
    for (let n = 1 + below(3); n > 0; n--) spoilt.splice(below(spoilt.length + 1), below(2), oneOf(signs));
    return Buffer.from(spoilt);
}

const hex = (bytes) => Buffer.from(bytes).toString('hex');

function makeCase() {
    const format = oneOf(['json', 'events']);
    const { documents, body } = format === 'json' ? makeJson() : makeEvents();
    const paths = times(1 + below(4), () => makePath(oneOf(documents)));
    const isSpoilt = below(5) === 0;
    const bytes = Buffer.from((below(20) ? '' : '\ufeff') + body);
    const usages = documents.flatMap((document) => documentsIn(document, paths))
        .map((document) => usageOf(document, paths)).filter((usage) => usage !== null);

    return {
        line: [format, 1 + below(oneOf([2, 20, 200])), hex(paths.map((path) => path.join('.')).join(' ')),
            hex(isSpoilt ? spoil(bytes) : bytes)].join(' '),
        documents: isSpoilt ? 0 : documents.length,
        expected: isSpoilt ? undefined : String(usages.at(-1) ?? -1),
    };
}

const result = { documents: 0, found: 0, none: 0, spoilt: 0, differences: [] };

for (let left = Number(count); left > 0;) {
    const cases = times(Math.min(left, 10_000), makeCase);
    const judged = judgedBy(judge, cases.map(({ line }) => line));

    left -= cases.length;
    if (judged.length !== cases.length) result.differences.push(`${judged.length} answers`);

    cases.forEach(({ line, documents, expected }, i) => {
        result.documents += documents;

        if (expected === undefined) result.spoilt++;
        else if (expected === '-1') result.none++;
        else result.found++;

        if (expected === undefined ? !/^-?\d+$/.test(judged[i]) : judged[i] !== expected)
            result.differences.push(`${line}: ${judged[i]} instead of ${expected ?? 'one number'}`);
    });
}

result.differences.length = Math.min(result.differences.length, 10);
console.log(JSON.stringify(result));
