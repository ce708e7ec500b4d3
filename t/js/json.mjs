// json.mjs JUDGE COUNT SEED: makes up texts that are JSON, or nearly, has JUDGE
// (t/model/json_judge.cpp) say what they are, and says so itself.
//
// Out, as JSON: how many texts were JSON, how many were numbers, and those about
// which the two do not agree.

import { diceOf, judgedBy } from './made_up.mjs';

const [judge, count, seed] = process.argv.slice(2);
const { below, oneOf } = diceOf(seed);

const signs = [...'{}[]",:\\/ \t\r\n-+.eE0159truefalsn\u0000\u001f\u007f<>&\'', 'é', '€', '😀', '\ufeff', '\u2028'];

function makeString() {
    let text = '';
    while (below(4)) text += oneOf(['a', 'é', '😀', '\\n', '\\u00e9', '\\ud83d\\ude00', '\\"', '/', ' ']);
    return `"${text}"`;
}

function makeNumber() {
    return oneOf(['', '-']) + oneOf(['0', '7', '120']) + oneOf(['', '', '.5', '.250'])
        + oneOf(['', '', 'e5', 'E-2', 'e+10']);
}

function makeValue(depth) {
    const space = oneOf(['', '', ' ', '\n\t']);
    const members = () => Array.from({ length: below(4) }, () => makeValue(depth + 1));

    switch (below(depth < 5 ? 6 : 4)) {
    case 0: return oneOf(['true', 'false', 'null']) + space;
    case 1: case 2: return makeNumber() + space;
    case 3: return makeString() + space;
    case 4: return `${space}[${members().join(',')}]`;
    default: return `{${members().map((value) => `${space}${makeString()}:${value}`).join(',')}}`;
    }
}

// Changes a few bytes, which need not stay characters.
function spoil(bytes) {
    let spoilt = [...bytes];

    for (let times = below(3); times > 0; times--) {
        const at = below(spoilt.length + 1);
        const sign = below(8) ? [...Buffer.from(oneOf(signs))] : [below(256)];
        spoilt.splice(at, below(2), ...sign.slice(0, 1 + below(4)));
    }

    return Buffer.from(spoilt);
}

function parse(text) {
    try {
        return { value: JSON.parse(text) };
    } catch {
        return undefined;
    }
}

// Others replace several bytes by one U+FFFD.
const collapsed = (text) => text.replace(/\ufffd+/g, '\ufffd');

const texts = Array.from({ length: Number(count) }, () => spoil(Buffer.from(makeValue(0))));
const judged = judgedBy(judge, texts.map((text) => text.toString('hex')));

const result = { json: 0, numbers: 0, differences: [] };

if (judged.length !== texts.length) result.differences.push(`${judged.length} answers`);

texts.forEach((text, i) => {
    const [isJson, isNumber, ...escaped] = judged[i].split(' ');

    // byte by byte: what is no UTF-8 is not for this to judge
    const plain = text.toString('latin1');
    const parsed = parse(plain);
    const number = parsed && typeof parsed.value === 'number' && /^[-0-9.]+$/.test(plain);
    const strings = escaped.map((hex) => parse(`"${Buffer.from(hex, 'hex').toString('utf8')}"`));

    result.json += parsed ? 1 : 0;
    result.numbers += number ? 1 : 0;

    if (isJson !== (parsed ? '1' : '0') || isNumber !== (number ? '1' : '0')
        || strings.some((string) => !string || collapsed(string.value) !== collapsed(text.toString('utf8')))
        || /[<>&]/.test(Buffer.from(escaped[1], 'hex').toString())) {
        result.differences.push(`${text.toString('hex')}: ${judged[i]}`);
    }
});

console.log(JSON.stringify(result));
