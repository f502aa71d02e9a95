// Sends a recording to be transcribed, and takes its segments as they arrive.
'use strict';
(() => {
const hark = globalThis.hark ??= {};

// By XMLHttpRequest, because fetch does not tell how much was sent. Resolves with the status and
// the body, and takes `reader`, an EventReader, as far as the answer is a stream.
function send(path, form, {sent, reader, signal}) {
    return new Promise((resolve, reject) => {
        const request = new XMLHttpRequest();
        let at = 0;
        request.open('POST', path);
        for (const [name, value] of Object.entries(hark.authorization()))
            request.setRequestHeader(name, value);
        request.upload.onprogress = ({loaded, total}) => sent(loaded / total);
        request.upload.onload = () => sent(1);
        const read = () => {
            if (request.status !== 200) return;
            const text = request.responseText;
            try {
                reader.add(text.slice(at));
            } catch (error) {
                reject(error);
                request.abort();
            }
            at = text.length;
        };
        request.onprogress = read;
        request.onload = () => {
            read();
            resolve({status: request.status, body: request.responseText});
        };
        request.onerror = () => reject(new hark.RequestError(
            request.status === 200 ? 'The connection to the server broke.' : hark.kUnreachable));
        request.onabort = () => reject(new DOMException('cancelled', 'AbortError'));
        signal.addEventListener('abort', () => request.abort());
        if (signal.aborted) request.abort();
        else request.send(form);
    });
}

// Transcribes `file`. `options`: model, language ('' to detect it) and translate. `events`:
// sent(share of the file), segment(an object of `--format json` without its id, and the code of its
// language), and `signal` that cancels. Throws RequestError and AbortError.
async function transcribe(file, {model, language, translate}, {sent, segment, signal}) {
    const form = new FormData();
    form.append('model', model);
    if (language && !translate) form.append('language', language);
    form.append('response_format', 'verbose_json');
    form.append('timestamp_granularities[]', 'word');
    form.append('stream', 'true');
    form.append('file', file, file.name);
    let isDone = false;
    const reader = new hark.EventReader((event) => {
        if (event.type === 'transcript.text.done') isDone = true;
        if (event.type !== 'transcript.text.delta') return;
        const {language, ...data} = event.segment;
        segment(data, language);
    });
    const path = `v1/audio/${translate ? 'translations' : 'transcriptions'}`;
    const {status, body} = await hark.withKey(() => send(path, form, {sent, reader, signal}));
    if (status !== 200) throw hark.refusal(status, body);
    if (!isDone) throw new hark.RequestError('The connection to the server broke.');
}

hark.transcribe = transcribe;
})();
