// Requests to the server that the page is from, with its key if it needs one.
'use strict';
(() => {
const hark = globalThis.hark ??= {};
const part = (id) => document.getElementById(id);
const kKey = 'hark-api-key';  // in sessionStorage

// A request that was refused or broke, with a message for the user.
class RequestError extends Error {
    constructor(message, status = 0) {
        super(message);
        this.status = status;  // of HTTP; 0: there was no answer
    }
}

const kUnreachable = 'The server does not answer. It may have been stopped.';

// The message of an answer that is an error: OpenAI's form, or that of a proxy.
function refusal(status, body) {
    let message = `The server answered with an error (HTTP ${status}).`;
    try {
        message = JSON.parse(body).error.message;
    } catch { /* not the server's own */ }
    return new RequestError(message, status);
}

function authorization() {
    const key = sessionStorage.getItem(kKey);
    return key ? {Authorization: `Bearer ${key}`} : {};
}

// Asks the user for a key, and keeps it. Throws RequestError if none is given.
function askForKey() {
    const dialog = part('key'), form = dialog.querySelector('form');
    const wasWrong = sessionStorage.getItem(kKey) !== null;
    part('key-text').textContent = (wasWrong ? 'The key was not accepted. ' : '') +
        'This tab keeps it until it is closed.';
    part('key-field').value = '';
    if (!dialog.open) dialog.showModal();
    return new Promise((resolve, reject) => {
        let key = null;
        form.onsubmit = (event) => {
            event.preventDefault();
            key = part('key-field').value.trim();
            dialog.close();
        };
        part('no-key').onclick = () => dialog.close();
        dialog.onclose = () => {
            if (!key) return reject(new RequestError('This server needs a key.', 401));
            sessionStorage.setItem(kKey, key);
            resolve();
        };
    });
}

// Sends a request by `send`, which returns an answer with a `status`; if it needs a key, again with
// one.
async function withKey(send) {
    for (;;) {
        const answer = await send();
        if (answer.status !== 401) return answer;
        await askForKey();
    }
}

// The answer to a request, of which `body` is sent as JSON. Throws RequestError, or AbortError
// after `signal`.
async function ask(path, body = undefined, signal = undefined) {
    const request = {method: body ? 'POST' : 'GET', signal, credentials: 'omit'};
    if (body) request.body = JSON.stringify(body);
    const response = await withKey(() =>
        fetch(path, {...request, headers: {...authorization(),
                                           ...(body && {'Content-Type': 'application/json'})}})
            .catch((error) => {
                if (error.name === 'AbortError') throw error;
                throw new RequestError(kUnreachable);
            }));
    if (!response.ok) throw refusal(response.status, await response.text());
    return response;
}

// Server-sent events with JSON, from text that comes in any pieces.
class EventReader {
    // `use` gets each event's object. An event that is an error is thrown as RequestError.
    constructor(use) {
        this.use = use;
        this.held = '';
    }

    add(text) {
        const events = (this.held + text).split('\n\n');
        this.held = events.pop();
        for (const event of events) {
            if (!event.startsWith('data: ') || event === 'data: [DONE]') continue;
            const data = JSON.parse(event.slice('data: '.length));
            if (data.error) throw new RequestError(data.error.message, 500);
            this.use(data);
        }
    }
}

Object.assign(hark, {RequestError, EventReader, ask, authorization, withKey, refusal, kUnreachable,
                     apiKey: () => sessionStorage.getItem(kKey)});
})();
