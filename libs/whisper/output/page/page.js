// The page of one transcript: its recording is the file next to it, or one that is chosen.
'use strict';
(() => {
const hark = globalThis.hark ??= {};
const unchanged = document.documentElement.cloneNode(true);  // to save the page again
const part = (id) => document.getElementById(id);
const transcript = new hark.Transcript(JSON.parse(part('transcript').textContent));
const name = transcript.data.source.split('/').at(-1);
const kFromPipe = 'stdin';  // the name of a recording that came through a pipe

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
    plain.textContent = plain.textContent.replace(
        /(<pre [^>]*>).*(<\/pre>)/su, (_, begin, end) => begin + text.innerHTML + end);
    return `<!DOCTYPE html>\n${page.outerHTML}\n`;
}

const editor = new hark.Editor(
    {...hark.formats, html: {type: 'text/html', write: savedPage}},
    () => name === kFromPipe ? 'The recording came through a pipe: its file is not known.'
        : `${name} is not next to this page, or this browser cannot play it.`);
editor.open(transcript, name === kFromPipe ? 'transcript' : name);

function takeFile(file) {
    if (!file) return;
    editor.playFile(file);
    editor.say(`Playing ${file.name}`);
}

const file = hark.element('input', {type: 'file', id: 'file', accept: 'audio/*,video/*'});
part('no-waveform').before(
    hark.element('label', {className: 'file'}, 'Choose the recording ', file));
const choose = hark.element('button', {type: 'button', id: 'choose',
                                       textContent: 'Choose the recording'});
part('missing').append(choose);
choose.addEventListener('click', () => file.click());
file.addEventListener('change', () => takeFile(file.files[0]));
hark.onDrop(takeFile);

if (name === kFromPipe) editor.player.play(0);  // says that the recording is missing
else editor.player.loadNeighbour(name);
Object.assign(hark, {transcript, view: editor.view, player: editor.player});
})();
