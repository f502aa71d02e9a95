// Records the microphone, and sends its samples to be transcribed while they come.
'use strict';
(() => {
const hark = globalThis.hark ??= {};
const kRate = 16000;  // samples per second, as Whisper takes them

// Why this browser cannot record, or ''.
function noMicrophone() {
    if (!isSecureContext)
        return 'Browsers record only on pages that come over HTTPS or from this machine.';
    if (!navigator.mediaDevices || !globalThis.AudioWorkletNode)
        return 'This browser cannot record.';
    return '';
}

// The samples as a file: 16 bits, one channel.
function wavOf(blocks, rate) {
    const bytes = blocks.reduce((sum, block) => sum + block.byteLength, 0);
    const head = new DataView(new ArrayBuffer(44));
    const text = (at, letters) =>
        [...letters].forEach((letter, i) => head.setUint8(at + i, letter.charCodeAt(0)));
    text(0, 'RIFF');
    head.setUint32(4, 36 + bytes, true);
    text(8, 'WAVEfmt ');
    head.setUint32(16, 16, true);         // bytes of the format
    head.setUint16(20, 1, true);          // PCM
    head.setUint16(22, 1, true);          // channels
    head.setUint32(24, rate, true);
    head.setUint32(28, 2 * rate, true);  // bytes per second
    head.setUint16(32, 2, true);          // bytes per sample of all channels
    head.setUint16(34, 16, true);         // bits
    text(36, 'data');
    head.setUint32(40, bytes, true);
    return new File([head, ...blocks], 'microphone.wav', {type: 'audio/wav'});
}

// A browser's WebSocket has no header for a key: it is in the name of a subprotocol.
function protocols() {
    const key = hark.apiKey();
    if (!key) return ['hark'];
    const escape = (letter) => `%${letter.charCodeAt(0).toString(16)}`;
    return ['hark', `hark-key.${encodeURIComponent(key).replace(/[()]/gu, escape)}`];
}

class Microphone {
    // `events` has functions: samples(seconds so far, loudest of the last ones), line(object) for
    // each line of the transcript.
    constructor(events) {
        this.events = events;
        this.blocks = [];
        this.samples = 0;
        this.isStopped = this.isCancelled = false;
        // Resolves once the transcript has ended, with its error or ''.
        this.ended = new Promise((resolve) => { this.end = resolve; });
    }

    // Begins. Throws RequestError if the user or the browser refuses.
    async start({model, language}) {
        const refuse = (why) => { throw new hark.RequestError(why); };
        try {
            this.stream = await navigator.mediaDevices.getUserMedia(
                {audio: {channelCount: 1, echoCancellation: false, noiseSuppression: false}});
        } catch (error) {
            refuse(error.name === 'NotAllowedError' ? 'The browser was not allowed to record.'
                 : error.name === 'NotFoundError' ? 'There is no microphone.'
                 : `The microphone cannot be used: ${error.message}`);
        }
        try {
            this.#check();
            const source = this.#open();
            await this.context.audioWorklet.addModule('page/recorder_worklet.js');
            this.#check();
            this.recorder = new AudioWorkletNode(this.context, 'recorder',
                                                 {channelCount: 1, channelCountMode: 'explicit'});
            this.recorder.port.onmessage = ({data}) => this.#take(data);
            this.#connect(model, language);
            // A node that leads nowhere may not run; this one is silent.
            source.connect(this.recorder).connect(this.context.destination);
            await this.context.resume();
        } catch (error) {
            this.#release();
            this.#check();
            refuse(`The microphone cannot be used: ${error.message}`);
        }
    }

    // Ends the recording; the transcript ends once all of it is transcribed.
    stop() {
        this.recorder.port.postMessage('end');
    }

    // Ends both at once; start() throws AbortError if it has not returned.
    cancel() {
        this.isCancelled = true;
        this.#release();
        this.socket?.close();
    }

    #check() {
        if (this.isCancelled) throw new DOMException('cancelled', 'AbortError');
    }

    get recording() { return wavOf(this.blocks, this.context.sampleRate); }

    // The microphone's samples at kRate; at its own rate if the browser does not resample it.
    #open() {
        try {
            this.context = new AudioContext({sampleRate: kRate});
            return this.context.createMediaStreamSource(this.stream);
        } catch (error) {
            if (error.name !== 'NotSupportedError') throw error;
            this.context?.close();
            this.context = new AudioContext();
            return this.context.createMediaStreamSource(this.stream);
        }
    }

    #connect(model, language) {
        const address = new URL('v1/audio/live', location.href);
        address.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:';
        address.searchParams.set('model', model);
        if (language) address.searchParams.set('language', language);
        address.searchParams.set('rate', this.context.sampleRate);
        this.socket = new WebSocket(address, protocols());
        this.socket.binaryType = 'arraybuffer';
        this.waiting = [];  // blocks, until it is open
        let error = '', isOpen = false;
        this.socket.onopen = () => {
            isOpen = true;
            for (const block of this.waiting) this.socket.send(block);
            this.waiting = [];
        };
        this.socket.onmessage = ({data}) => {
            const line = JSON.parse(data);
            if (line.error) error = line.error;
            else this.events.line(line);
        };
        this.socket.onclose = ({code, reason}) => {
            const isOver = this.isStopped && code === 1000;
            if (!isOver && !error)
                error = reason || (isOpen ? 'The connection to the server broke.'
                    : 'The server did not take the recording.');
            this.#release();
            this.end(error);
        };
    }

    #take(block) {
        if (this.isCancelled) return;
        if (block === null) {
            this.#release();
            this.isStopped = true;
            this.#send('end');
            return;
        }
        this.blocks.push(block);
        this.samples += block.length;
        this.#send(block);
        const loudest = block.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0);
        this.events.samples(this.samples / this.context.sampleRate, loudest / 32768);
    }

    #send(message) {
        if (this.socket.readyState === WebSocket.OPEN) this.socket.send(message);
        else this.waiting.push(message);
    }

    #release() {
        for (const track of this.stream?.getTracks() ?? []) track.stop();
        if (this.context?.state !== 'closed') this.context?.close();
    }
}

Object.assign(hark, {Microphone, noMicrophone});
})();
