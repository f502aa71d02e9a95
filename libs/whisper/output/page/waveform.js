// The picture of a recording's samples.
'use strict';
(() => {
const hark = globalThis.hark ??= {};

const kRate = 8000;         // samples per second: enough for a picture
const kMostSeconds = 7200;  // decoded, an hour at 48 kHz takes 1.4 GB for a moment
const kColumns = 2000;

// The largest sample of each column, of which the loudest is 1; null if the browser cannot decode
// the recording.
async function peaksOf(bytes) {
    const context = new OfflineAudioContext(1, 1, kRate);
    const sound = await context.decodeAudioData(bytes).catch(() => null);
    if (!sound) return null;
    const peaks = new Float32Array(kColumns);
    for (let channel = 0; channel < sound.numberOfChannels; ++channel) {
        const samples = sound.getChannelData(channel);
        for (let i = 0; i < samples.length; ++i) {
            const column = Math.floor(i * kColumns / samples.length);
            peaks[column] = Math.max(peaks[column], Math.abs(samples[i]));
        }
    }
    const loudest = Math.max(...peaks, 0.01);
    return peaks.map((peak) => peak / loudest);
}

class Waveform {
    // `seek` gets the seconds that a click points to.
    constructor(canvas, audio, seek) {
        this.canvas = canvas;
        this.audio = audio;
        this.peaks = null;
        this.played = -1;  // pixels
        this.shown = 0;    // recordings so far
        canvas.addEventListener('click', (event) => {
            const {left, width} = canvas.getBoundingClientRect();
            if (audio.duration > 0) seek(audio.duration * (event.clientX - left) / width);
        });
        new ResizeObserver(() => this.draw()).observe(canvas);
        matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.draw());
    }

    // Shows a recording of `seconds`, whose file `read` gives as an ArrayBuffer. Returns why it is
    // not shown, or ''.
    async show(seconds, read) {
        this.clear();
        const number = this.shown;
        if (seconds > kMostSeconds)
            return 'The waveform is left out: the recording is longer than 2 hours.';
        const bytes = await read().catch(() => null);
        const peaks = bytes && await peaksOf(bytes);
        if (!peaks)
            return 'The waveform is left out: the browser cannot read the recording\'s samples.';
        if (number !== this.shown) return '';  // another recording came meanwhile
        this.peaks = peaks;
        this.canvas.hidden = false;
        this.draw();
        return '';
    }

    clear() {
        ++this.shown;
        this.peaks = null;
        this.canvas.hidden = true;
    }

    // Draws the part that was played in another colour, if it has changed.
    follow() {
        if (this.peaks && this.#playedPixels() !== this.played) this.draw();
    }

    #playedPixels() {
        const {currentTime, duration} = this.audio;
        return duration > 0 ? Math.round(currentTime / duration * this.canvas.width) : 0;
    }

    draw() {
        const {canvas, peaks} = this;
        if (!peaks || canvas.clientWidth === 0) return;
        canvas.width = Math.round(canvas.clientWidth * devicePixelRatio);
        canvas.height = Math.round(canvas.clientHeight * devicePixelRatio);
        this.played = this.#playedPixels();
        const context = canvas.getContext('2d'), style = getComputedStyle(canvas);
        const past = style.getPropertyValue('--accent'), future = style.getPropertyValue('--muted');
        for (let x = 0; x < canvas.width; ++x) {
            const begin = Math.floor(x * kColumns / canvas.width);
            const end = Math.max(begin + 1, Math.floor((x + 1) * kColumns / canvas.width));
            const height = Math.max(1, Math.max(...peaks.subarray(begin, end)) * canvas.height);
            context.fillStyle = x < this.played ? past : future;
            context.fillRect(x, (canvas.height - height) / 2, 1, height);
        }
    }
}

hark.Waveform = Waveform;
})();
