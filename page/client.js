// One client: where it stands in a zone, and the list of those about whom something was
// ruled. Both are asked of the page's own URL, only when somebody wants to know.

const LONGEST_KEY_SAID = 60;
const EMPTY_PAGES_IN_A_ROW = 10;

let sought = null;           // { zone, key, standing, at, isAsked }: the client that is looked at
let addressed = null;        // the client that the page's address names
let hasReadAddress = false;
let ticking = null;
let rulings = null;          // { zone, clients, cursor }

// ---- asking

// What the server says is wrong, in its own words.
class Refusal extends Error {
    constructor(status, words) {
        super(words);
        this.status = status;
    }
}

// A blank is written so that nobody can take it for a plus.
const queryOf = (fields) => String(new URLSearchParams(fields)).replaceAll('+', '%20');

async function readAnswer(answer) {
    const body = await answer.json().catch(() => null);

    if (!answer.ok || body === null) {
        throw new Refusal(answer.status, body && typeof body.error === 'string' ? body.error
            : `The server answered ${answer.status}${answer.ok ? ', but not with JSON' : ''}.`);
    }
    return body;
}

async function talk(query, options = {}) {
    const signal = AbortSignal.timeout(ANSWER_WITHIN_MS);

    try {
        const answer = await fetch(`${location.pathname}?${query}`, { cache: 'no-store', signal, ...options });
        return await readAnswer(answer);
    } catch (error) {
        if (error instanceof Refusal) {
            throw error;
        }
        throw new Refusal(0, signal.aborted ? `There was no answer within ${ANSWER_WITHIN_MS / 1000} seconds.`
            : 'The server cannot be reached.');
    }
}

// ---- words

// What a sentence is made of: text, and keys of clients, which cannot reorder the text around them.
function setSentence(node, parts) {
    const signature = JSON.stringify(parts);

    if (node.signature === signature) {
        return;
    }
    node.signature = signature;
    node.replaceChildren();
    for (const part of parts) {
        if (typeof part === 'string') {
            node.append(part);
        } else {
            const cut = part.key.length > LONGEST_KEY_SAID;
            node.append('"');
            add(node, 'bdi', { text: withEscapes(part.key.slice(0, LONGEST_KEY_SAID)) + (cut ? '…' : '') });
            node.append('"');
        }
    }
}

function tell(parts) {
    setSentence(byId('told'), parts);
}

function showError(error) {
    const node = byId('search-error');

    node.hidden = error === null;
    setText(node, error === null ? '' : withEscapes(error.message));
}

// As long as two units say it, for something that ends: 14 min 3 s.
function timeLeft(seconds) {
    const whole = Math.max(0, Math.ceil(seconds));
    const units = [[86400, 'd'], [3600, 'h'], [60, 'min'], [1, 's']];
    const first = Math.max(0, units.findIndex(([each]) => whole >= each));
    const shown = whole === 0 ? [[1, 's']] : units.slice(first, first + 2);
    let rest = whole;

    return shown.map(([each, unit]) => {
        const number = Math.floor(rest / each);
        rest -= number * each;
        return number > 0 || shown.length === 1 ? `${number}${NBSP}${unit}` : '';
    }).filter(Boolean).join(' ');
}

// A moment to come, of the server's clock.
const moment = (time, now) => (time - now < 43200 ? clockWithSeconds : dayAndClock)(time);

// ---- where the client stands

// By the clock that the answer was given by.
const nowOf = ({ standing, at }) => standing.now + (performance.now() - at) / 1000;

const maxOf = ({ max, override }) => (override ? override.max : max);
const hasNumber = (max) => typeof max === 'number';

const usedWords = (standing) => count(standing.used)
    + (hasNumber(maxOf(standing)) ? ` of ${count(maxOf(standing))}` : '') + unitWords(standing);

// When something of it leaves the window; that is no room yet where more is used than is allowed.
function roomWords(standing, now) {
    if (standing.reset === null) {
        return '–';
    }
    const left = timeLeft(standing.now + standing.reset - now);
    return hasNumber(maxOf(standing)) && standing.used > maxOf(standing) ? `after ${left}` : `in ${left}`;
}

function verdictOf(standing, now) {
    const max = maxOf(standing);

    if (standing.ban && standing.ban.until > now) {
        return { look: 'bad', words: `Banned until ${moment(standing.ban.until, now)}: every request is refused.` };
    }
    if (hasNumber(max) && standing.used >= max) {
        return { look: 'bad', words: `At its limit, ${usedWords(standing)}: what comes now is refused.` };
    }
    if (standing.counted === 0) {
        return {
            look: '',
            words: 'Nothing is counted for it: it has not come within the window, or its key is another.'
                + `${standing.key === standing.key.trim() ? '' : ' This one begins or ends with a blank.'}`,
        };
    }
    return hasNumber(max)
        ? { look: 'good', words: `Within its limit: ${count(max - standing.used)} of ${count(max)}${unitWords(standing)} are left.` }
        : { look: '', words: `${usedWords(standing)} used; how much it may use varies from request to request.` };
}

const FACTS = [
    {
        name: 'Used',
        of: usedWords,
        note: ({ max, override }) => (hasNumber(maxOf({ max, override }))
            ? override && hasNumber(max) && `instead of ${count(max)}` : 'max varies'),
    },
    { name: 'Remaining', of: ({ remaining }) => (remaining === null ? '–' : count(Math.max(0, remaining))) },
    { name: 'More room', of: roomWords, note: ({ reset }) => (reset === null ? 'nothing is counted' : '') },
    {
        name: 'Ban',
        of: ({ ban }, now) => (ban ? `for ${timeLeft(ban.until - now)}` : 'none'),
        note: ({ ban }, now) => ban && `until ${moment(ban.until, now)}`,
    },
    {
        name: 'Override',
        of: ({ override }) => (override ? `max ${count(override.max)}` : 'none'),
        note: ({ override }, now) => override && `until ${moment(override.until, now)}`,
    },
];

for (const fact of FACTS) {
    const box = add(byId('facts'), 'div');
    add(box, 'dt', { text: fact.name });
    fact.value = add(box, 'dd');
    fact.noteNode = add(box, 'dd', { class: 'quiet' });
}

const ABOUT = [
    {
        name: 'Answered by',
        fill: (node, { store, server, now }) => setText(node,
            `${store === 'memory' ? 'this nginx' : `${store} ${withEscapes(server)}`}, ${clockWithSeconds(now)}`),
    },
    { name: 'In the lists as', isKey: true, of: ({ masked }) => masked },
    { name: 'Stored as', isKey: true, of: (standing) => standing.stored_as },
];

for (const line of ABOUT) {
    line.term = add(byId('standing-about'), 'dt', { text: line.name });
    line.node = add(byId('standing-about'), 'dd', line.isKey ? { class: 'key' } : {});
}

function showAbout(standing) {
    for (const { fill, of, term, node } of ABOUT) {
        if (fill) {
            fill(node, standing);
            continue;
        }
        term.hidden = !of(standing);
        node.hidden = !of(standing);
        setKey(node, of(standing) || '');
    }
}

// What changes while time passes.
function showPassing() {
    if (!sought || !sought.standing) {
        return;
    }
    const { standing } = sought;
    const now = nowOf(sought);
    const { look, words } = verdictOf(standing, now);

    if (byId('verdict').className !== look) {
        byId('verdict').className = look;
    }
    setText(byId('verdict-words'), words);
    for (const { of, note, value, noteNode } of FACTS) {
        setText(value, of(standing, now));
        setText(noteNode, (note && note(standing, now)) || '');
    }
    drawTimeline();
}

// Reads out how it stands, but not every number that changes.
function announce() {
    const { look, words } = verdictOf(sought.standing, nowOf(sought));

    if (sought.announced !== look) {
        sought.announced = look;
        setSentence(byId('announced'), ['Client ', { key: sought.key }, `, zone "${sought.zone}". ${words}`]);
    }
}

function showStanding() {
    const isShown = Boolean(sought && sought.standing);

    byId('standing').hidden = !isShown;
    clearInterval(ticking);
    if (!isShown) {
        return;
    }
    ticking = setInterval(showPassing, 1000);
    setKey(byId('standing-key'), sought.key);
    setText(byId('standing-zone'), `in zone ${sought.zone}, window ${windowWords(sought.standing.window)}`);
    showPassing();
    showCounted(sought.standing);
    showAbout(sought.standing);
    showChanges();
    announce();
}

// ---- the timeline of its window

const timelineLegend = addNamed(byId('timeline-legend'), 'span', { look: 'passed', name: 'counted' });
const timelineNote = add(byId('timeline-legend'), 'span');

// How many requests there are is not told where they are too many to be shown, but what they cost.
const areAllShown = ({ requests, used }) => requests.reduce((sum, { cost }) => sum + cost, 0) >= used;

function timelineWords(standing, now) {
    const { requests, window } = standing;
    const ago = (request) => `${timeLeft(now - request.time)} ago`;

    if (requests.length === 0) {
        return `In the last ${windowWords(window)} nothing was counted.`;
    }
    return `Counted in the last ${windowWords(window)}: ${areAllShown(standing) ? '' : 'more than '}`
        + `${several(requests.length, 'request', 'requests')}; the newest ${ago(requests[0])}`
        + `${requests.length > 1 ? `, the oldest${areAllShown(standing) ? '' : ' that is shown'} ${ago(requests.at(-1))}` : ''}.`;
}

function drawTimelineAxis(svg, { left, right, bottom }, window) {
    const signature = `${right} ${window}`;

    if (svg.signature === signature) {
        return;
    }
    svg.signature = signature;
    svg.replaceChildren();
    add(svg, 'path', { class: 'grid', d: `M${left} ${bottom + 0.5}H${right}` });
    for (const [share, anchor] of [[0, 'start'], [0.5, 'middle'], [1, 'end']]) {
        const x = Math.round(left + share * (right - left));
        const text = ['now', `${timeLeft(window / 2)} ago`, `${windowWords(window)} ago`][2 * (1 - share)];
        add(svg, 'path', { class: 'grid', d: `M${x} ${bottom}v4` });
        add(svg, 'text', { x, y: bottom + 16, 'text-anchor': anchor, text });
    }
    svg.ticks = add(svg, 'g');
}

function drawTicks(group, { left, right, bottom, tallest }, { requests, window }, now) {
    const most = Math.max(1, ...requests.map(({ cost }) => cost));

    while (group.childElementCount > requests.length) {
        group.lastChild.remove();
    }
    requests.forEach(({ time, cost }, index) => {
        const tick = group.children[index] || add(group, 'path');
        const share = Math.min(1, Math.max(0, 1 - (now - time) / window));
        const height = Math.max(8, Math.round(tallest * cost / most));
        const x = Number((left + share * (right - left)).toFixed(1));
        setAttribute(tick, 'class', 'passed');
        setAttribute(tick, 'd', `M${x - 1.5} ${bottom}v${-height}h3v${height}z`);
    });
}

function drawTimeline() {
    const svg = byId('timeline').querySelector('svg[role]');
    const { width, height } = svg.getBoundingClientRect();

    if (!sought || !sought.standing || width === 0) {
        return;
    }
    const { standing } = sought;
    const now = nowOf(sought);
    const place = { left: 5, right: Math.round(width) - 5, bottom: Math.round(height) - 20, tallest: height - 34 };

    drawTimelineAxis(svg, place, standing.window);
    drawTicks(svg.ticks, place, standing, now);
    setAttribute(svg, 'aria-label', timelineWords(standing, now));
    timelineLegend.hidden = standing.requests.length === 0;
    setText(timelineNote, [
        areAllShown(standing) ? '' : `the newest ${count(standing.requests.length)}`,
        standing.requests.some(({ cost }) => cost !== 1) ? 'the taller, the more it cost' : '',
    ].filter(Boolean).join('; '));
}

const withMilliseconds = inLocalTime({
    hour: '2-digit', minute: '2-digit', second: '2-digit', fractionalSecondDigits: 3,
});

function showCounted(standing) {
    const { requests, window } = standing;

    byId('counted').hidden = requests.length === 0;
    setText(byId('counted').firstElementChild, areAllShown(standing)
        ? several(requests.length, 'counted request', 'counted requests')
        : `The newest ${count(requests.length)} counted requests`);
    showTable(byId('counted-requests'), [
        { title: 'Time', text: ({ time }) => `${window > 43200 ? `${weekday(time)} ` : ''}${withMilliseconds(time)}` },
        ...(requests.some(({ id }) => id !== '') ? [
            { title: 'Id', fill: (cell, { id }) => setKey(cell.firstChild || add(cell, 'span', { class: 'key' }), id) },
        ] : []),
        { title: 'Cost', number: true, text: ({ cost }) => count(cost) },
    ], requests, ({ time, id }) => id || time.toFixed(2));
}

// ---- looking

const clientOfAddress = () => (addressed !== null && sought && sought.key === addressed ? { client: addressed } : {});

// Lists show the same client by this key.
function isSought(key) {
    return Boolean(sought && sought.standing) && sought.zone === chosenZone
        && (key === sought.standing.masked || key === sought.key);
}

function markIfSought(row, key) {
    row.classList.toggle('sought', isSought(key));
    setAttribute(row, 'aria-current', isSought(key));
}

// A key that a list shows is enough to look at its client if it is neither masked, nor cut,
// nor the digest of another.
function canBeSought(key) {
    return data.keys === 'plain' && key !== null && !key.startsWith('#') && !key.includes('\ufffd')
        && new TextEncoder().encode(key).length < 59;
}

function fillLook(cell, key, zone) {
    const button = cell.firstChild || add(cell, 'button', { type: 'button', class: 'link', text: 'look' });

    button.hidden = !canBeSought(key);
    setAttribute(button, 'aria-label', `look at ${withEscapes(key || '')}`);
    button.onclick = () => {
        byId('search-zone').value = zone;
        byId('search-client').value = key;
        look(zone, key).then(() => byId('standing-title').focus());
    };
}

const lookColumn = () => (data.keys === 'plain'
    ? [{ title: '', look: 'look', fill: (cell, { key }) => fillLook(cell, key, chosenZone) }] : []);

// An answer about the client that is looked at.
function take(standing) {
    sought.standing = standing;
    sought.at = performance.now();
    showError(null);
    if (chosenZone !== sought.zone) {
        choose({ zone: sought.zone });      // its lists show the client, too
    }
    showStanding();
    showZone(currentZone());
}

// What was wrong. If the question itself was, it is not asked again.
function giveUpOrGoOn(error) {
    if (error.status >= 400 && error.status < 500) {
        sought = null;
    }
    showError(error);
    showStanding();
}

// Asks about the client that is looked at, and takes the answer if it still is.
async function inquire() {
    const client = sought;

    client.isAsked = true;
    try {
        const standing = await talk(queryOf({ zone: client.zone, key: client.key }));
        if (client === sought) {
            take(standing);
        }
    } catch (error) {
        if (client === sought) {
            giveUpOrGoOn(error);
        }
    }
    client.isAsked = false;
}

async function look(zone, key) {
    sought = { zone, key, standing: null };
    tell([]);
    await inquire();
}

// With the page's own rhythm, and never twice at once.
function refreshStanding() {
    if (sought && !sought.isAsked) {
        inquire();
    }
}

function closeStanding() {
    sought = null;
    tell([]);
    showError(null);
    showStanding();
    showZone(currentZone());
    byId('search-client').focus();
}

function lookAtClientOfAddress() {
    const wanted = new URLSearchParams(location.hash.slice(1));
    const key = wanted.get('client');

    hasReadAddress = true;
    if (key) {
        addressed = key;
        byId('search-client').value = key;
        look(chosenZone, key);
    }
}

// The zone that the page shows is the likeliest one to search in.
function showSearch() {
    const select = byId('search-zone');

    offerZones(select, data.zones.map((zone) => zone.name));
    if (select.followed !== chosenZone) {
        select.followed = chosenZone;
        select.value = chosenZone;
    }
    if (!hasReadAddress) {
        lookAtClientOfAddress();
    }
    showChanges();
}

// ---- bans and overrides of a zone

function fillRuledKey(cell, { key }) {
    const node = cell.firstChild || add(cell, 'span', { class: 'key' });

    if (key === null) {
        setText(node, 'not shown (keys=off)');
    } else {
        setKey(node, key);
    }
}

function showRulings() {
    byId('rulings').hidden = rulings === null;
    if (rulings === null) {
        return;
    }
    const { zone, clients, cursor } = rulings;
    const until = (ruling) => (ruling ? moment(ruling.until, data.now) : '–');

    setText(byId('rulings-title'), `Bans and overrides in zone ${zone}`);
    byId('ruled-clients').hidden = clients.length === 0;
    showTable(byId('ruled-clients'), [
        { title: 'Client', fill: fillRuledKey },
        { title: 'Banned until', text: ({ ban }) => until(ban) },
        { title: 'Max', number: true, text: ({ override }) => (override ? count(override.max) : '–') },
        { title: 'Until', text: ({ override }) => until(override) },
        ...(data.keys === 'plain'
            ? [{ title: '', look: 'look', fill: (cell, { key }) => fillLook(cell, key, zone) }] : []),
    ], clients, ({ key }) => String(key));
    setText(byId('rulings-note'), clients.length > 0 ? several(clients.length, 'client', 'clients')
        + (cursor === null ? '.' : ' so far.')
        : cursor === null ? 'Nobody is banned, and nobody has an override.' : 'None so far.');
    byId('more-rulings').hidden = cursor === null;
}

// The next of them. A store that looks through all of its keys may find none for a while.
async function readMoreRulings() {
    const wanted = rulings;
    let found = 0;

    for (let page = 0; page < EMPTY_PAGES_IN_A_ROW && found === 0 && wanted.cursor !== null; page++) {
        const from = wanted.cursor === '' ? '' : `&${queryOf({ cursor: wanted.cursor })}`;
        try {
            const answer = await talk(`${queryOf({ zone: wanted.zone })}&overrides${from}`);
            found = answer.clients.length;
            wanted.clients.push(...answer.clients);
            wanted.cursor = answer.cursor;
        } catch (error) {
            if (wanted === rulings) {
                showError(error);
            }
            return false;
        }
    }
    if (wanted !== rulings) {
        return false;
    }
    showError(null);
    showRulings();
    return true;
}

async function listRulings(zone) {
    rulings = { zone, clients: [], cursor: '' };
    if (await readMoreRulings()) {
        byId('rulings-title').focus();
    }
}

function closeRulings() {
    rulings = null;
    showRulings();
    byId('list-rulings').focus();
}
