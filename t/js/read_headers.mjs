// read_headers.mjs DIR: what the npm packages installed in DIR find in headers.
//
// In: a response's headers, as a JSON object. Out, as JSON:
//   x       what ratelimit-header-parser reads, null where it finds nothing;
//           its moment of reset is a Unix time in seconds
//   ietf    RateLimit-Policy and RateLimit as structured-headers reads them: the
//           members, and the field as that package would write it

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const require = createRequire(`${process.argv[2]}/`);
const { parseRateLimit } = require('ratelimit-header-parser');
const { parseList, serializeList } = require('structured-headers');

// The clock stands at 0: "in 60 seconds" is then 60, however long this takes.
globalThis.Date = class extends Date {
    constructor(...given) {
        super(...(given.length ? given : [0]));
    }
};

const headers = new Headers(JSON.parse(readFileSync(0, 'utf8')));

function readX(options) {
    const found = parseRateLimit(headers, options);
    return found ? { ...found, reset: found.reset && found.reset.getTime() / 1000 } : null;
}

function readIetf(name) {
    const text = headers.get(name);
    if (text === null) {
        return null;
    }

    const list = parseList(text);
    const members = list.map(([item, parameters]) => ({
        name: item,
        type: typeof item,
        ...Object.fromEntries(parameters),
    }));

    return { members, canonical: serializeList(list) };
}

console.log(JSON.stringify({
    x: { guessed: readX(), seconds: readX({ reset: 'seconds' }), unix: readX({ reset: 'unix' }) },
    ietf: { policy: readIetf('ratelimit-policy'), service: readIetf('ratelimit') },
}));
