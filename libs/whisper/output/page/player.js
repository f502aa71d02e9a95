// Plays the recording of a transcript: the file next to the page, or one that is chosen.
'use strict';
(() => {
const hark = globalThis.hark ??= {};

class Player {
    // `events` has functions: time(seconds, plays), while it plays and after each jump; missing(),
    // if the recording cannot be played; loaded(), once it can.
    constructor(audio, events) {
        this.audio = audio;
        this.events = events;
        audio.addEventListener('error', () => events.missing());
        audio.addEventListener('loadedmetadata', () => events.loaded());
        audio.addEventListener('play', () => this.#tick());
        for (const name of ['seeking', 'seeked', 'timeupdate'])
            audio.addEventListener(name, () => this.#report(audio.currentTime));
    }

    // Takes a file of the folder of the page.
    loadNeighbour(name) {
        this.audio.src = encodeURIComponent(name);
    }

    // Takes a file that was chosen or dropped.
    loadFile(file) {
        URL.revokeObjectURL(this.audio.src);
        this.audio.src = URL.createObjectURL(file);
    }

    // Takes nothing: there is no recording yet.
    clear() {
        URL.revokeObjectURL(this.audio.src);
        this.audio.removeAttribute('src');
        this.audio.load();
    }

    toggle() {
        if (this.audio.paused) this.#start();
        else this.audio.pause();
    }

    play(seconds) {
        this.seek(seconds);
        this.#start();
    }

    seek(seconds) {
        this.audio.currentTime = seconds;
        this.#report(seconds);
    }

    #report(seconds) {
        this.events.time(seconds, !this.audio.paused);
    }

    #start() {
        if (this.audio.error || !this.audio.src) return this.events.missing();
        // Refused if the recording cannot be read, which `error` reports, or if a pause came first.
        this.audio.play().catch(() => {});
    }

    // A word lasts a fifth of a second: timeupdate alone, four times per second, is too slow.
    #tick() {
        if (this.audio.paused) return;
        this.#report(this.audio.currentTime);
        requestAnimationFrame(() => this.#tick());
    }
}

hark.Player = Player;
})();
