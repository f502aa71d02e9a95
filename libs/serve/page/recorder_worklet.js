// On the thread of sound: posts the microphone's samples as 16-bit numbers, a tenth of a second at
// a time; on any message what is left, and then null.
'use strict';

const kBlock = Math.round(sampleRate / 10);

class Recorder extends AudioWorkletProcessor {
    constructor() {
        super();
        this.block = new Int16Array(kBlock);
        this.filled = 0;
        this.runs = true;
        this.port.onmessage = () => {
            this.post();
            this.runs = false;
            this.port.postMessage(null);
        };
    }

    post() {
        if (this.runs) this.port.postMessage(this.block.slice(0, this.filled));
        this.filled = 0;
    }

    process([[samples]]) {
        for (const sample of samples ?? []) {
            const value = Math.round(sample * 32768);
            this.block[this.filled++] = Math.max(-32768, Math.min(32767, value));
            if (this.filled === kBlock) this.post();
        }
        return this.runs;
    }
}

registerProcessor('recorder', Recorder);
