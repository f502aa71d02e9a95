// Mono samples at 16 kHz come in, lines of the transcript go out: mel, then whisper-transcribe.
// Each tool's script sets createTool().
importScripts('mel.js');
const createMel = createTool;
importScripts('whisper-transcribe.js');
const createTranscribe = createTool;

const MODEL = ['config.json', 'generation_config.json', 'merges.txt', 'model.safetensors',
    'preprocessor_config.json', 'tokenizer.json', 'vocab.json'];

// The model's files, fetched once: name -> bytes.
let model;
async function fetchModel() {
    const fetchFile = async (name) => {
        const reply = await fetch(`model/${name}`);
        if (!reply.ok) throw new Error(`model/${name}: ${reply.status} ${reply.statusText}`);
        return [name, new Uint8Array(await reply.arrayBuffer())];
    };
    return Promise.all(MODEL.map(fetchFile));
}

// An input of runTool() that has these bytes.
function bytesInput(bytes) {
    let at = 0;
    return (to) => {
        const part = bytes.subarray(at, at + to.length);
        to.set(part);
        at += part.length;
        return part.length;
    };
}

// An output of runTool() that calls take(line) for each line.
function lines(take) {
    const decoder = new TextDecoder();
    let text = '';
    return (bytes) => {
        const parts = (text + decoder.decode(bytes, { stream: true })).split('\n');
        text = parts.pop();
        parts.forEach(take);
    };
}

async function run(create, name, args, streams) {
    const messages = [];
    const take = (line) => {
        if (!line.startsWith('{')) return messages.push(line);
        const { done, total } = JSON.parse(line);
        if (total > 0) postMessage({ progress: done / total });
    };
    const { runTool } = await import('./tool.mjs');
    if (await runTool(create, name, args, { errors: lines(take), ...streams }) !== 0)
        throw new Error(messages.join('\n'));
}

async function computeMel(samples) {
    const parts = [];
    await run(createMel, 'mel', ['--raw', 'f32le', '--quiet'], {
        input: bytesInput(new Uint8Array(samples.buffer)),
        output: (bytes) => parts.push(bytes.slice()),
    });
    return new Uint8Array(await new Blob(parts).arrayBuffer());
}

// Lines of tsv: start and end in milliseconds, text.
function takeRow(line) {
    const [start, , text] = line.split('\t');
    if (start !== 'start') postMessage({ line: { start: start / 1000, text } });
}

onmessage = async ({ data: samples }) => {
    try {
        model ??= await fetchModel();
        const mel = await computeMel(samples);
        await run(createTranscribe, 'whisper-transcribe',
            ['--model', '/model', '--format', 'tsv', '--progress', 'json'], {
                input: bytesInput(mel),
                output: lines(takeRow),
                prepare: (FS) => {
                    FS.mkdir('/model');
                    for (const [name, bytes] of model) FS.writeFile(`/model/${name}`, bytes);
                },
            });
        postMessage({ done: true });
    } catch (error) {
        postMessage({ error: error.message });
    }
};
