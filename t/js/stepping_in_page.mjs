// stepping_in_page.mjs DIR CHROMIUM: the live page's part about one client, in a real browser;
// see browser.mjs.

import { events, faintTexts, open, page, serve } from './browser.mjs';

let asked = [];             // about clients, since the last call of `asked`
let pretended = null;       // { status, json | text }: what questions about clients are answered with

// What that part shows, as its visitor sees it. Runs in the page.
function readPage() {
    const byId = (id) => document.getElementById(id);
    const textOf = (id) => byId(id).textContent;
    const isVisible = (node) => node.getClientRects().length > 0;
    const rows = (id) => {
        const titles = [...byId(id).querySelectorAll('thead th')].map((cell) => cell.textContent);
        return [...byId(id).querySelectorAll('tbody tr')]
            .map((row) => Object.fromEntries([...row.cells].map((cell, at) => [titles[at], cell.textContent])));
    };
    const nameOf = (node) => node.getAttribute('aria-label') || node.id || node.textContent || node.tagName;
    const dialog = document.querySelector('dialog[open]');
    const isLookedAt = isVisible(byId('standing'));

    return {
        zones: [...byId('search-zone').options].map((option) => option.value),
        zone: byId('search-zone').value,
        pageZone: byId('zone').value,
        client: byId('search-client').value,
        told: textOf('told'),
        error: isVisible(byId('search-error')) ? textOf('search-error') : null,
        announced: textOf('announced'),
        standing: isLookedAt && {
            key: textOf('standing-key'),
            zone: textOf('standing-zone'),
            verdict: textOf('verdict-words'),
            look: byId('verdict').className,
            facts: Object.fromEntries([...byId('facts').children].map((fact) => [fact.firstChild.textContent,
                [...fact.querySelectorAll('dd')].map((node) => node.textContent).filter(Boolean).join(', ')])),
            about: Object.fromEntries([...document.querySelectorAll('#standing-about dt')].filter(isVisible)
                .map((term) => [term.textContent, term.nextElementSibling.textContent])),
            timeline: document.querySelector('#timeline svg[role]').ariaLabel,
            legend: [...byId('timeline-legend').children].filter(isVisible).map((node) => node.textContent).join('|'),
            ticks: [...document.querySelectorAll('#timeline g > path')].map((tick) => {
                const all = tick.ownerSVGElement.getBoundingClientRect();
                const { x, width, height } = tick.getBBox();
                return { look: tick.getAttribute('class'), at: (x + width / 2) / all.width, width, height };
            }),
            summary: byId('counted').firstElementChild.textContent,
            requests: byId('counted').open ? rows('counted-requests') : null,
        },
        rulings: isVisible(byId('rulings')) ? {
            title: textOf('rulings-title'),
            rows: isVisible(byId('ruled-clients')) ? rows('ruled-clients') : [],
            note: textOf('rulings-note'),
            hasMore: isVisible(byId('more-rulings')),
        } : null,
        buttons: [...document.querySelectorAll('#one-client button')].filter(isVisible).map((node) => node.textContent),
        changes: document.querySelectorAll('#changes, #changes button').length,
        dialog: dialog && {
            title: dialog.querySelector('h3').textContent,
            words: dialog.querySelector('#change-words').textContent,
            problem: dialog.querySelector('.problem').textContent,
            buttons: [...dialog.querySelectorAll('button')].map((node) => node.textContent),
        },
        marked: [...document.querySelectorAll('tr.sought .key')].map((key) => key.textContent),
        lists: ['top-refused', 'top-clients'].map((id) => [...document.querySelectorAll(`#${id} .key`)].length),
        focus: nameOf(document.activeElement),
        hasOutline: getComputedStyle(document.activeElement).outlineStyle !== 'none',
        address: location.hash,
        unlabelled: [...document.querySelectorAll('main input, main select')]
            .filter((field) => field.labels.length === 0 && !field.ariaLabel).length,
        // what text must never become
        intruders: document.querySelectorAll('img, iframe, a:not(footer a), main script, [onerror], [onload]').length,
        ran: window.ran === undefined ? null : String(window.ran),
        width: { content: document.scrollingElement.scrollWidth, window: innerWidth },
        tooWide: [...document.querySelectorAll('#one-client > *, #standing > *, dialog')].filter(isVisible)
            .filter((node) => node.scrollWidth > node.clientWidth + 1 && node.clientWidth > 1).map(nameOf),
    };
}

const isAboutClients = (url) => url.searchParams.has('zone');

async function answerAboutClients(route) {
    const { status = 200, json, text } = pretended;

    await route.fulfill(json === undefined ? { status, body: text, contentType: 'text/html' } : { status, json });
}

// Numbers that the server would give where changes are allowed, or other ones.
const changeNumbers = (numbers, zone) => async (route) => {
    const answer = await route.fetch();
    const all = { ...await answer.json(), ...numbers };
    Object.assign(all.zones[0], zone);
    await route.fulfill({ response: answer, json: all });
};

const button = (name) => page.locator('#one-client').getByRole('button', { name, exact: true });

const does = {
    // { url, width, height, scheme, numbers, zone, answer }: a new page, which has its first
    // numbers; with these instead of the server's, and this answer about every client.
    async open({ numbers, zone = {}, answer = null, ...how }) {
        asked = [];
        pretended = answer;
        await open(how, async () => {
            if (numbers) {
                await page.route('**/*format=json*', changeNumbers(numbers, zone));
            }
            if (pretended) {
                await page.route(isAboutClients, answerAboutClients);
            }
            page.on('request', (request) => {
                const url = new URL(request.url());
                if (isAboutClients(url)) {
                    asked.push({
                        method: request.method(),
                        query: url.search,
                        type: request.headers()['content-type'] ?? null,
                        with: request.headers()['x-requested-with'] ?? null,
                        body: request.postData(),
                    });
                }
            });
        });
        return page.evaluate(readPage);
    },

    read: () => page.evaluate(readPage),
    faint: () => page.evaluate(faintTexts),
    events,

    // From now on, what is asked about clients is answered so.
    answer({ answer }) {
        pretended = answer;
    },

    asked() {
        const all = asked;
        asked = [];
        return { asked: all };
    },

    async search({ zone, client }) {
        await page.selectOption('#search-zone', zone);
        await page.fill('#search-client', client);
        await page.press('#search-client', 'Enter');
        await page.waitForFunction(() => !document.getElementById('standing').hidden
            || !document.getElementById('search-error').hidden);
        return page.evaluate(readPage);
    },

    async click({ name }) {
        await button(name).click();
        return page.evaluate(readPage);
    },

    async look({ at }) {
        await page.getByRole('button', { name: `look at ${at}`, exact: true }).first().click();
        return page.evaluate(readPage);
    },

    async openRequests() {
        await page.click('#counted summary');
        return page.evaluate(readPage);
    },

    // [["Max", "500"], ["other"]]: fields of the dialog, by their labels
    async fill({ fields }) {
        for (const [label, value] of fields) {
            const field = page.locator('dialog').getByLabel(label, { exact: true });
            if (value === undefined) {
                await field.check({ force: true });
            } else if (await field.evaluate((node) => node.tagName === 'SELECT')) {
                await field.selectOption(value);
            } else {
                await field.fill(value);
            }
        }
        return page.evaluate(readPage);
    },

    async keys({ keys }) {
        for (const key of keys) {
            await (key.length > 1 && !/^(?:Tab|Shift\+Tab|Enter|Escape|Space|Arrow\w+)$/.test(key)
                ? page.keyboard.type(key) : page.keyboard.press(key));
        }
        return page.evaluate(readPage);
    },

    async go({ hash }) {
        await page.evaluate((to) => { location.hash = to; }, hash);
        return page.evaluate(readPage);
    },

    async picture({ path }) {
        await page.screenshot({ path, fullPage: false });
    },
};

await serve(does);
