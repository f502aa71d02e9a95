// hark-serve's page: recordings that are dropped, chosen or recorded become transcripts.
'use strict';
(() => {
const hark = globalThis.hark ??= {};
const part = (id) => document.getElementById(id);

const editor = new hark.Editor(hark.formats, 
    () => 'The recording can be played once it has ended.');
let models = [];       // of /v1/models
let chat = null;
let job = null;        // what runs: cancel(), and of a microphone stop() and `records`
let recording = null;  // of a microphone: its samples are nowhere else

// ---------------------------------------------------------------- what is said to the user

function announce(text) { part('news').textContent = text; }

function showError(error) {
    part('error').hidden = !error;
    if (!error) return;
    part('error-text').textContent =
        error instanceof hark.RequestError ? error.message : `The page failed: ${error}`;
    part('enter-key').hidden = error.status !== 401;
}

// Shows what runs; `share` from 0 to 1, or null if it is not known.
function showJob(text, share = null) {
    part('job').hidden = false;
    part('job-text').textContent = text;
    if (share === null) part('progress').removeAttribute('value');
    else part('progress').value = share;
}

// ---------------------------------------------------------------- models and options

const answering = (endpoint) => models.filter(({endpoints}) => endpoints.includes(endpoint));

function options() {
    return {model: part('model').value, language: part('language').value,
            translate: part('translate').checked};
}

// What the chosen model can do.
function showOptions() {
    const model = models.find(({id}) => id === part('model').value);
    const languages = (model?.languages ?? [])
        .map((code) => ({code, name: hark.languageName(code)}))
        .sort((a, b) => a.name.localeCompare(b.name, 'en'));
    const before = part('language').value;
    part('language').replaceChildren(
        hark.element('option', {value: '', textContent: 'Detect'}),
        ...languages.map(({code, name}) => hark.element('option', {value: code,
                                                                   textContent: name})));
    part('language').value = languages.some(({code}) => code === before) ? before : '';
    const translates = Boolean(model?.endpoints.includes('/v1/audio/translations'));
    part('translate').disabled = !translates;
    part('translate').checked &&= translates;
    part('language').disabled = part('translate').checked;
    const reason = !model ? 'The server has no Whisper model, so it cannot transcribe. Start ' +
        'hark-serve with one: --model MODEL.' : hark.noMicrophone();
    part('no-microphone').hidden = reason === '';
    part('no-microphone').textContent = reason;
    part('file').disabled = !model;
    part('record').disabled = reason !== '' || part('translate').checked;
}

async function begin() {
    showError(null);
    try {
        const {data} = await (await hark.ask('v1/models')).json();
        // A demonstration model writes nonsense for people's voices: it is not taken unasked.
        models = data.filter(({id, loaded}) => loaded || !id.endsWith('-demo'));
    } catch (error) {
        return showError(error);
    }
    part('model').replaceChildren(...answering('/v1/audio/transcriptions').map(
        ({id}) => hark.element('option', {value: id, textContent: id})));
    showOptions();
    chat ??= new hark.Chat(answering('/v1/chat/completions'), {
        place: () => part('audio').currentTime,
        play: (seconds) => editor.player.play(seconds),
    });
}

// ---------------------------------------------------------------- transcripts

// Ends what runs, and shows an empty transcript. Returns false if the user keeps the old one.
function beginTranscript(name, language) {
    const loses = editor.unsaved || recording || job?.records;
    if (loses && !confirm('Drop the corrections and recordings that you have not downloaded?'))
        return false;
    job?.cancel();
    recording = null;
    part('save-recording').hidden = true;
    showError(null);
    announce('');
    document.body.classList.add('working');
    part('workspace').hidden = part('jumps').hidden = false;
    part('title').textContent = name;
    part('partial').hidden = true;
    document.title = `${name} \u2013 hark`;
    const transcript = new hark.Transcript({source: name, language, text: '', segments: []});
    editor.open(transcript, name);
    chat.begin(transcript, name);
    return true;
}

function addSegment(data, language) {
    const {transcript} = editor;
    transcript.data.language = language;
    editor.add({id: transcript.segments.length, ...data});
}

// Shows that a job has begun; returns a function that shows its end, unless another began.
function beginJob(started) {
    job = started;
    part('cancel').hidden = false;
    return (error, news) => {
        if (job !== started) return;
        job = null;
        const hadFocus = part('job').contains(document.activeElement);
        part('job').hidden = part('stop').hidden = part('level').hidden = true;
        part('partial').hidden = true;
        if (hadFocus) part(started.records ? 'record' : 'file').focus();
        announce(news);
        if (error?.name !== 'AbortError') showError(error);
    };
}

function lines() {
    return hark.count(editor.transcript.segments.length, 'line');
}

async function transcribeFile(file) {
    if (!chat || answering('/v1/audio/transcriptions').length === 0) return;
    const language = part('translate').checked ? '' : part('language').value;
    if (!beginTranscript(file.name, language)) return;
    editor.playFile(file);
    const controller = new AbortController();
    const end = beginJob({cancel: () => controller.abort()});
    const {signal} = controller;
    showJob(`Sending ${file.name}`, 0);
    announce(`Transcribing ${file.name}`);
    try {
        await hark.transcribe(file, options(), {
            signal,
            sent: (share) => {
                if (share < 1) showJob(`Sending ${file.name}`, share);
                else showJob('Waiting for the first line');
            },
            segment: (data, language) => {
                if (signal.aborted) return;
                addSegment(data, language);
                const {duration} = part('audio'), isKnown = duration > 0 && duration < Infinity;
                const reached = hark.shortTime(data.end);
                if (isKnown)
                    showJob(`${reached} of ${hark.shortTime(duration)}`, data.end / duration);
                else
                    showJob(reached);
            },
        });
        end(null, `The transcript is complete: ${lines()}`);
    } catch (error) {
        if (error instanceof hark.RequestError)
            error.message = error.status === 413 ? `${file.name} is larger than this server takes.`
                : error.message.replace(/^file:/u, `${file.name}:`);
        end(error, error.name === 'AbortError' ? `Cancelled after ${lines()}` : '');
    }
}

// ---------------------------------------------------------------- the microphone

function showLine(line) {
    const {event, text, agreed, language, start, end, words} = line;
    part('partial').hidden = event !== 'partial';
    if (event === 'partial') {
        const {bottom} = part('partial').getBoundingClientRect();
        part('agreed').textContent = agreed.trimStart();
        part('in-doubt').textContent = text.slice(agreed.length);
        if (bottom > 0 && bottom < innerHeight + 100)
            part('partial').scrollIntoView({block: 'nearest'});
    } else if (event === 'final') {
        addSegment({start, end, text, words}, language);
    }
}

async function record() {
    if (!beginTranscript('microphone.wav', part('language').value)) return;
    editor.clearRecording();
    const microphone = new hark.Microphone({
        samples: (seconds, loudest) => {
            part('job-text').textContent = `Recording ${hark.shortTime(seconds)}`;
            part('level').value = loudest;
        },
        line: showLine,
    });
    const end = beginJob({
        records: true,
        stop: () => {
            microphone.stop();
            part('cancel').focus();
            part('stop').hidden = part('level').hidden = true;
            part('progress').hidden = false;
            showJob('Waiting for the last words');
        },
        cancel: () => microphone.cancel(),
    });
    const mine = job;
    showJob('Waiting for the microphone');
    try {
        await microphone.start(options());
    } catch (error) {
        return end(error, '');
    }
    part('stop').hidden = part('level').hidden = false;
    part('progress').hidden = true;
    announce('Recording');
    part('stop').focus();
    const error = await microphone.ended;
    part('progress').hidden = false;
    if (job !== mine) return;  // another recording came
    const {isCancelled} = microphone;
    end(error && !isCancelled ? new hark.RequestError(error) : null,
        isCancelled ? `Cancelled after ${lines()}` : `The transcript is complete: ${lines()}`);
    if (microphone.samples === 0) return;
    recording = microphone.recording;
    editor.playFile(recording);
    part('save-recording').hidden = false;
}

// ---------------------------------------------------------------- controls

// Of a recording that was made here.
part('downloads').append(hark.element('button', {type: 'button', id: 'save-recording',
                                                 textContent: 'wav', hidden: true}));
part('save-recording').addEventListener('click', () => {
    hark.save(editor.file, editor.file.name);
    recording = null;
});
part('file').addEventListener('change', (event) => {
    const [file] = event.target.files;
    event.target.value = '';  // so that the same file can be chosen again
    if (file) transcribeFile(file);
});
hark.onDrop(transcribeFile);
document.addEventListener('dragenter', (event) => {
    document.body.classList.toggle('dragged', event.dataTransfer.types.includes('Files'));
});
for (const name of ['dragleave', 'drop'])
    document.addEventListener(name, (event) => {
        if (name === 'drop' || !event.relatedTarget) document.body.classList.remove('dragged');
    });
part('record').addEventListener('click', record);
part('stop').addEventListener('click', () => job.stop());
part('cancel').addEventListener('click', () => job.cancel());
part('enter-key').addEventListener('click', begin);
part('model').addEventListener('change', showOptions);
part('translate').addEventListener('change', showOptions);
addEventListener('beforeunload', (event) => {
    if (job || recording) event.preventDefault();
});

Object.assign(hark, {editor, begun: begin()});
})();
