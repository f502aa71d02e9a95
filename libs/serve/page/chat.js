// A chat about the transcript: what is asked of a language model, and its answers, whose times lead
// to the recording.
'use strict';
(() => {
const hark = globalThis.hark ??= {};
const part = (id) => document.getElementById(id);

const kInstructions =
    'You answer questions about a transcript. Each of its lines begins with its time. Answer ' +
    'from the transcript alone, and say so if it has no answer. After each statement cite the ' +
    'time of the line that it is from, in its form, such as [01:23].';
const kMostAnswer = 1024;   // tokens that are kept free for an answer
const kMessageTokens = 16;  // of a chat template, around a message

// "01:02", or from an hour on "1:02:03".
function paddedTime(seconds) {
    const time = hark.shortTime(seconds);
    return time.length < 5 ? `0${time}` : time;
}

const secondsOf = (time) => time.split(':').reduce((sum, digits) => 60 * sum + Number(digits), 0);

// An answer that comes in pieces: text, in which times up to `end` seconds are links.
class Answer {
    // Appends to `element`. `play` gets the seconds of a link that is followed.
    constructor(element, end, play) {
        this.element = element;
        this.end = end;
        this.play = play;
        this.text = '';
        this.open = document.createTextNode('');  // what may still become a time
        element.append(this.open);
    }

    add(piece) {
        const more = this.text === '' ? piece.trimStart() : piece;
        this.text += more;
        const text = this.open.data + more;
        const start = /\S*$/u.exec(text).index;
        this.#append(text.slice(0, start));
        this.open.data = text.slice(start);
    }

    finish() {
        const text = this.open.data;
        this.open.data = '';
        this.#append(text);
    }

    #append(text) {
        let at = 0;
        for (const match of text.matchAll(/(?<![\d:.])(?:\d{1,2}:)?\d{1,3}:[0-5]\d(?![\d:])/gu)) {
            const seconds = secondsOf(match[0]);
            if (seconds > this.end) continue;
            const link = hark.element('a', {href: `#t=${seconds}`, textContent: match[0],
                                            ariaLabel: `Play from ${match[0]}`});
            link.addEventListener('click', (event) => {
                event.preventDefault();
                this.play(seconds);
            });
            this.open.before(text.slice(at, match.index), link);
            at = match.index + match[0].length;
        }
        this.open.before(text.slice(at));
    }
}

// The lines [from, to) around line `at` that have `most` characters in all, or fewer.
function around(lines, at, most) {
    let from = at, to = at, length = 0;
    const fits = (line) => line !== undefined && length + line.length + 1 <= most;
    for (;;) {
        const before = to;
        if (fits(lines[to])) length += lines[to++].length + 1;
        const hasGrown = to > before;
        if (from > 0 && fits(lines[from - 1])) length += lines[--from].length + 1;
        else if (!hasGrown) return [from, to];
    }
}

class Chat {
    // `models`: those of /v1/models that answer chats. `place` returns where the recording is, in
    // seconds; `play` moves it there.
    constructor(models, {place, play}) {
        this.models = models;
        this.place = place;
        this.play = play;
        this.counted = new Map();  // tokens of texts, by model and text
        part('chat-model').append(...models.map(
            ({id}) => hark.element('option', {value: id, textContent: id})));
        part('chat-models').hidden = models.length < 2;
        part('no-chat').hidden = models.length > 0;
        part('no-chat').textContent = 'The server has no language model with a chat template, so ' +
            'there is nobody to ask. Start hark-serve with one: --model MODEL.';
        part('ask').hidden = part('messages').hidden = models.length === 0;
        part('ask').addEventListener('submit', (event) => {
            event.preventDefault();
            this.#ask();
        });
        part('question').addEventListener('keydown', (event) => {
            if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
            event.preventDefault();
            this.#ask();
        });
        part('stop-answer').addEventListener('click', () => this.running?.abort());
        part('new-chat').addEventListener('click', () => {
            this.begin(this.transcript, this.name);
            part('question').focus();
        });
        this.begin(new hark.Transcript({segments: []}), '');
    }

    // A new chat, about that transcript.
    begin(transcript, name) {
        this.running?.abort();
        this.running = null;
        part('send').disabled = false;
        part('stop-answer').hidden = true;
        this.transcript = transcript;
        this.name = name;
        this.history = [];
        this.counted.clear();
        part('messages').replaceChildren();
        part('chat-status').textContent = '';
        part('new-chat').hidden = true;
    }

    get #model() { return this.models.find(({id}) => id === part('chat-model').value); }

    #show(kind, text) {
        const message = hark.element('div', {className: `message ${kind}`, textContent: text});
        part('messages').append(message);
        message.scrollIntoView({block: 'nearest'});
        return message;
    }

    async #ask() {
        const question = part('question').value.trim();
        if (question === '' || this.running || this.models.length === 0) return;
        const {history} = this;
        const running = this.running = new AbortController();
        part('question').value = '';
        part('send').disabled = true;
        part('stop-answer').hidden = part('new-chat').hidden = false;
        this.#show('user', question);
        part('chat-status').textContent = 'Waiting for the answer';
        try {
            const system = await this.#system(question, running.signal);
            const answer = await this.#receive(
                [{role: 'system', content: system}, ...history, {role: 'user', content: question}],
                running.signal);
            history.push({role: 'user', content: question}, {role: 'assistant', content: answer});
            if (running === this.running) part('chat-status').textContent = '';
        } catch (error) {
            if (running === this.running)
                part('chat-status').textContent = error.name === 'AbortError' ? 'Stopped'
                    : error instanceof hark.RequestError ? error.message : String(error);
        }
        if (running !== this.running) return;
        this.running = null;
        part('send').disabled = false;
        part('stop-answer').hidden = true;
    }

    // Sends the messages and shows the answer while it comes. Returns its text.
    async #receive(messages, signal) {
        const response = await hark.ask('v1/chat/completions',
                                        {model: this.#model.id, messages, stream: true}, signal);
        const {segments} = this.transcript;
        const element = this.#show('assistant', '');
        element.ariaBusy = 'true';
        const answer = new Answer(element, (segments.at(-1)?.data.end ?? 0) + 1, this.play);
        const log = part('messages');
        let limited = false;
        const events = new hark.EventReader(({choices}) => {
            const {delta, finish_reason: reason} = choices[0] ?? {};
            if (delta?.reasoning_content && answer.text === '')
                part('chat-status').textContent = 'Thinking';
            limited ||= reason === 'length';
            if (!delta?.content) return;
            const isAtEnd = log.scrollTop + log.clientHeight >= log.scrollHeight - 8;
            part('chat-status').textContent = '';
            answer.add(delta.content);
            if (isAtEnd) log.scrollTop = log.scrollHeight;
        });
        try {
            const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
            for (;;) {
                const {value, done} = await reader.read();
                if (done) break;
                events.add(value);
            }
        } catch (error) {
            if (error.name === 'AbortError' || error instanceof hark.RequestError) throw error;
            throw new hark.RequestError('The connection to the server broke.');
        } finally {
            answer.finish();
            element.ariaBusy = 'false';
        }
        if (limited) this.#show('note', 'The answer was cut: the model\u2019s context is full.');
        return answer.text;
    }

    // ------------------------------------------------------------ the transcript

    async #count(text, signal) {
        const key = `${this.#model.id}\n${text}`;
        if (!this.counted.has(key)) {
            const response = await hark.ask('tokenize', {model: this.#model.id, prompt: text,
                                                         add_special_tokens: false}, signal);
            this.counted.set(key, (await response.json()).count);
        }
        return this.counted.get(key);
    }

    // What the model is told before the chat: as much of the transcript as fits. The user is told
    // if that is not all of it. Drops the beginning of a chat that takes more than half of the
    // room.
    async #system(question, signal) {
        const context = this.#model.max_model_len;
        const most = context - Math.min(kMostAnswer, Math.floor(context / 4));
        const head = `${kInstructions}\n\nTranscript of ${this.name}:\n`;
        const taken = async () => {
            const said = [...this.history.map(({content}) => content), question];
            return await this.#count(said.join('\n'), signal) + kMessageTokens * (said.length + 1);
        };
        let chat = await taken();
        while (this.history.length > 0 && chat > most / 2) {
            this.history.splice(0, 2);
            chat = await taken();
        }
        const room = most - chat - await this.#count(head, signal);
        const segments = this.transcript.segments.filter(({data}) => data.text.trim() !== '');
        const lines = segments.map(({data}) => `[${paddedTime(data.start)}] ${data.text.trim()}`);
        const all = lines.join('\n'), tokens = await this.#count(all, signal);
        if (tokens <= room) return head + all;
        const now = this.place();
        const at = Math.max(0, segments.findLastIndex(({data}) => data.start <= now));
        for (let share = room / tokens; ; share *= 0.9) {
            const [from, to] = around(lines, at, all.length * share);
            if (from === to)
                throw new hark.RequestError(
                    `The model\u2019s context of ${context} tokens is too small for the question.`);
            const some = lines.slice(from, to).join('\n');
            if (await this.#count(some, signal) > room) continue;
            signal.throwIfAborted();
            this.#show('note', `The transcript is longer than the model\u2019s context of ` +
                `${context.toLocaleString('en')} tokens. The answer is from a part of it: ` +
                `${paddedTime(segments[from].data.start)} to ` +
                `${paddedTime(segments[to - 1].data.end)}.`);
            return head + some;
        }
    }
}

Object.assign(hark, {Chat, Answer});
})();
