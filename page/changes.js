// What an operator may change about the client that is looked at, where the server lets
// the page do so ("admin"). Each change says first what will happen, and asks.

const DURATIONS = [['15m', '15 minutes'], ['1h', '1 hour'], ['1d', '1 day']];
const UNITS = { m: ['minute', 'minutes'], h: ['hour', 'hours'], d: ['day', 'days'] };
const OWN = 'own';

// ---- what is said

const whereOf = ({ store }) => (store === 'memory' ? 'on this server' : 'on all servers');
const fromNow = (standing) => `${whereOf(standing)}, from its next request on`;
const stays = (standing) => ` What was counted stays counted: ${usedWords({ ...standing, override: null })}.`;

function durationOf({ for: chosen, amount, unit }) {
    if (chosen !== OWN) {
        return { value: chosen, words: DURATIONS.find(([value]) => value === chosen)[1] };
    }
    return { value: `${amount}${unit}`, words: amount ? several(Number(amount), ...UNITS[unit]) : '…' };
}

const CHANGES = [
    {
        name: 'Reset',
        method: 'DELETE',
        isOffered: () => true,
        title: 'Forget what was counted?',
        confirm: 'Reset',
        says: (client, { zone, ...standing }) => [
            `All that zone "${zone}" has counted for client `, client, ` will be forgotten ${whereOf(standing)}: `
            + `${usedWords(standing)} used now, none afterwards.`
            + `${standing.ban ? ' The ban ends, too.' : ''}${standing.override ? ' The override stays.' : ''}`,
        ],
        done: (client, { zone }) => [`Zone "${zone}" has forgotten what it had counted for client `, client, '.'],
    },
    {
        name: 'Ban',
        method: 'PUT',
        isOffered: () => true,
        title: 'Ban this client?',
        confirm: 'Ban',
        fields: [addDuration],
        body: (given) => ({ ban: durationOf(given).value }),
        says: (client, standing, given) => [
            'Client ', client, ` will be refused by zone "${standing.zone}" ${whereOf(standing)} `
            + `for ${durationOf(given).words}, from its next request on. Nothing that was counted is lost.`
            + `${standing.ban ? ' This replaces the ban that there is.' : ''}`,
        ],
        done: (client, { zone, ban, now }) => [
            'Client ', client, ` is refused by zone "${zone}" until ${ban ? moment(ban.until, now) : 'now'}.`,
        ],
    },
    {
        name: 'Lift ban',
        method: 'PUT',
        isOffered: ({ ban }) => ban !== null,
        title: 'Lift the ban?',
        confirm: 'Lift ban',
        body: () => ({ ban: null }),
        says: (client, standing) => [
            'Client ', client, ` will no longer be banned by zone "${standing.zone}" ${fromNow(standing)}.`
            + ` What was counted stays counted: ${usedWords(standing)}.`,
        ],
        done: (client, { zone }) => ['Client ', client, ` is no longer banned by zone "${zone}".`],
    },
    {
        name: 'Give more',
        method: 'PUT',
        isOffered: () => true,
        title: 'Give this client another max?',
        confirm: 'Give',
        fields: [addMax, addDuration],
        body: (given) => ({ max: Number(given.max), for: durationOf(given).value }),
        says: (client, standing, given) => [
            'Client ', client, ` may use ${given.max ? count(Number(given.max)) : '…'}${unitWords(standing)} in any `
            + `${windowWords(standing.window)} in zone "${standing.zone}" for ${durationOf(given).words}, `
            + fromNow(standing)
            + `${hasNumber(maxOf(standing)) ? `, instead of ${count(maxOf(standing))}` : ''}.`
            + ` What was counted stays counted: ${count(standing.used)}.`,
        ],
        done: (client, { zone, override, now }) => [
            'Client ', client, ` has ${override ? `max ${count(override.max)}` : 'no override'} in zone "${zone}"`
            + `${override ? ` until ${moment(override.until, now)}` : ''}.`,
        ],
    },
    {
        name: 'Lift override',
        method: 'PUT',
        isOffered: ({ override }) => override !== null,
        title: 'Lift the override?',
        confirm: 'Lift override',
        body: () => ({ max: null }),
        says: (client, standing) => [
            'Client ', client, ` will have the max of zone "${standing.zone}" again `
            + `${hasNumber(standing.max) ? `(${count(standing.max)} instead of ${count(standing.override.max)}) ` : ''}`
            + `${fromNow(standing)}.${stays(standing)}`,
        ],
        done: (client, { zone }) => ['Client ', client, ` has the max of zone "${zone}" again.`],
    },
];

// ---- fields

function addChoice(parent, name, value, words, isChosen) {
    const label = add(parent, 'label');
    const input = add(label, 'input', { type: 'radio', name, value });
    input.checked = isChosen;
    add(label, 'span', { text: words });
}

// For how long: one of the usual times, or a number of minutes, hours or days.
function addDuration(form) {
    const choices = add(form, 'fieldset', { class: 'choices' });
    add(choices, 'legend', { text: 'For' });
    DURATIONS.forEach(([value, words], index) => addChoice(choices, 'for', value, words, index === 0));
    addChoice(choices, 'for', OWN, 'other', false);

    const own = add(form, 'fieldset', { class: 'own' });
    add(own, 'legend', { class: 'unseen', text: 'For another time' });
    add(add(own, 'label', { text: 'Number ' }), 'input', {
        type: 'number', name: 'amount', min: 1, max: 9999, step: 1, required: '', value: 2, inputmode: 'numeric',
    });
    const unit = add(own, 'select', { name: 'unit', 'aria-label': 'Unit' });
    Object.entries(UNITS).forEach(([value, [, words]]) => add(unit, 'option', { value, text: words }));
    unit.value = 'h';
}

const LARGEST_MAX = 1e15;

function addMax(form, { max, used }) {
    add(add(form, 'label', { text: 'Max ' }), 'input', {
        type: 'number', name: 'max', min: 1, max: LARGEST_MAX, step: 1, required: '', inputmode: 'numeric',
        value: Math.min(LARGEST_MAX, Math.max(1, 2 * (hasNumber(max) ? max : used))),
    });
}

function readForm(form) {
    const own = form.querySelector('.own');
    const given = Object.fromEntries(new FormData(form));

    if (own) {
        own.hidden = given.for !== OWN;
        own.disabled = own.hidden;
    }
    return own && !own.hidden ? Object.fromEntries(new FormData(form)) : given;
}

// ---- asking first

function addButtons(form, words, dialog) {
    const row = add(form, 'div', { class: 'buttons' });
    const cancel = add(row, 'button', { type: 'button', class: 'button', text: 'Cancel' });
    cancel.addEventListener('click', () => dialog.close());
    return add(row, 'button', { class: 'button first', text: words });
}

// A dialog that says what the change does, and does it when that is confirmed.
function askFirst(change) {
    const dialog = add(byId('one-client'), 'dialog', {
        'aria-labelledby': 'change-title', 'aria-describedby': 'change-words',
    });
    const form = add(dialog, 'form', { method: 'dialog' });
    const { zone, key, standing } = sought;
    const client = { key };

    add(form, 'h3', { id: 'change-title', text: change.title });
    (change.fields || []).forEach((addField) => addField(form, standing));
    const words = add(form, 'p', { id: 'change-words', 'aria-live': 'polite' });
    const problem = add(form, 'p', { class: 'problem', role: 'alert' });
    const confirm = addButtons(form, change.confirm, dialog);
    const sayIt = () => setSentence(words, change.says(client, standing, readForm(form)));

    sayIt();
    form.addEventListener('input', sayIt);
    form.addEventListener('submit', async (event) => {
        event.preventDefault();
        confirm.disabled = true;
        setText(problem, '');
        try {
            await make(change, { zone, key }, readForm(form));
            dialog.close();
        } catch (error) {
            setText(problem, withEscapes(error.message));
        }
        confirm.disabled = false;
    });
    dialog.addEventListener('close', () => {
        dialog.remove();
        if (document.activeElement === document.body) {
            byId('standing-title').focus();
        }
    });
    dialog.showModal();
}

// Changes it on the server, which answers where the client stands then. What was asked
// before is out of date, also if that had the server refuse to tell any more.
async function make(change, { zone, key }, given) {
    sought = { ...sought, zone, key, isAsked: true };
    try {
        const standing = await talk(queryOf({ zone, key }), {
            method: change.method,
            headers: { 'X-Requested-With': 'fetch', ...(change.body ? { 'Content-Type': 'application/json' } : {}) },
            ...(change.body ? { body: JSON.stringify(change.body(given)) } : {}),
        });
        tell(change.done({ key }, standing));
        take(standing);
    } finally {
        sought.isAsked = false;
    }
    if (rulings && rulings.zone === zone) {
        rulings = { zone, clients: [], cursor: '' };
        readMoreRulings();
    }
}

// ---- the buttons

function addChangeButtons() {
    const row = document.createElement('div');

    row.id = 'changes';
    row.className = 'buttons';
    row.setAttribute('role', 'group');
    row.setAttribute('aria-label', 'Changes');
    row.buttons = CHANGES.map((change) => {
        const button = add(row, 'button', { type: 'button', class: 'button', text: `${change.name}…` });
        button.addEventListener('click', () => askFirst(change));
        return button;
    });
    byId('facts').after(row);
    return row;
}

// Where the server takes no changes, nothing offers them.
function showChanges() {
    const there = byId('changes');

    if (data.admin !== true) {
        there?.remove();
        return;
    }
    const row = there || addChangeButtons();
    CHANGES.forEach(({ isOffered }, index) => {
        row.buttons[index].hidden = !sought || !sought.standing || !isOffered(sought.standing);
    });
}
