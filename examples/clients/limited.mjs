// Calls an API that has limits, and waits when its headers say so (Node 18 or later):
//
//     node limited.mjs URL TIMES [PATIENCE]    calls it so often, and prints what came of it

export class LimitedClient {
    #roomAt = 0; // before this moment the server would refuse us

    constructor(patience = 60) {
        this.patience = patience; // how many seconds one call may wait in all
    }

    // As fetch(); the answer is a refusal if waiting would take too long.
    async call(url, options) {
        const end = performance.now() + 1000 * this.patience;
        for (let attempt = 1; ; attempt++) {
            if (this.#roomAt < end) {
                await sleep(this.#roomAt - performance.now());
            }
            const answer = await fetch(url, options);
            if (answer.status !== 429 && answer.status !== 503) {
                if (answer.headers.get("X-RateLimit-Remaining") === "0") {
                    // the next call would be refused
                    this.#wait(seconds(answer.headers.get("X-RateLimit-Reset"), 0));
                }
                return answer;
            }
            this.#wait(seconds(answer.headers.get("Retry-After"), 2 ** attempt));
            if (this.#roomAt >= end) {
                return answer;
            }
        }
    }

    #wait(delay) {
        // a little more, so that clients which were told the same do not come together
        this.#roomAt = performance.now() + 1000 * delay * (1 + 0.1 * Math.random());
    }
}

function sleep(milliseconds) {
    return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

function seconds(header, otherwise) {
    const number = parseFloat(header);
    return Number.isNaN(number) ? otherwise : number;
}

if (globalThis.process?.argv[1]?.endsWith("limited.mjs")) {
    const [url, times, patience] = process.argv.slice(2);
    const client = new LimitedClient(patience && Number(patience));
    for (let number = 0; number < Number(times); number++) {
        const answer = await client.call(url);
        console.log(answer.status, answer.headers.get("X-RateLimit-Remaining"));
    }
}
