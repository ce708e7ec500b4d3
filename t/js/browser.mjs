// A real browser for the live page, driven by lines of JSON.
//
// In, one per line: { "do": NAME, ... }. Out: one line each, what the function of
// this name returns, or { "failed": why }. Programs are started with two arguments:
// where npm installed playwright-core, and the browser.

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

export let page = null;
let complaints = [];      // of the browser: console, errors, violations of the policy
let requested = [];       // URLs, since the page was opened

// Visible text whose contrast is below WCAG's AA. Runs in the page.
export function faintTexts() {
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

// A new page, which has its first numbers. It can be prepared before it asks for them.
export async function open({ url, width = 1280, height = 900, scheme = 'light' }, prepare = () => {}) {
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

    await prepare();
    await page.goto(url);
    await page.waitForSelector('#content', { state: 'visible' });
}

// What the browser complained of and asked for since the last call.
export function events() {
    const all = { complaints, requested };
    complaints = [];
    requested = [];
    return all;
}

// Does what it is told, until there is nothing more to do.
export async function serve(does) {
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
}
