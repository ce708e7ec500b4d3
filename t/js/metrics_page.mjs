// metrics_page.mjs DIR CHROMIUM: the live page in a real browser; see browser.mjs.

import { events, faintTexts, open, page, serve } from './browser.mjs';

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
        settled: isVisible(document.getElementById('settled')) ? {
            words: textOf('#settled-words'),
            bars: [...document.querySelectorAll('#settled rect')].map((bar) => Math.round(bar.getBoundingClientRect().height)),
            titles: [...document.querySelectorAll('#settled rect title')].map((title) => title.textContent),
            labels: [...document.querySelectorAll('#settled text')].map((label) => label.textContent),
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

const does = {
    // { url, width, height, scheme }: a new page, which has its first numbers.
    async open(how) {
        await open(how);
        return page.evaluate(readPage);
    },

    read: () => page.evaluate(readPage),

    // What the page would say of each of these zones.
    foundUsedWords: ({ zones }) => page.evaluate((list) => list.map((zone) => window.foundUsedWords(zone)), zones),

    settledWords: ({ settled }) => page.evaluate((list) => list.map((each) => window.settledWords(each)), settled),

    faint: () => page.evaluate(faintTexts),

    events,

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

await serve(does);
