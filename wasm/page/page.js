// Files dropped or chosen: decoded here by the browser, transcribed in a worker, one after another.
const element = (id) => document.getElementById(id);
const SAMPLE_RATE = 16000;

// The file's sound as mono samples at 16 kHz. decodeAudioData() resamples to the context's rate.
async function decode(file) {
    const context = new OfflineAudioContext(1, 1, SAMPLE_RATE);
    const buffer = await context.decodeAudioData(await file.arrayBuffer());
    const mono = new Float32Array(buffer.length);
    for (let channel = 0; channel < buffer.numberOfChannels; ++channel)
        buffer.getChannelData(channel).forEach((sample, i) => {
            mono[i] += sample / buffer.numberOfChannels;
        });
    return mono;
}

// "1:02.5"
function clock(seconds) {
    const minutes = Math.floor(seconds / 60);
    return `${minutes}:${(seconds - 60 * minutes).toFixed(1).padStart(4, '0')}`;
}

function addLine({ start, text }) {
    const row = element('lines').insertRow();
    row.insertCell().textContent = clock(start);
    row.insertCell().textContent = text;
    element('transcript').hidden = false;
}

function showError(message) {
    element('error').textContent = message;
    element('error').hidden = message === '';
}

let worker;

// Sends the samples to the worker; resolves when it has written all lines.
function transcribe(samples) {
    return new Promise((resolve, reject) => {
        worker ??= new Worker('worker.js');
        worker.onerror = (event) =>
            reject(new Error(event.message ?? 'worker.js: cannot be loaded'));
        worker.onmessage = ({ data }) => {
            if (data.line) addLine(data.line);
            if (data.progress !== undefined) element('progress').value = data.progress;
            if (data.error !== undefined) reject(new Error(data.error));
            if (data.done) resolve();
        };
        worker.postMessage(samples, [samples.buffer]);
    });
}

async function open(file) {
    document.body.classList.add('working');
    element('file').disabled = true;
    element('lines').replaceChildren();
    element('transcript').hidden = true;
    element('title').textContent = file.name;
    element('progress').value = 0;
    element('progress').hidden = false;
    showError('');
    try {
        element('status').textContent = `Decoding ${file.name}`;
        const samples = await decode(file).catch(() => {
            throw new Error(`${file.name}: this browser cannot decode it`);
        });
        const seconds = samples.length / SAMPLE_RATE, begin = performance.now();
        element('status').textContent = `Transcribing ${file.name}`;
        await transcribe(samples);
        const took = (performance.now() - begin) / 1000;
        element('status').textContent = `${seconds.toFixed(1)} s of sound in ${took.toFixed(1)} s`;
    } catch (error) {
        element('status').textContent = '';
        showError(error.message);
    }
    element('progress').hidden = true;
    element('file').disabled = false;
    document.body.classList.remove('working');
}

let last = Promise.resolve();
const openAll = (files) => {
    for (const file of files) last = last.then(() => open(file));
};
element('file').addEventListener('change', () => {
    openAll([...element('file').files]);
    element('file').value = '';
});
addEventListener('dragover', (event) => {
    event.preventDefault();
    document.body.classList.add('dragged');
});
addEventListener('dragleave', () => document.body.classList.remove('dragged'));
addEventListener('drop', (event) => {
    event.preventDefault();
    document.body.classList.remove('dragged');
    openAll([...event.dataTransfer.files]);
});
