// A transcript with its recording (recording.html): playing, searching, correcting, downloading,
// and the keyboard.
'use strict';
(() => {
const hark = globalThis.hark ??= {};
const part = (id) => document.getElementById(id);

// What the focused element does with a key itself.
const kTyping = 'textarea, input:not([type=checkbox], [type=file]), select';
const kPressed = 'a, button, audio, summary, input, label';

class Editor {
    // `formats` has by a file's ending what can be downloaded (formats.js). `noRecording` returns
    // why there is nothing to play, unless a file was chosen.
    constructor(formats, noRecording) {
        this.formats = formats;
        this.noRecording = noRecording;
        this.file = null;      // the recording, if it was chosen
        this.unsaved = false;  // corrections that no download has
        this.player = new hark.Player(part('audio'), {
            time: (seconds, plays) => {
                this.view.follow(seconds, plays);
                this.waveform.follow();
            },
            missing: () => this.#missing(),
            loaded: () => this.#showWaveform(),
        });
        this.waveform = new hark.Waveform(part('waveform'), part('audio'),
                                          (seconds) => this.player.seek(seconds));
        this.view = new hark.TranscriptView(part('segments'), {
            play: (seconds) => this.player.play(seconds),
            seek: (seconds) => this.player.seek(seconds),
            chosen: (word) => this.say(word
                ? `\u201c${word.word.trim()}\u201d ${this.view.describe(word)}`
                : 'No more uncertain words'),
            corrected: (segment) => this.#corrected(segment),
        });
        this.#watchControls();
        this.#watchKeys();
    }

    say(text) { part('status').textContent = text; }

    // Shows a transcript, of the recording `name`.
    open(transcript, name) {
        this.transcript = transcript;
        this.stem = name.replace(/(?<=.)\.[^.]*$/u, '');
        this.unsaved = false;
        this.say('');
        this.view.show(transcript);
        part('search').value = '';
        this.#search();
        this.summarize();
    }

    // Adds a segment after those that are shown (Transcript.add).
    add(data) {
        this.view.add(data);
        this.#showPlace(this.view.place + 1);
        this.summarize();
    }

    // Plays a file that was chosen or dropped.
    playFile(file) {
        this.file = file;
        this.player.loadFile(file);
    }

    // There is no recording yet.
    clearRecording() {
        this.file = null;
        this.player.clear();
        this.waveform.clear();
        part('missing').hidden = true;
        part('no-waveform').textContent = '';
    }

    summarize() {
        const {data, segments, words} = this.transcript;
        const uncertain = words.filter((word) => hark.confidence(word.probability) !== 'high');
        const parts = [data.language && hark.languageName(data.language),
                       count(segments.length, 'line')];
        if (this.transcript.hasWordTimes)
            parts.push(count(words.length, 'word'),
                       `${uncertain.length.toLocaleString('en')} uncertain`);
        else if (segments.length > 0)
            parts.push('words have no times: made without --word-timestamps');
        part('summary').textContent = parts.filter(Boolean).join(' \u00b7 ');
        part('broken').hidden = !data.error;
        part('broken').textContent = data.error ? `The recording broke: ${data.error}` : '';
        part('segments').lang = data.language ?? '';
    }

    // ------------------------------------------------------------ the recording

    #missing() {
        part('missing').hidden = false;
        this.waveform.clear();
        part('reason').textContent = this.file
            ? `This browser cannot play ${this.file.name}.` : this.noRecording();
    }

    async #showWaveform() {
        part('missing').hidden = true;
        if (!this.file && location.protocol === 'file:') {
            part('no-waveform').textContent =
                'to see its waveform: a page that was opened as a file may only play it';
            return;
        }
        const address = part('audio').src, {file} = this;
        const read = async () => file ? file.arrayBuffer() : (await fetch(address)).arrayBuffer();
        const reason = await this.waveform.show(part('audio').duration, read);
        if (file === this.file) part('no-waveform').textContent = reason;
    }

    // ------------------------------------------------------------ the text

    #corrected(segment) {
        this.unsaved = this.transcript.isCorrected;
        this.say(segment.data === segment.original ? 'The text is as decoded' : 'Corrected');
        this.summarize();
        if (part('search').value !== '') this.#search();
    }

    #showPlace(place) {
        const {length} = this.view.places;
        part('found').textContent = length > 0 ? `${place} of ${length}`
            : part('search').value.trim() === '' ? '' : 'not found';
    }

    #search() {
        const found = this.view.search(part('search').value);
        part('filter').hidden = part('search').value === '';
        part('segments').classList.toggle('filtered', part('only').checked && found > 0);
        this.#showPlace(1);
    }

    #goToHit(direction) { this.#showPlace(this.view.goToHit(direction)); }

    download(format) {
        const {type, write} = this.formats[format];
        const file = new Blob([write(this.transcript)], {type: `${type};charset=utf-8`});
        hark.save(file, `${this.stem}.${format}`);
        this.unsaved = false;
        this.say(`Downloaded ${this.stem}.${format}`);
    }

    #watchControls() {
        for (const format of Object.keys(this.formats))
            part('downloads').append(hark.element('button', {type: 'button', value: format,
                                                             textContent: format}));
        part('downloads').addEventListener('click', (event) => {
            if (this.formats[event.target.value]) this.download(event.target.value);
        });
        addEventListener('beforeunload', (event) => {
            if (this.unsaved) event.preventDefault();
        });
        part('speed').addEventListener('change', (event) => {
            const speed = Number(event.target.value);
            part('audio').defaultPlaybackRate = part('audio').playbackRate = speed;
        });
        part('show-confidence').addEventListener('change', (event) => {
            part('segments').classList.toggle('marked', event.target.checked);
        });
        part('next-uncertain').addEventListener('click', () => this.view.stepUncertain(1));
        part('previous-uncertain').addEventListener('click', () => this.view.stepUncertain(-1));
        part('search').addEventListener('input', () => this.#search());
        part('only').addEventListener('change', () => this.#search());
        part('next').addEventListener('click', () => this.#goToHit(1));
        part('previous').addEventListener('click', () => this.#goToHit(-1));
        part('search').addEventListener('keydown', (event) => {
            if (event.isComposing) return;
            if (event.key === 'Enter') this.#goToHit(event.shiftKey ? -1 : 1);
            else if (event.key === 'ArrowDown') this.view.moveTo(this.view.hit);
            else return;
            event.preventDefault();
        });
        // What is at the top covers no word that the page moves to.
        new ResizeObserver(([{borderBoxSize: [{blockSize}]}]) => {
            document.documentElement.style.scrollPaddingTop = `${blockSize + 16}px`;
        }).observe(part('player'), {box: 'border-box'});
    }

    // ------------------------------------------------------------ the keyboard

    #watchKeys() {
        const shortcuts = {
            '/': () => part('search').focus(),
            'e': () => this.view.chosen && this.view.edit(this.view.chosen.segment),
            'n': () => this.view.stepUncertain(1),
            'N': () => this.view.stepUncertain(-1),
        };
        document.addEventListener('keydown', (event) => {
            const {key, target} = event;
            if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
            if (!this.transcript || target.closest(`${kTyping}, dialog`)) return;
            if (key === ' ' && !target.closest(kPressed)) this.player.toggle();
            else if (key === 'ArrowRight' && target.localName !== 'audio') this.view.step(1);
            else if (key === 'ArrowLeft' && target.localName !== 'audio') this.view.step(-1);
            else if (shortcuts[key] && part('letters').checked) shortcuts[key]();
            else return;
            event.preventDefault();
        });
    }
}

// "1 line", "1,200 lines".
function count(number, noun) {
    return `${number.toLocaleString('en')} ${noun}${number === 1 ? '' : 's'}`;
}

// "German" for "de".
function languageName(code) {
    return new Intl.DisplayNames('en', {type: 'language', fallback: 'code'}).of(code);
}

// Downloads a file of this page.
function save(file, name) {
    const link = hark.element('a', {href: URL.createObjectURL(file), download: name});
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

// Calls `use` with a file that is dropped anywhere on the page.
function onDrop(use) {
    for (const name of ['dragover', 'drop'])
        document.addEventListener(name, (event) => {
            if (!event.dataTransfer.types.includes('Files')) return;
            event.preventDefault();
            const [file] = event.dataTransfer.files;  // none while it is dragged
            if (file) use(file);
        });
}

Object.assign(hark, {Editor, count, languageName, save, onDrop});
})();
