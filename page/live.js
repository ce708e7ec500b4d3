// The live page: asks its own URL for JSON every two seconds and shows it. start.js sets
// it going; client.js and changes.js are about a single client.
//
// Names and keys come from clients, so text is only ever set as text. What has not
// changed is not touched: focus, selection and scroll positions stay as they are.

'use strict';

const POLL_EVERY_MS = 2000;
const ANSWER_WITHIN_MS = 10000;
const LONGEST_KEY_SHOWN = 160;

const MINUTES = { rows: 'minutes', step: 60 };
const HOURS = { rows: 'hours', step: 3600 };
const RANGES = {
    '1h': { ...MINUTES, bars: 60, words: 'the last hour', hasTick: (date) => date.getMinutes() % 10 === 0 },
    '6h': { ...MINUTES, bars: 360, words: 'the last 6 hours', hasTick: (date) => date.getMinutes() === 0 },
    '7d': { ...HOURS, bars: 168, words: 'the last 7 days', hasTick: (date) => date.getHours() === 0 },
};

let data = null;             // the last answer
let chosenZone = null;       // its name
let chosenRange = '1h';
let cursorTime = null;       // start of the bar that the tooltip tells of
let timer = null;
let asking = null;           // aborts the request under way

const byId = (id) => document.getElementById(id);

// ---- words and numbers

const NBSP = '\u00a0';
const count = new Intl.NumberFormat('en').format;
const compact = new Intl.NumberFormat('en', { notation: 'compact' }).format;
const axisLabel = (number) => (number < 10000 ? count : compact)(number);
const compactFrom10000 = (number) => (number < 10000 ? upTo1Digit : compact)(number);
const upTo1Digit = new Intl.NumberFormat('en', { maximumFractionDigits: 1 }).format;
const percent = (part, whole) => (whole > 0 ? `${upTo1Digit(100 * part / whole)}${NBSP}%` : '–');
const several = (number, one, many) => `${count(number)} ${number === 1 ? one : many}`;

const dateOf = (seconds) => new Date(seconds * 1000);
const inLocalTime = (options) => {
    const format = new Intl.DateTimeFormat('en-GB', options);
    return (seconds) => format.format(dateOf(seconds));
};
const clock = inLocalTime({ hour: '2-digit', minute: '2-digit' });
const clockWithSeconds = inLocalTime({ hour: '2-digit', minute: '2-digit', second: '2-digit' });
const weekday = inLocalTime({ weekday: 'short' });
const dayAndClock = inLocalTime({ day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' });
const fullDate = inLocalTime({ dateStyle: 'full', timeStyle: 'long' });
const barTime = (time, range) => (range.step === 60 ? clock(time) : `${weekday(time)} ${clock(time)}`);

function timeSpan(seconds) {
    const units = [[86400, 'd'], [3600, 'h'], [60, 'min']];
    const [size, unit] = units.find(([each]) => seconds >= 2 * each) || [1, 's'];
    return `${Math.max(0, Math.floor(seconds / size))}${NBSP}${unit}`;
}

function windowWords(seconds) {
    const units = [[86400, 'd'], [3600, 'h'], [1, 's']];
    const [size, unit] = units.find(([each]) => seconds % each === 0) || [1e-3, 'ms'];
    return `${count(Math.round(seconds / size))}${NBSP}${unit}`;
}

function latency(seconds) {
    const [size, unit] = [[1, 's'], [1e-3, 'ms']].find(([each]) => seconds >= each) || [1e-6, 'µs'];
    return `${Number((seconds / size).toPrecision(2))}${NBSP}${unit}`;
}

const size = (bytes) => (bytes < 1048576 ? `${count(Math.ceil(bytes / 1024))}${NBSP}KiB`
    : `${upTo1Digit(bytes / 1048576)}${NBSP}MiB`);

// The time within which this share of all checks was answered. As Prometheus does, it assumes
// that those within one bucket are spread evenly.
function quantile({ count: total, buckets }, share) {
    const rank = share * total;
    let lower = 0;
    let below = 0;

    if (total === 0) {
        return '–';
    }
    for (const [upper, upToHere] of buckets) {
        if (upToHere >= rank && upToHere > below) {
            return latency(lower + (upper - lower) * (rank - below) / (upToHere - below));
        }
        lower = upper;
        below = upToHere;
    }
    return `> ${latency(lower)}`;
}

// ---- the document

function setText(node, text) {
    if (node.textContent !== text) {
        node.textContent = text;
    }
}

function setAttribute(node, name, value) {
    if (node.getAttribute(name) !== String(value)) {
        node.setAttribute(name, value);
    }
}

function add(parent, tag, { text, ...attributes } = {}) {
    const inSvg = tag === 'svg' || parent instanceof SVGElement;
    const node = inSvg ? document.createElementNS('http://www.w3.org/2000/svg', tag) : document.createElement(tag);

    for (const [name, value] of Object.entries(attributes)) {
        node.setAttribute(name, value);
    }
    if (text !== undefined) {
        node.textContent = text;
    }
    parent.append(node);
    return node;
}

// A name with the colour that stands for it, if there is one.
function addNamed(parent, tag, { look, name }) {
    const node = add(parent, tag);
    if (look) {
        add(node, 'span', { class: `swatch ${look}` });
    }
    add(node, 'span', { text: name });
    return node;
}

// Text of unknown origin: what cannot be seen, or changes how its surroundings are
// read, is written as an escape.
const UNSEEN = /([\p{C}\p{Zl}\p{Zp}])/u;
const asEscape = (character) => `\\u{${character.codePointAt(0).toString(16)}}`;
const withEscapes = (text) => text.replace(new RegExp(UNSEEN, 'gu'), asEscape);

// Shows a client's key; a very long one is cut, and stands whole in the title.
function setKey(node, key) {
    if (node.shownKey === key) {
        return;
    }
    node.shownKey = key;

    const cut = key.length > LONGEST_KEY_SHOWN;

    node.replaceChildren();
    if (key === '') {
        add(node, 'i', { text: '(empty)' });
    }
    for (const part of (cut ? key.slice(0, LONGEST_KEY_SHOWN) : key).split(UNSEEN)) {
        if (UNSEEN.test(part)) {
            add(node, 'i', { text: asEscape(part) });
        } else {
            node.append(part);
        }
    }
    if (cut) {
        add(node, 'i', { text: `… ${count(key.length)} characters` });
    }
    node.title = withEscapes(key);
}

// Makes `table` show `items`, one row each. Rows stay with their item.
// columns: { title, number, fill(cell, item) } or { title, number, text(item) }
function showTable(table, columns, items, idOf) {
    const titles = columns.map((column) => column.title).join('|');
    const lookOf = (column) => (column.number ? 'number' : column.look || '');

    if (table.titles !== titles) {
        table.titles = titles;
        table.replaceChildren();
        const head = add(add(table, 'thead'), 'tr');
        for (const column of columns) {
            add(head, 'th', { scope: 'col', class: lookOf(column), text: column.title });
        }
        table.rowOf = new Map();
        add(table, 'tbody');
    }

    const body = table.tBodies[0];
    const before = table.rowOf;
    table.rowOf = new Map();

    items.forEach((item, index) => {
        let id = idOf(item);
        while (table.rowOf.has(id)) {
            id += ' again';     // masked keys of different clients can be the same
        }
        let row = before.get(id);

        if (!row) {
            row = document.createElement('tr');
            columns.forEach((column, at) => add(row, at ? 'td' : 'th', { class: lookOf(column) }));
            row.cells[0].scope = 'row';
        }
        before.delete(id);
        table.rowOf.set(id, row);
        if (body.rows[index] !== row) {
            body.insertBefore(row, body.rows[index] || null);
        }
        columns.forEach((column, at) => (column.fill
            ? column.fill(row.cells[at], item, row)
            : setText(row.cells[at], column.text(item))));
    });
    before.forEach((row) => row.remove());
}

// ---- periods of time

function periodOf([time, passed, refused, dryRun, failed, clients, refusedClients]) {
    return { time, passed, refused, dryRun, failed, clients, refusedClients, all: passed + refused + failed };
}

const emptyPeriod = (time) => periodOf([time, 0, 0, 0, 0, 0, 0]);
const perClient = (period) => (period.clients > 0 ? upTo1Digit(period.all / period.clients) : '–');

// One period for every bar, oldest first; the last one is still running.
function periods(zone, range) {
    const last = Math.floor(data.now / range.step) * range.step;
    const first = last - (range.bars - 1) * range.step;
    const found = Array.from({ length: range.bars }, (_, index) => emptyPeriod(first + index * range.step));

    for (const row of zone[range.rows]) {
        const index = Math.floor((row[0] - first) / range.step);
        if (index >= 0 && index < range.bars) {
            found[index] = periodOf(row);
        }
    }
    return found;
}

const highest = (list, valueOf) => list.reduce((best, each) => (valueOf(each) > valueOf(best) ? each : best));
const sum = (list, valueOf) => list.reduce((total, each) => total + valueOf(each), 0);

// ---- charts

const REQUESTS = {
    title: 'Requests',
    unit: ['request', 'requests'],
    of: (period) => period.all,
    sayAll: (list) => ['passed', 'refused', 'failed']
        .map((result) => `${count(sum(list, (period) => period[result]))} ${result}`).join(', '),
    series: [
        { look: 'passed', name: 'passed', of: (period) => period.passed - period.dryRun },
        { look: 'dry-run', name: 'passed, a dry run would refuse', of: (period) => period.dryRun, onlyIfAny: true },
        { look: 'refused', name: 'refused', of: (period) => period.refused },
        { look: 'failed', name: 'failed', of: (period) => period.failed },
    ],
};

const CLIENTS = {
    title: 'Distinct clients',
    unit: ['client', 'clients'],
    of: (period) => Math.max(period.clients, period.refusedClients),
    sayAll: (list) => `${count(Math.round(sum(list, (period) => period.clients) / list.length))} on average`,
    series: [
        { look: 'clients', name: 'never refused', of: (period) => Math.max(0, period.clients - period.refusedClients) },
        { look: 'refused', name: 'refused at least once', of: (period) => period.refusedClients },
    ],
};

// Stacks bars upon bars; those of one series are one path.
function stackBars(kind, list, { left, bottom, slot, perUnit }, paths) {
    const width = (slot - (slot > 8 ? 2 : slot > 3 ? 0.5 : 0)).toFixed(2);
    const below = list.map(() => 0);

    kind.series.forEach((series, at) => {
        let path = '';
        list.forEach((period, index) => {
            const height = series.of(period) * perUnit;
            if (height > 0) {
                path += `M${(left + index * slot).toFixed(2)} ${(bottom - below[index]).toFixed(2)}`
                    + `v${(-height).toFixed(2)}h${width}v${height.toFixed(2)}z`;
                below[index] += height;
            }
        });
        setAttribute(paths[at], 'd', path);
    });
}

function makeChart(figure, kind) {
    const caption = figure.querySelector('figcaption');
    add(caption, 'strong', { text: kind.title });
    const legend = kind.series.map((series) => addNamed(caption, 'span', series));
    const peakWords = add(caption, 'span', { class: 'peak' });

    const svg = add(figure, 'svg', { role: 'img' });
    const grid = add(svg, 'g');
    const paths = kind.series.map((series) => add(svg, 'path', { class: series.look }));
    const running = add(svg, 'rect', { class: 'running' });
    const cursor = add(svg, 'rect', { class: 'cursor' });
    const peakMark = add(svg, 'path', { class: 'peak-mark' });

    let place = null;       // where the bars are, in pixels

    function findPlace(list, most) {
        const { width, height } = svg.getBoundingClientRect();
        const lines = height > 150 ? 4 : 2;
        const magnitude = 10 ** Math.floor(Math.log10(Math.max(1, most / lines)));
        const unit = [1, 2, 5, 10].map((factor) => factor * magnitude).find((each) => each * lines >= most);
        const upTo = Math.max(1, Math.ceil(most / unit)) * unit;
        const [top, right, bottom, left] = [12, Math.max(width, 50) - 2, height - 22, 42];

        place = {
            top, right, bottom, left, unit, upTo, slot: (right - left) / list.length, perUnit: (bottom - top) / upTo,
        };
    }

    // Draws lines and labels of both axes anew, if one of them has changed.
    function drawGrid(list, range) {
        const { left, right, bottom, slot, unit, upTo, perUnit } = place;
        const across = [];
        for (let value = 0; value <= upTo; value += unit) {
            across.push([Math.round(bottom - value * perUnit), axisLabel(value)]);
        }

        // from right to left, as many as there is room for
        const along = [];
        for (let index = list.length - 1; index >= 0; index--) {
            const x = Math.round(left + (index + 0.5) * slot);
            const fits = x - 16 > left && (along.length === 0 || along.at(-1)[0] - x >= 46);
            if (fits && range.hasTick(dateOf(list[index].time))) {
                along.push([x, range.step === 60 ? clock(list[index].time) : weekday(list[index].time)]);
            }
        }

        const signature = JSON.stringify([left, right, bottom, across, along]);
        if (grid.signature === signature) {
            return;
        }
        grid.signature = signature;
        grid.replaceChildren();
        for (const [y, text] of across) {
            add(grid, 'path', { class: 'grid', d: `M${left} ${y}H${right}` });
            add(grid, 'text', { x: left - 6, y: y + 4, 'text-anchor': 'end', text });
        }
        for (const [x, text] of along) {
            add(grid, 'path', { class: 'grid', d: `M${x} ${bottom}v4` });
            add(grid, 'text', { x, y: bottom + 16, 'text-anchor': x > right - 18 ? 'end' : 'middle', text });
        }
    }

    function cover(rect, index) {
        rect.toggleAttribute('hidden', index < 0);
        setAttribute(rect, 'x', place.left + index * place.slot);
        setAttribute(rect, 'y', place.top);
        setAttribute(rect, 'width', Math.max(1, place.slot));
        setAttribute(rect, 'height', place.bottom - place.top);
    }

    function draw(list, range) {
        const peak = highest(list, kind.of);
        const most = kind.of(peak);

        findPlace(list, most);
        drawGrid(list, range);
        stackBars(kind, list, place, paths);
        cover(running, list.length - 1);
        cover(cursor, list.findIndex((period) => period.time === cursorTime));

        const peakX = place.left + (list.indexOf(peak) + 0.5) * place.slot;
        const peakY = place.bottom - most * place.perUnit - 2;
        setAttribute(peakMark, 'd', most > 0 ? `M${peakX.toFixed(1)} ${peakY.toFixed(1)}l-4 -7h8z` : '');
        setText(peakWords, most > 0 ? `▼ peak: ${barTime(peak.time, range)}, ${several(most, ...kind.unit)}` : '');

        kind.series.forEach((series, index) => {
            legend[index].toggleAttribute('hidden', Boolean(series.onlyIfAny) && sum(list, series.of) === 0);
        });
        setAttribute(svg, 'aria-label', `${kind.title} in ${range.words}: ${kind.sayAll(list)}`
            + `${most > 0 ? `; peak ${barTime(peak.time, range)}, ${several(most, ...kind.unit)}` : ''}.`);
    }

    return {
        draw,
        barAt: (clientX) => Math.floor((clientX - svg.getBoundingClientRect().left - place.left) / place.slot),
        middleOf: (index) => place.left + (index + 0.5) * place.slot,
    };
}

const charts = [makeChart(byId('requests'), REQUESTS), makeChart(byId('clients'), CLIENTS)];

// What the tooltip says of a period, and the arrow keys read out.
const READINGS = [
    { look: 'passed', name: 'passed', of: (period) => count(period.passed) },
    {
        look: 'dry-run',
        name: 'dry run refuses',
        of: (period) => count(period.dryRun),
        isShown: (period) => period.dryRun > 0,
    },
    { look: 'refused', name: 'refused', of: (period) => count(period.refused) },
    { look: 'failed', name: 'failed', of: (period) => count(period.failed) },
    { look: 'clients', name: 'clients, about', of: (period) => count(period.clients) },
    { look: 'refused', name: 'of them refused', of: (period) => count(period.refusedClients) },
    { name: 'requests per client', of: perClient },
];

const tooltip = byId('tooltip');
const tooltipTitle = add(add(tooltip, 'p'), 'span');
for (const reading of READINGS) {
    reading.line = addNamed(tooltip, 'p', reading);
    reading.value = add(reading.line, 'span');
}

const currentZone = () => data && data.zones.find((zone) => zone.name === chosenZone);
const currentBars = () => (currentZone() ? periods(currentZone(), RANGES[chosenRange]) : []);

function drawCharts() {
    const range = RANGES[chosenRange];
    const list = currentBars();
    if (list.length === 0) {
        return;
    }
    charts.forEach((chart) => chart.draw(list, range));

    const at = list.findIndex((period) => period.time === cursorTime);
    tooltip.hidden = at < 0;
    if (at < 0) {
        return;
    }

    setText(tooltipTitle, barTime(list[at].time, range) + (at === list.length - 1 ? ', so far' : ''));
    for (const reading of READINGS) {
        reading.line.hidden = Boolean(reading.isShown) && !reading.isShown(list[at]);
        setText(reading.value, reading.of(list[at]));
    }
    // beside the bar, where there is more room
    const x = charts[0].middleOf(at);
    const isRight = x > byId('charts').clientWidth / 2;
    tooltip.style.left = `${Math.max(0, isRight ? x - tooltip.offsetWidth - 12 : x + 12)}px`;
}

function pointAt(index) {
    const bar = currentBars()[index];
    cursorTime = bar ? bar.time : null;
    drawCharts();
}

function pointWithKeys(event) {
    const list = currentBars();
    const at = list.findIndex((period) => period.time === cursorTime);
    const last = list.length - 1;
    const target = {
        ArrowLeft: at < 0 ? last : Math.max(0, at - 1),
        ArrowRight: at < 0 ? last : Math.min(last, at + 1),
        Home: 0,
        End: last,
        Escape: -1,
    }[event.key];

    if (target === undefined || event.altKey || event.ctrlKey || event.metaKey) {
        return;
    }
    event.preventDefault();
    pointAt(target);
    const readings = READINGS.filter((reading) => !reading.line.hidden)
        .map((reading) => `${reading.name} ${reading.value.textContent}`);
    setText(byId('readout'), tooltip.hidden ? '' : [tooltipTitle.textContent, ...readings].join(', '));
}

// ---- how much of max requests find used

const TENTHS = 10;

// How many tenths of max are more than what this percentage of all requests find used; the
// least number of them. undefined: too many find nearly all of it used, or are refused.
function boundFor(percentage, found) {
    const all = sum(found, (number) => number);
    let below = 0;

    for (let tenths = 1; tenths < TENTHS; tenths++) {
        below += found[tenths - 1];
        if (100 * below >= percentage * all) {
            return { percentage: below === all ? 100 : percentage, tenths };
        }
    }
    return undefined;
}

// What is shown in whole tenths of a per cent must not look like none, or like all.
function shareWords(part, whole) {
    const shown = Math.round(1000 * part / whole) / 10;

    if (part === 0 || part === whole) {
        return part === 0 ? 'none' : 'all';
    }
    return shown === 0 ? `less than 0.1${NBSP}%` : shown === 100 ? `more than 99.9${NBSP}%` : percent(part, whole);
}

function refusedWords({ rejected, banned, rejected_dry_run: dryRun }) {
    if (dryRun === 0) {
        return 'are refused';
    }
    return rejected + banned === 0 ? 'would be refused' : 'are refused, or would be but for a dry run';
}

// Says it in one sentence, which is true of the counters; '' if there are no requests. Shares
// are of what each client may use: an override is another max than that of the zone.
function foundUsedWords({ found_used: found, max, requests }) {
    const all = sum(found, (number) => number);
    const refused = found[TENTHS];
    const ofMax = (tenths) => `${TENTHS * tenths}${NBSP}% of max used`
        + (max === 'varies' ? '' : ` (${count(Math.ceil(max * tenths / TENTHS))} of ${count(max)})`);

    if (all === 0 || refused === all) {
        return all === 0 ? '' : `All requests ${refusedWords(requests)}.`;
    }

    const { percentage, tenths } = boundFor(99, found) || boundFor(90, found) || boundFor(50, found)
        || { tenths: TENTHS - 1 };
    const who = percentage === undefined ? 'Not even half of all requests'
        : percentage === 100 ? 'All requests' : `${percentage}${NBSP}% of requests`;

    return `${who} find less than ${ofMax(tenths)}; ${shareWords(refused, all)} ${refusedWords(requests)}.`;
}

const foundBars = Array.from({ length: TENTHS + 1 }, (_, at) => {
    const svg = byId('found-used').querySelector('svg');
    const isRefused = at === TENTHS;
    const left = isRefused ? 92 : 9 * at;
    const bar = add(svg, 'rect', { class: isRefused ? 'refused' : 'passed', x: `${left}%`, width: '8%' });

    bar.name = isRefused ? 'refused' : `${TENTHS * at} to ${TENTHS * (at + 1)}${NBSP}%`;
    bar.words = add(bar, 'title');
    if (isRefused) {
        add(svg, 'text', { x: '100%', y: '100%', dy: 14, 'text-anchor': 'end', text: 'refused' });
    } else if (at % 2 === 0) {
        add(svg, 'text', { x: `${left}%`, y: '100%', dy: 14, text: `${TENTHS * at}${NBSP}%` });
    }
    return bar;
});

function showFoundUsed(zone) {
    const figure = byId('found-used');
    const found = zone.found_used;
    const most = Math.max(...found);

    figure.hidden = most === 0;
    setText(byId('found-used-words'), foundUsedWords(zone));
    foundBars.forEach((bar, at) => {
        const height = found[at] > 0 ? Math.max(2, 100 * found[at] / most) : 0;
        setAttribute(bar, 'y', `${(100 - height).toFixed(1)}%`);
        setAttribute(bar, 'height', `${height.toFixed(1)}%`);
        setText(bar.words, `${bar.name}: ${several(found[at], 'request', 'requests')}`);
    });
    setAttribute(figure.querySelector('svg'), 'aria-label', `Requests by how much of max they found used: ${
        foundBars.filter((bar, at) => found[at] > 0).map((bar) => bar.words.textContent).join(', ')}.`);
}

// ---- what requests cost in the end, where that is settled when they are answered

const FEWEST_COST_BARS = 6;

// In words; '' if nothing has been settled yet. Whose reservation stood has cost just that.
function settledWords({ requests: { up, down, even, stood }, reserved, entered, given_back: givenBack, cost }) {
    const all = up + down + even + stood;
    const parts = [[down, 'less'], [up, 'more'], [even, 'just that'], [stood, 'an unknown amount, so the reservation stood']]
        .filter(([number]) => number > 0)
        .map(([number, words]) => `${shareWords(number, all)} cost ${words}`);

    return all === 0 ? '' : `${count(reserved)} reserved, ${count(givenBack)} given back, ${count(entered)} entered later: `
        + `${compactFrom10000(cost.sum / all)} each on average. Of ${several(all, 'request', 'requests')} ${parts.join(', ')}.`;
}

// How many requests there are in each bucket, not up to it, with what they cost.
function costBars({ buckets, count: all }) {
    const bars = [];
    let least = 0;
    let below = 0;

    for (const [most, upToHere] of buckets) {
        bars.push({
            number: Math.max(0, upToHere - below),
            label: `≤${NBSP}${compact(most)}`,
            name: least === most ? count(most) : `${compact(least)} to ${compact(most)}`,
        });
        least = most + 1;
        below = upToHere;
    }
    const above = `>${NBSP}${compact(least - 1)}`;
    return [...bars, { number: Math.max(0, all - below), label: above, name: above }];
}

// From the first bar that has something to the last, but not too few of them.
function costRange(bars) {
    const filled = bars.map((bar, at) => (bar.number > 0 ? at : -1)).filter((at) => at >= 0);
    const last = Math.max(FEWEST_COST_BARS - 1, ...filled);

    return bars.slice(Math.min(last - FEWEST_COST_BARS + 1, ...filled), last + 1);
}

function showSettled({ settled }) {
    const figure = byId('settled');
    const svg = figure.querySelector('svg');

    figure.hidden = !settled || settled.cost.count === 0;
    if (figure.hidden) {
        return;
    }

    const bars = costRange(costBars(settled.cost));
    const most = Math.max(...bars.map((bar) => bar.number));
    const words = (bar) => `${bar.name}: ${several(bar.number, 'request', 'requests')}`;

    setText(byId('settled-words'), settledWords(settled));
    while (svg.childElementCount < 2 * bars.length) {
        add(add(svg, 'rect', { class: 'passed' }), 'title');
        add(svg, 'text', { y: '100%', dy: 14 });
    }
    [...svg.children].slice(2 * bars.length).forEach((node) => node.remove());
    bars.forEach((bar, at) => {
        const [rect, text] = [svg.children[2 * at], svg.children[2 * at + 1]];
        const height = bar.number > 0 ? Math.max(2, 100 * bar.number / most) : 0;
        setAttribute(rect, 'x', `${(100 * at / bars.length).toFixed(2)}%`);
        setAttribute(rect, 'width', `${(100 / bars.length - 1).toFixed(2)}%`);
        setAttribute(rect, 'y', `${(100 - height).toFixed(1)}%`);
        setAttribute(rect, 'height', `${height.toFixed(1)}%`);
        setText(rect.firstChild, words(bar));
        setAttribute(text, 'x', `${(100 * at / bars.length).toFixed(2)}%`);
        // the narrowest page has no room for more
        setText(text, at % Math.ceil(bars.length / 7) === 0 ? bar.label : '');
    });
    setAttribute(svg, 'aria-label', `Requests by what they cost in the end: ${
        bars.filter((bar) => bar.number > 0).map(words).join(', ')}.`);
}

// ---- the zone's numbers

const TILES = [
    { look: 'passed', name: 'Passed', of: (minute) => count(minute.passed) },
    { look: 'refused', name: 'Refused', of: (minute) => count(minute.refused) },
    { look: 'failed', name: 'Failed', of: (minute) => count(minute.failed) },
    { name: 'Refused share', of: (minute) => percent(minute.refused, minute.all) },
    { look: 'clients', name: 'Clients, about', of: (minute) => count(minute.clients) },
    { name: 'Requests per client', of: perClient },
];

for (const tile of TILES) {
    const box = add(byId('tiles'), 'div');
    addNamed(box, 'dt', tile);
    tile.value = add(box, 'dd');
}

// The last minute that is over; or the present one, if nothing was counted before it.
function lastMinute(zone) {
    const [over, running] = periods(zone, RANGES['1h']).slice(-2);
    return over.all === 0 && data.since > over.time ? { ...running, isRunning: true } : over;
}

// Most limits count requests: that need not be said.
const unitWords = ({ unit }) => (unit === 'requests' ? '' : `${NBSP}${unit}`);

function maxWords(zone) {
    const words = unitWords(zone);
    return zone.max === 'varies' ? `varies${words && `, in${words}`}` : count(zone.max) + words;
}

const limitWords = (zone) => `max ${maxWords(zone)}, window ${windowWords(zone.window)}`;

function showZone(zone) {
    const minute = lastMinute(zone);
    const isMemory = zone.store === 'memory';

    setText(byId('zone-about'),
        `${limitWords(zone)}, counted in ${isMemory ? 'this nginx' : `redis ${zone.store}`}`);
    setText(byId('minute'), (minute.isRunning ? `In the first minute so far, since ${clockWithSeconds(data.since)}`
        : `In the last full minute, ${clock(minute.time)} to ${clock(minute.time + 60)}`)
        + (minute.dryRun > 0 ? `; a dry run would have refused ${count(minute.dryRun)} of those that passed` : ''));
    TILES.forEach((tile) => setText(tile.value, tile.of(minute)));
    drawCharts();
    showFoundUsed(zone);
    showSettled(zone);
    showTop('top-refused', zone.top_rejected, 'Refused', 'Nobody has been refused yet.');
    showTop('top-clients', zone.top_clients, 'Requests', 'Nobody has come yet.');
}

function fillMoment(cell, time) {
    const past = data.now - time;
    setText(cell, past < 1 ? 'now' : `${timeSpan(past)} ago`);
    setAttribute(cell, 'title', fullDate(time));
}

function showTop(id, clients, countTitle, ifEmpty) {
    const table = byId(id);
    const note = byId(`${id}-note`);
    const missed = Math.max(0, ...clients.map((client) => client.missed_at_most));

    table.hidden = clients.length === 0;
    if (data.keys === 'off') {
        setText(note, 'The lists of clients are off (keys=off).');
    } else if (clients.length === 0) {
        setText(note, ifEmpty);
    } else {
        setText(note, [
            data.keys === 'masked' ? 'Keys are masked; keys=plain shows them.' : '',
            missed > 0 ? `≥: up to ${count(missed)} earlier ones may not have been seen.` : '',
        ].filter(Boolean).join(' '));
    }

    showTable(table, [
        {
            title: 'Client',
            fill: (cell, client, row) => {
                setKey(cell.firstChild || add(cell, 'span', { class: 'key' }), client.key);
                markIfSought(row, client.key);
            },
        },
        {
            title: countTitle,
            number: true,
            fill: (cell, client) => {
                const more = client.missed_at_most;
                setText(cell, `${more > 0 ? '≥ ' : ''}${count(client.count)}`);
                setAttribute(cell, 'title', more > 0 ? `at most ${count(more)} earlier ones were not seen` : '');
            },
        },
        { title: 'First', number: true, fill: (cell, client) => fillMoment(cell, client.first) },
        { title: 'Last', number: true, fill: (cell, client) => fillMoment(cell, client.last) },
        ...lookColumn(),
    ], clients, (client) => client.key);
}

// ---- all zones

// Columns that are shown when there is something in them.
const RARE_COLUMNS = [
    { title: 'Banned', of: (zone) => zone.requests.banned },
    { title: 'Dry run refuses', of: (zone) => zone.requests.rejected_dry_run },
    { title: 'Refused by another zone', of: (zone) => zone.requests.rejected_elsewhere },
    { title: 'Failed, let through', of: (zone) => zone.requests.failed_open },
    { title: 'Failed, refused', of: (zone) => zone.requests.failed_closed },
    { title: 'Decided locally', of: (zone) => zone.local_decisions },
    { title: 'Exempt', of: (zone) => zone.requests.exempt },
    { title: 'Aborted', of: (zone) => zone.requests.aborted },
];

function fillZoneName(cell, zone, row) {
    if (!cell.firstChild) {
        const button = add(cell, 'button', { type: 'button', text: zone.name });
        button.addEventListener('click', () => choose({ zone: zone.name }));
        add(cell, 'small');
    }
    setText(cell.lastChild, `${limitWords(zone)} · ${zone.store}`);
    row.classList.toggle('chosen', zone.name === chosenZone);
    setAttribute(cell.firstChild, 'aria-pressed', zone.name === chosenZone);
}

// A small chart of the last hour.
function fillSpark(cell, zone) {
    const list = periods(zone, RANGES['1h']);
    const most = Math.max(1, REQUESTS.of(highest(list, REQUESTS.of)));
    const svg = cell.firstChild || add(cell, 'svg', { role: 'img', viewBox: '0 0 120 22' });

    if (!svg.firstChild) {
        add(svg, 'path', { class: 'grid', d: 'M0 21.5H120' });
        svg.bars = REQUESTS.series.map((series) => add(svg, 'path', { class: series.look }));
    }
    stackBars(REQUESTS, list, { left: 0, bottom: 21, slot: 2, perUnit: 20 / most }, svg.bars);
    setAttribute(svg, 'aria-label', REQUESTS.sayAll(list));
}

function showZones() {
    const rare = RARE_COLUMNS.filter((column) => data.zones.some((zone) => column.of(zone) > 0));
    const absent = RARE_COLUMNS.filter((column) => !rare.includes(column)).map(({ title }) => title.toLowerCase());
    const number = (title, of) => ({ title, number: true, text: (zone) => count(of(zone)) });

    showTable(byId('zones'), [
        { title: 'Zone', fill: fillZoneName },
        { title: 'Last hour', look: 'spark', fill: fillSpark },
        number('Last minute', (zone) => lastMinute(zone).all),
        number('Passed', (zone) => zone.requests.passed),
        number('Refused', (zone) => zone.requests.rejected),
        {
            title: 'Refused share',
            number: true,
            text: ({ requests: { passed, rejected, banned } }) => (
                percent(rejected + banned, passed + rejected + banned)),
        },
        number('Near limit', (zone) => zone.near_limit),
        number('Deny cache hits', (zone) => zone.deny_cache_hits),
        ...rare.map((column) => number(column.title, column.of)),
    ], data.zones, (zone) => zone.name);

    setText(byId('zones-note'), `Totals since ${dayAndClock(data.since)}; near limit: passed with 80${NBSP}% or more `
        + `of max used.${absent.length > 0 ? ` None so far: ${absent.join('; ')}.` : ''}`);
}

// ---- stores and memory

const nameOf = (store) => (store.kind === 'memory' ? 'the memory of this nginx' : `redis ${store.name}`);

const zonesOf = (store) => data.zones.filter((zone) => zone.store === store.name);

// How many requests had to do without this store, in words; '' if none. Zones that
// stand together ask together: there are not more requests than unanswered checks.
function consequences(store) {
    const unanswered = sum(Object.values(store.errors), (number) => number);
    const requests = (of) => Math.min(sum(zonesOf(store), of), unanswered);

    return [
        [requests((zone) => zone.requests.failed_open), 'let through unchecked'],
        [requests((zone) => zone.requests.failed_closed), 'refused unchecked'],
        [requests((zone) => zone.local_decisions), 'decided by this nginx alone'],
    ].filter(([number]) => number > 0)
        .map(([number, words], index) => `${index ? count(number) : several(number, 'request', 'requests')} ${words}`)
        .join(', ');
}

// Whether requests had to do without it in the last full minute, or have since.
function hasFailedLately(store) {
    return zonesOf(store).some((zone) => periods(zone, RANGES['1h']).slice(-2).some((period) => period.failed > 0));
}

// Says since when and why it is down; of several servers, for the one that has been down longest.
function outageWords({ down, address }) {
    const { server, since, reason } = down.reduce((first, each) => (each.since < first.since ? each : first));
    const moment = (data.now - since < 43200 ? clockWithSeconds : dayAndClock)(since);
    const which = server === address ? '' : `${server}: `;

    return `down${down.length > 1 ? ` (${count(down.length)} servers)` : ''} since ${moment}`
        + ` (${which}${withEscapes(reason)})`;
}

function stateOf(store) {
    if (store.down.length > 0) {
        return { look: 'bad', words: outageWords(store) };
    }
    return hasFailedLately(store) ? { look: 'warn', words: 'up, with failures lately' } : { look: 'good', words: 'up' };
}

function showHealth() {
    const states = data.stores.map((store) => ({ store, state: stateOf(store) }));
    const troubled = states.filter(({ state }) => state.look !== 'good');
    const isDown = troubled.some(({ state }) => state.look === 'bad');
    let words = troubled.map(({ store, state }) => {
        const outcome = consequences(store);
        return `${nameOf(store)} is ${state.words}${outcome && `: ${outcome}`}`;
    }).join('; ');

    if (troubled.length === 0) {
        const past = data.stores.map(consequences).filter(Boolean).join(', ');
        const servers = data.stores.filter((store) => store.kind !== 'memory');
        const up = servers.length === 0 ? 'everything is counted in this nginx'
            : servers.length === 1 ? `${nameOf(servers[0])} is up` : 'all stores are up';
        words = `All well: ${up}${past && `; in past outages ${past}`}`;
    }
    setText(byId('health-words'), words);
    byId('health').className = isDown ? 'bad' : troubled.length > 0 ? 'warn' : 'good';
    setText(byId('heading'), `Rate limits on ${data.host}`);
    document.title = `${troubled.length > 0 ? '(!) ' : ''}Rate limits on ${data.host}`;

    setText(byId('about'), [
        `counting since ${dayAndClock(data.since)} (${timeSpan(data.now - data.since)})`,
        `${several(data.checks_in_flight, 'check', 'checks')} in flight`,
        `module ${data.version}`,
        `nginx ${data.nginx}`,
        `hiredis ${data.hiredis}`,
        data.tls ? 'with TLS' : 'without TLS',
    ].join(' · '));
}

function showStores() {
    showTable(byId('stores'), [
        { title: 'Store', text: (store) => store.name },
        { title: 'Address', look: 'address', text: (store) => store.address || 'this nginx' },
        {
            title: 'State',
            fill: (cell, store) => {
                const { look, words } = stateOf(store);
                setText(cell, words);
                cell.className = `state ${look}`;
            },
        },
        { title: 'Checks', number: true, text: (store) => count(store.duration.count) },
        { title: 'p50', number: true, text: (store) => quantile(store.duration, 0.5) },
        { title: 'p99', number: true, text: (store) => quantile(store.duration, 0.99) },
        {
            title: 'Without an answer',
            text: (store) => Object.entries(store.errors).filter(([, number]) => number > 0)
                .map(([reason, number]) => `${reason}${NBSP}${count(number)}`).join(', ') || 'none',
        },
        {
            title: 'Connects',
            number: true,
            text: ({ kind, connects, connect_failures: failures }) => (kind === 'memory' ? '–'
                : count(connects) + (failures > 0 ? ` and ${count(failures)} failed` : '')),
        },
    ], data.stores, (store) => `${store.kind} ${store.name}`);
}

function showMemory({ used, free, clients, evictions, recoveries }) {
    const words = `${size(used)} of ${size(used + free)} used, ${size(free)} free`;
    const hints = [evictions > 0
        ? `${several(evictions, 'client was', 'clients were')} forgotten early for want of memory: `
            + 'a larger sliding_limit_memory helps.'
        : 'Nobody has been forgotten early.'];
    if (recoveries > 0) {
        hints.push(`Repaired after killed workers: ${several(recoveries, 'change', 'changes')}.`);
    }

    setAttribute(byId('memory-bar').lastElementChild, 'width', `${(100 * used / (used + free || 1)).toFixed(1)}%`);
    setAttribute(byId('memory-bar'), 'aria-label', words);
    setText(byId('memory-words'), `${words}; ${several(clients, 'client', 'clients')}`);
    setText(byId('memory-hint'), hints.join(' '));
    byId('memory-hint').classList.toggle('warn', evictions > 0);
}

// ---- all of it

function offerZones(select, names) {
    if (select.names !== names.join('\n')) {
        select.names = names.join('\n');
        select.replaceChildren();
        names.forEach((name) => add(select, 'option', { value: name, text: name }));
    }
}

function showZoneNames() {
    const select = byId('zone');
    const names = data.zones.map((zone) => zone.name);

    offerZones(select, names);
    if (!names.includes(chosenZone) && names.length > 0) {
        chosenZone = highest(data.zones, ({ requests }) => requests.passed + requests.rejected + requests.banned).name;
    }
    if (select.value !== chosenZone && names.length > 0) {
        select.value = chosenZone;
    }
}

function show() {
    showZoneNames();
    byId('content').hidden = false;
    byId('one-zone').hidden = data.zones.length === 0;
    byId('one-client').hidden = data.zones.length === 0;
    showHealth();
    if (data.zones.length > 0) {
        showSearch();
        showZone(currentZone());
    }
    showZones();
    showStores();
    showMemory(data.memory);
}

// What is chosen stands in the address, so that it can be kept and shared.
function choose({ zone = chosenZone, range = chosenRange }) {
    chosenZone = zone;
    chosenRange = range;
    cursorTime = null;
    history.replaceState(null, '', `#${new URLSearchParams({ zone, range, ...clientOfAddress() })}`);
    show();
}

function readAddress() {
    const wanted = new URLSearchParams(location.hash.slice(1));
    chosenZone = wanted.get('zone') || chosenZone;
    chosenRange = Object.hasOwn(RANGES, wanted.get('range')) ? wanted.get('range') : chosenRange;
    document.querySelector(`#range [value="${chosenRange}"]`).checked = true;
}

async function ask() {
    const url = new URL(location.href);
    url.searchParams.set('format', 'json');
    url.hash = '';

    asking = new AbortController();
    const tooLate = setTimeout(() => asking.abort(), ANSWER_WITHIN_MS);
    try {
        const answer = await fetch(url, { cache: 'no-store', signal: asking.signal });
        if (!answer.ok) {
            throw new Error(`the server answered ${answer.status}`);
        }
        return await answer.json();
    } finally {
        clearTimeout(tooLate);
    }
}

async function poll() {
    const outage = byId('outage');

    clearTimeout(timer);
    timer = null;
    try {
        data = await ask();
        outage.hidden = true;
        setText(byId('updated'), `updated ${clockWithSeconds(data.now)}`);
    } catch (error) {
        if (document.hidden) {
            return;
        }
        const reason = error.message.startsWith('the server') ? ` (${error.message})` : '';
        setText(outage, `No data ${data ? `since ${clockWithSeconds(data.now)}` : 'yet'}${reason}, trying again.`);
        outage.hidden = false;
        byId('health').className = '';      // nobody knows whether that still holds
    }
    if (!document.hidden) {
        timer = setTimeout(poll, POLL_EVERY_MS);
        refreshStanding();
    }
    if (outage.hidden) {
        show();
    }
}
