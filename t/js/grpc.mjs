// grpc.mjs DIR: a gRPC application that answers every message with itself, and a client for it.
// The packages are in DIR. The first line it prints is the application's port. Then every line that
// it reads is a call, {port, service, kind, client}, and every line it prints what came of it:
// {code, details, messages, metadata}. It ends with its input.

import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

const require = createRequire(`${process.argv[2]}/`);
const grpc = require('@grpc/grpc-js');

const kinds = {
    unary: { requestStream: false, responseStream: false },
    upload: { requestStream: true, responseStream: false },
    download: { requestStream: false, responseStream: true },
    both: { requestStream: true, responseStream: true },
};

function methods(service) {
    const asIs = (bytes) => bytes;

    return Object.fromEntries(Object.entries(kinds).map(([kind, streams]) => [kind, {
        ...streams, path: `/${service}/${kind}`, requestSerialize: asIs, requestDeserialize: asIs,
        responseSerialize: asIs, responseDeserialize: asIs,
    }]));
}

function echoAll(call) {
    call.on('data', (message) => call.write(message));
    call.on('end', () => call.end());
}

const application = new grpc.Server();

for (const service of process.argv.slice(3)) {
    application.addService(methods(service), {
        unary: (call, done) => done(null, call.request),
        upload: (call, done) => {
            const messages = [];
            call.on('data', (message) => messages.push(message));
            call.on('end', () => done(null, Buffer.concat(messages)));
        },
        download: (call) => { call.write(call.request); call.end(); },
        both: echoAll,
    });
}

const clients = new Map();

function clientOf(port, service) {
    const name = `${port} ${service}`;

    if (!clients.has(name)) {
        const Client = grpc.makeGenericClientConstructor(methods(service), service);
        clients.set(name, new Client(`127.0.0.1:${port}`, grpc.credentials.createInsecure()));
    }

    return clients.get(name);
}

// All that a call brings, whatever its kind is: its status comes last.
function ask({ port, service, kind, client }) {
    return new Promise((resolve) => {
        const message = Buffer.from('hello');
        const metadata = new grpc.Metadata();
        const result = { messages: [], metadata: {} };
        const first = kinds[kind].requestStream ? [] : [message];
        const last = kinds[kind].responseStream ? [] : [(error, reply) => reply && result.messages.push(`${reply}`)];

        metadata.set('client', client);

        const call = clientOf(port, service)[kind](...first, metadata, { deadline: Date.now() + 30000 }, ...last);

        call.on('metadata', (headers) => Object.assign(result.metadata, headers.getMap()));
        call.on('error', () => {});
        call.on('status', ({ code, details, metadata: trailers }) => {
            Object.assign(result.metadata, trailers.getMap());
            setImmediate(() => resolve({ ...result, code: grpc.status[code], details }));
        });

        if (kinds[kind].responseStream) {
            call.on('data', (reply) => result.messages.push(`${reply}`));
        }

        if (kinds[kind].requestStream) {
            call.write(message);
            call.end();
        }
    });
}

application.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), async (error, port) => {
    if (error) throw error;
    console.log(port);

    for await (const line of createInterface({ input: process.stdin })) {
        console.log(JSON.stringify(await ask(JSON.parse(line))));
    }

    process.exit(0);
});
