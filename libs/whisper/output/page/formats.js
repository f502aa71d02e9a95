// A transcript as a file, byte for byte as whisper-transcribe writes it with --word-timestamps.
'use strict';
(() => {
const hark = globalThis.hark ??= {};

// White space as Python's str.strip() knows it, and strings.h.
const kSpace = '\\t-\\r\\x1c- \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000';
const kEnds = new RegExp(`^[${kSpace}]+|[${kSpace}]+$`, 'gu');
const strip = (text) => text.replace(kEnds, '');
const oneLine = (text) => text.replace(/[\x00-\x08\x0a-\x1f\x7f]/gu, ' ');

// "01:02:03,450", or with `hoursAlways` false "02:03.450" below an hour.
function formatTime(seconds, hoursAlways, mark) {
    const total = Math.round(seconds * 1000);
    const digits = (number, count) => String(number).padStart(count, '0');
    const hours = Math.floor(total / 3600000), minutes = Math.floor(total / 60000) % 60;
    return (hoursAlways || hours > 0 ? digits(hours, 2) + ':' : '') + digits(minutes, 2) + ':' +
        digits(Math.floor(total / 1000) % 60, 2) + mark + digits(total % 1000, 3);
}

// What is shown at once: of each segment that has text its start, end and text.
function cues(transcript) {
    const all = [];
    for (const {data} of transcript.segments) {
        let {start, end} = data;
        let text = data.words ? '' : strip(oneLine(data.text));
        for (const {word} of data.words ?? []) {
            const line = oneLine(word);
            text += text === '' ? strip(line) : line;
        }
        if (data.words?.length > 0) {
            start = data.words[0].start;
            end = data.words.at(-1).end;
        }
        if (strip(text) !== '') all.push({start, end, text});
    }
    return all;
}

function srt(transcript) {
    return cues(transcript).map(({start, end, text}, i) =>
        `${i + 1}\n${formatTime(start, true, ',')} --> ${formatTime(end, true, ',')}\n` +
        text.replaceAll('-->', '->') + '\n\n').join('');
}

function vtt(transcript) {
    return 'WEBVTT\n\n' + cues(transcript).map(({start, end, text}) =>
        `${formatTime(start, false, '.')} --> ${formatTime(end, false, '.')}\n` +
        text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('-->', '->') +
        '\n\n').join('');
}

function txt(transcript) {
    const lines = transcript.segments.map(({data}) => strip(oneLine(data.text)));
    return lines.filter((line) => line !== '').map((line) => line + '\n').join('');
}

function json(transcript) {
    return JSON.stringify(transcript.toJson(), null, 2) + '\n';
}

// By a file's ending: its type, and what makes it of a transcript.
hark.formats = {
    srt: {type: 'application/x-subrip', write: srt},
    vtt: {type: 'text/vtt', write: vtt},
    txt: {type: 'text/plain', write: txt},
    json: {type: 'application/json', write: json},
};
})();
