// The picture of a recording's samples.
'use strict';
(() => {
const hark = globalThis.hark ??= {};

const kRate = 8000;         // samples per second: enough for a picture
const kMostSeconds = 7200;  // decoded, an hour at 48 kHz takes 1.4 GB for a moment
const kColumns = 2000;

// The largest sample of each column, 0 to 1; null if the browser cannot decode the recording.
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
    return peaks;
}

class Waveform {
    // `seek` gets the seconds that a click points to.
    constructor(canvas, audio, seek) {
        this.canvas = canvas;
        this.audio = audio;
        this.peaks = null;
        this.played = -1;  // pixels
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
        this.peaks = null;
        this.canvas.hidden = true;
        if (seconds > kMostSeconds)
            return 'The waveform is left out: the recording is longer than 2 hours.';
        const bytes = await read().catch(() => null);
        this.peaks = bytes && await peaksOf(bytes);
        if (!this.peaks)
            return 'The waveform is left out: the browser cannot read the recording\'s samples.';
        this.canvas.hidden = false;
        this.draw();
        return '';
    }

    // Draws what has changed: the part that was played has another colour.
    follow() {
        if (!this.peaks) return;
        const played = Math.round(this.#fraction() * this.canvas.width);
        if (played !== this.played) this.draw();
    }

    #fraction() {
        return this.audio.duration > 0 ? this.audio.currentTime / this.audio.duration : 0;
    }

    draw() {
        if (!this.peaks || this.canvas.clientWidth === 0) return;
        const {canvas, peaks} = this;
        canvas.width = Math.round(canvas.clientWidth * devicePixelRatio);
        canvas.height = Math.round(canvas.clientHeight * devicePixelRatio);
        this.played = Math.round(this.#fraction() * canvas.width);
        const style = getComputedStyle(canvas), context = canvas.getContext('2d');
        const loudest = Math.max(...peaks, 0.01);
        for (let x = 0; x < canvas.width; ++x) {
            const begin = Math.floor(x * kColumns / canvas.width);
            const end = Math.max(begin + 1, Math.floor((x + 1) * kColumns / canvas.width));
            const peak = Math.max(...peaks.subarray(begin, end)) / loudest;
            const height = Math.max(1, peak * canvas.height);
            context.fillStyle =
                style.getPropertyValue(x < this.played ? '--accent' : '--muted');
            context.fillRect(x, (canvas.height - height) / 2, 1, height);
        }
    }
}

hark.Waveform = Waveform;
})();
