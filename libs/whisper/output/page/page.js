// The page of one transcript: its parts, the keyboard, and what can be downloaded.
'use strict';
(() => {
const hark = globalThis.hark ??= {};
const unchanged = document.documentElement.cloneNode(true);  // to save the page again
const part = (id) => document.getElementById(id);
const transcript = new hark.Transcript(JSON.parse(part('transcript').textContent));
const name = transcript.data.source.split('/').at(-1);
const kFromPipe = 'stdin';  // the name of a recording that came through a pipe
let unsaved = false;        // corrections that no download has

function say(text) { part('status').textContent = text; }

// ---------------------------------------------------------------- the recording

const waveform = new hark.Waveform(part('waveform'), part('audio'),
                                   (seconds) => player.seek(seconds));
let chosenFile = null;

const player = new hark.Player(part('audio'), {
    time(seconds, plays) {
        view.follow(seconds, plays);
        waveform.follow();
    },
    missing() {
        part('missing').hidden = false;
        part('reason').textContent = chosenFile
            ? `This browser cannot play ${chosenFile.name}.`
            : name === kFromPipe ? 'The recording came through a pipe: its file is not known.'
            : `${name} is not next to this page, or this browser cannot play it.`;
    },
    async loaded() {
        part('missing').hidden = true;
        if (!chosenFile && location.protocol === 'file:') {
            part('no-waveform').textContent =
                'to see its waveform: a page that was opened as a file may only play it';
            return;
        }
        const address = part('audio').src, file = chosenFile;
        const read = async () => file ? file.arrayBuffer() : (await fetch(address)).arrayBuffer();
        const reason = await waveform.show(part('audio').duration, read);
        if (file === chosenFile) part('no-waveform').textContent = reason;
    },
});

function takeFile(file) {
    if (!file) return;
    chosenFile = file;
    player.loadFile(file);
    say(`Playing ${file.name}`);
}

part('choose').addEventListener('click', () => part('file').click());
part('file').addEventListener('change', (event) => takeFile(event.target.files[0]));
for (const name of ['dragover', 'drop'])
    document.addEventListener(name, (event) => {
        if (!event.dataTransfer.types.includes('Files')) return;
        event.preventDefault();
        takeFile(event.dataTransfer.files[0]);  // none while it is dragged
    });
part('speed').addEventListener('change', (event) => {
    part('audio').defaultPlaybackRate = part('audio').playbackRate = Number(event.target.value);
});

// ---------------------------------------------------------------- the text

const view = new hark.TranscriptView(part('segments'), transcript, {
    play: (seconds) => player.play(seconds),
    seek: (seconds) => player.seek(seconds),
    chosen: (word) => say(word ? `\u201c${word.word.trim()}\u201d ${view.describe(word)}`
                               : 'No more uncertain words'),
    corrected(segment) {
        unsaved = transcript.isCorrected;
        say(segment.data === segment.original ? 'The text is as decoded' : 'Corrected');
        summarize();
        if (part('search').value !== '') search();
    },
});

function summarize() {
    const {data, segments, words} = transcript;
    const count = (number, noun) =>
        `${number.toLocaleString('en')} ${noun}${number === 1 ? '' : 's'}`;
    const uncertain = words.filter((word) => hark.confidence(word.probability) !== 'high').length;
    const language = data.language &&
        new Intl.DisplayNames('en', {type: 'language', fallback: 'code'}).of(data.language);
    const parts = [language, count(segments.length, 'line')];
    if (transcript.hasWordTimes)
        parts.push(count(words.length, 'word'), `${uncertain.toLocaleString('en')} uncertain`);
    else if (segments.length > 0)
        parts.push('words have no times: made without --word-timestamps');
    part('summary').textContent = parts.filter(Boolean).join(' \u00b7 ');
    part('broken').hidden = !data.error;
    part('broken').textContent = data.error ? `The recording broke: ${data.error}` : '';
}

// ---------------------------------------------------------------- search

function showPlace(place) {
    const {length} = view.places;
    part('found').textContent = length > 0 ? `${place} of ${length}`
        : part('search').value.trim() === '' ? '' : 'not found';
}

function search() {
    const found = view.search(part('search').value);
    part('filter').hidden = part('search').value === '';
    part('segments').classList.toggle('filtered', part('only').checked && found > 0);
    showPlace(1);
}

const goToHit = (direction) => view.places && showPlace(view.goToHit(direction));
part('search').addEventListener('input', search);
part('only').addEventListener('change', search);
part('next').addEventListener('click', () => goToHit(1));
part('previous').addEventListener('click', () => goToHit(-1));
part('search').addEventListener('keydown', (event) => {
    if (event.isComposing) return;
    if (event.key === 'Enter') goToHit(event.shiftKey ? -1 : 1);
    else if (event.key === 'ArrowDown') view.moveTo(view.hit);
    else return;
    event.preventDefault();
});

// ---------------------------------------------------------------- confidence

part('show-confidence').addEventListener('change', (event) => {
    part('segments').classList.toggle('marked', event.target.checked);
});
part('next-uncertain').addEventListener('click', () => view.stepUncertain(1));
part('previous-uncertain').addEventListener('click', () => view.stepUncertain(-1));

// ---------------------------------------------------------------- the keyboard

// What the focused element does with a key itself.
const kTyping = 'textarea, input[type=search], select';
const kPressed = 'button, audio, summary, input, label';

const kShortcuts = {
    '/': () => part('search').focus(),
    'e': () => view.chosen && view.edit(view.chosen.segment),
    'n': () => view.stepUncertain(1),
    'N': () => view.stepUncertain(-1),
};

document.addEventListener('keydown', (event) => {
    const {key, target} = event;
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (target.closest(kTyping)) return;
    if (key === ' ' && !target.closest(kPressed)) player.toggle();
    else if (key === 'ArrowRight' && target.localName !== 'audio') view.step(1);
    else if (key === 'ArrowLeft' && target.localName !== 'audio') view.step(-1);
    else if (kShortcuts[key] && part('letters').checked) kShortcuts[key]();
    else return;
    event.preventDefault();
});

// What is at the top covers no word that the page moves to.
new ResizeObserver(([{borderBoxSize: [{blockSize}]}]) => {
    document.documentElement.style.scrollPaddingTop = `${blockSize + 16}px`;
}).observe(part('player'), {box: 'border-box'});

// ---------------------------------------------------------------- downloads

// This page with the corrected transcript.
function savedPage() {
    const page = unchanged.cloneNode(true);
    const data = JSON.stringify(transcript.toJson());
    page.querySelector('#transcript').textContent =
        data.replace(/[<\u2028\u2029]/gu, (letter) =>
            `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`);
    const text = document.createElement('pre');
    text.textContent = hark.formats.txt.write(transcript);
    const plain = page.querySelector('noscript');
    plain.textContent = plain.textContent.replace(/<pre>.*<\/pre>/su, () => text.outerHTML);
    return `<!DOCTYPE html>\n${page.outerHTML}\n`;
}

const formats = {...hark.formats, html: {type: 'text/html', write: savedPage}};
const stem = name === kFromPipe ? 'transcript' : name.replace(/(?<=.)\.[^.]*$/u, '');

function download(format) {
    const {type, write} = formats[format];
    const file = new Blob([write(transcript)], {type: `${type};charset=utf-8`});
    const link = document.createElement('a');
    link.href = URL.createObjectURL(file);
    link.download = `${stem}.${format}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
    unsaved = false;
    say(`Downloaded ${link.download}`);
}

part('downloads').addEventListener('click', (event) => {
    if (event.target.value) download(event.target.value);
});
addEventListener('beforeunload', (event) => {
    if (unsaved) event.preventDefault();
});

summarize();
if (name === kFromPipe) player.play(0);  // says that the recording is missing
else player.loadNeighbour(name);
Object.assign(hark, {transcript, view, player});
})();
