// metrics_page.mjs DIR CHROMIUM: a real browser, driven by lines of JSON.
//
// In, one per line: { "do": NAME, ... }. Out: one line each, what the function of
// this name returns, or { "failed": why }. DIR is where npm installed playwright-core.

import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

const [, , packages, executablePath] = process.argv;
const { chromium } = createRequire(`${packages}/`)('playwright-core');

// Everything is near and fast; what takes this long never comes.
const PATIENCE_MS = 60_000;

// Whoever started this may have been killed: then it ends, too, and the browser with it.
setTimeout(() => process.exit(1), 900_000).unref();

const browser = await chromium.launch({
    executablePath,
    timeout: 180_000,
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--disable-background-networking'],
});

let page = null;
let complaints = [];      // of the browser: console, errors, violations of the policy
let requested = [];       // URLs, since the page was opened

// What the page shows, as its visitor sees it. Runs in the page.
function readPage() {
    const textOf = (selector) => document.querySelector(selector).textContent;
    const isVisible = (node) => node.getClientRects().length > 0;
    const titles = (table) => [...table.querySelectorAll('thead th')].map((cell) => cell.textContent);
    const rows = (id) => {
        const table = document.getElementById(id);
        const names = titles(table);
        return [...table.querySelectorAll('tbody tr')].filter(isVisible).map((row) => Object.fromEntries(
            [...row.cells].map((cell, at) => [names[at], (cell.querySelector('button') || cell).textContent]),
        ));
    };
    const outage = document.getElementById('outage');
    const tooltip = document.getElementById('tooltip');

    return {
        title: document.title,
        heading: textOf('#heading'),
        health: textOf('#health-words'),
        healthLook: document.getElementById('health').className,
        about: textOf('#about'),
        updated: textOf('#updated'),
        outage: outage.hidden ? null : outage.textContent,
        hasContent: isVisible(document.getElementById('content')),
        zone: document.getElementById('zone').value,
        zoneAbout: textOf('#zone-about'),
        minute: textOf('#minute'),
        tiles: Object.fromEntries([...document.querySelectorAll('#tiles div')]
            .map((tile) => [tile.querySelector('dt').textContent, tile.querySelector('dd').textContent])),
        zones: rows('zones'),
        stores: rows('stores'),
        memory: textOf('#memory-words'),
        topRefused: rows('top-refused'),
        topRefusedNote: textOf('#top-refused-note'),
        topClients: rows('top-clients'),
        topClientsNote: textOf('#top-clients-note'),
        keyTitles: [...document.querySelectorAll('#top-clients .key')].map((key) => key.title),
        chartLabels: [...document.querySelectorAll('figure svg[role=img]')].map((svg) => svg.ariaLabel),
        foundUsed: isVisible(document.getElementById('found-used')) ? {
            words: textOf('#found-used-words'),
            bars: [...document.querySelectorAll('#found-used rect')].map((bar) => Math.round(bar.getBoundingClientRect().height)),
            titles: [...document.querySelectorAll('#found-used rect title')].map((title) => title.textContent),
        } : null,
        tooltip: tooltip.hidden ? null : [...tooltip.children].filter(isVisible).map((line) => line.innerText.trim()),
        readout: textOf('#readout'),
        focus: document.activeElement.textContent,
        selection: String(getSelection()),
        // what text must never become
        intruders: document.querySelectorAll('img, iframe, a:not(footer a), main script, [onerror], [onload]').length,
        scripts: document.scripts.length,
        ran: window.ran === undefined ? null : String(window.ran),
        width: { content: document.scrollingElement.scrollWidth, window: innerWidth },
        headers: [...document.querySelectorAll('main th')].filter((cell) => !cell.scope).length,
    };
}

// Visible text whose contrast is below WCAG's AA. Runs in the page.
function faintTexts() {
    const parse = (colour) => colour.match(/[\d.]+/g).map(Number);
    const luminance = (colour) => {
        const [red, green, blue] = parse(colour).map((value) => value / 255)
            .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    };
    const background = (node) => {
        for (let each = node; each; each = each.parentElement) {
            const colour = getComputedStyle(each).backgroundColor;
            if (parse(colour)[3] !== 0) {
                return colour;
            }
        }
        return 'rgb(255, 255, 255)';
    };

    return [...document.querySelectorAll('body *')].filter((node) => node.getClientRects().length > 0
        && [...node.childNodes].some((child) => child.nodeType === Node.TEXT_NODE && child.data.trim() !== ''))
        .map((node) => {
            const style = getComputedStyle(node);
            const colour = node instanceof SVGElement ? style.fill : style.color;
            const pair = [luminance(colour), luminance(background(node))];
            const contrast = (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
            return { text: node.textContent.slice(0, 40), contrast };
        })
        .filter(({ contrast }) => contrast < 4.5);
}

const does = {
    // { url, width, height, scheme }: a new page, which has its first numbers.
    async open({ url, width = 1280, height = 900, scheme = 'light' }) {
        if (page) {
            // what is being pretended may be cut off
            await page.unrouteAll({ behavior: 'ignoreErrors' });
            await page.context().close();
        }
        const context = await browser.newContext({
            viewport: { width, height }, colorScheme: scheme, reducedMotion: 'reduce', serviceWorkers: 'block',
        });
        page = await context.newPage();
        page.setDefaultTimeout(PATIENCE_MS);
        complaints = [];
        requested = [];

        page.on('console', (message) => complaints.push(`${message.type()}: ${message.text()}`));
        page.on('pageerror', (error) => complaints.push(`error: ${error.message}`));
        page.on('dialog', (dialog) => {
            complaints.push(`dialog: ${dialog.message()}`);
            dialog.dismiss();
        });
        page.on('request', (request) => requested.push(request.url()));
        await page.addInitScript(() => {
            document.addEventListener('securitypolicyviolation', (event) => {
                console.error(`violation: ${event.violatedDirective} ${event.blockedURI}`);
            });
        });

        await page.goto(url);
        await page.waitForSelector('#content', { state: 'visible' });
        return page.evaluate(readPage);
    },

    read: () => page.evaluate(readPage),

    // What the page would say of each of these zones.
    foundUsedWords: ({ zones }) => page.evaluate((list) => list.map((zone) => window.foundUsedWords(zone)), zones),

    faint: () => page.evaluate(faintTexts),

    // What the browser complained of and asked for since the last call.
    events() {
        const events = { complaints, requested };
        complaints = [];
        requested = [];
        return events;
    },

    async choose({ zone, range }) {
        if (zone) {
            await page.selectOption('#zone', zone);
        }
        if (range) {
            await page.check(`#range input[value="${range}"]`, { force: true });
        }
        return page.evaluate(readPage);
    },

    async click({ zone }) {
        await page.locator('#zones button', { hasText: zone }).first().click();
        return page.evaluate(readPage);
    },

    // the bar that is still running: the last one
    async hover() {
        const chart = page.locator('#requests svg');
        await chart.scrollIntoViewIfNeeded();
        const box = await chart.boundingBox();
        await page.mouse.move(box.x + box.width - 5, box.y + box.height / 2);
        return page.evaluate(readPage);
    },

    async leave() {
        await page.mouse.move(1, 1);
        return page.evaluate(readPage);
    },

    async keys({ keys }) {
        await page.focus('#charts');
        for (const key of keys) {
            await page.keyboard.press(key);
        }
        return page.evaluate(readPage);
    },

    // Puts the focus on a zone's button and selects a client's key.
    async hold({ zone }) {
        await page.locator('#zones button', { hasText: zone }).first().focus();
        await page.evaluate(() => getSelection().selectAllChildren(document.querySelector('#top-clients .key')));
        return page.evaluate(readPage);
    },

    // As if the visitor had turned to another tab, or come back.
    turn: ({ away }) => page.evaluate((hidden) => {
        Object.defineProperty(document, 'hidden', { configurable: true, value: hidden });
        document.dispatchEvent(new Event('visibilitychange'));
    }, away),

    // Answers with the server's numbers, but with these instead, and these of the
    // first zone and the first store.
    async pretend({ numbers = {}, zone = {}, store = {} }) {
        await page.route('**/*format=json*', async (route) => {
            const answer = await route.fetch();
            const all = { ...await answer.json(), ...numbers };
            Object.assign(all.zones[0], zone);
            Object.assign(all.stores[0], store);
            await route.fulfill({ response: answer, json: all });
        });
    },
};

for await (const line of createInterface({ input: process.stdin })) {
    const { do: name, ...given } = JSON.parse(line);
    let answer;

    try {
        answer = await does[name](given) ?? {};
    } catch (error) {
        answer = { failed: error.message };
    }
    console.log(JSON.stringify(answer));
}

await browser.close();
