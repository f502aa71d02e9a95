// Shows a transcript as a list of segments whose words can be chosen, found and corrected.
'use strict';
(() => {
const hark = globalThis.hark ??= {};

// An element with these properties and children.
function element(name, properties = {}, ...children) {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
}

class TranscriptView {
    // Fills `list`, an <ol>. `events` has functions: play(seconds), seek(seconds), chosen(word),
    // corrected(segment).
    constructor(list, events) {
        this.list = list;
        this.events = events;
        this.wordOf = new WeakMap();
        this.segmentOf = new WeakMap();
        this.show(new hark.Transcript({segments: []}));
        list.addEventListener('click', (event) => this.#click(event));
        list.addEventListener('keydown', (event) => this.#key(event));
        list.addEventListener('focusin', (event) => {
            const word = this.wordOf.get(event.target);
            if (word && word !== this.chosen) this.#choose(word);
        });
    }

    // Shows another transcript.
    show(transcript) {
        this.transcript = transcript;
        this.chosen = null;   // the word that the keyboard moves from; Tab gets there
        this.current = null;  // the word that is spoken
        this.query = '';      // what is searched, its places, and the number of the shown one
        this.places = [];
        this.place = -1;
        this.hits = new Set();
        const rows = document.createDocumentFragment();
        for (const segment of transcript.segments) rows.append(this.#row(segment));
        this.list.replaceChildren(rows);
        this.#tabStop();
    }

    // Adds a segment after the last one, as Transcript.add does.
    add(data) {
        this.list.append(this.#row(this.transcript.add(data)));
        this.#tabStop();
        if (this.query === '') return;
        this.#find();
        this.#mark(this.places.length > 0 ? Math.max(this.place, 0) : -1);
    }

    // A word can always be reached by Tab.
    #tabStop() {
        if (!this.chosen && this.transcript.words.length > 0)
            this.transcript.words[0].element.tabIndex = 0;
    }

    #row(segment) {
        const time = hark.shortTime(segment.data.start);
        const play = element('button', {type: 'button', className: 'time', textContent: time,
                                        ariaLabel: `Play from ${time}`});
        const edit = element('button', {type: 'button', className: 'edit'});
        segment.textElement = element('p', {className: 'text', dir: 'auto'});
        segment.row = element('li', {className: 'segment'}, play, segment.textElement, edit);
        this.segmentOf.set(segment.row, segment);
        this.#fill(segment);
        return segment.row;
    }

    // The space before a word is not part of what is underlined.
    #fill(segment) {
        const parts = [];
        for (const word of segment.words) {
            const bare = word.word.trimStart();
            const space = word.word.slice(0, word.word.length - bare.length);
            const level = hark.confidence(word.probability);
            word.element = element('span', {className: `word ${level}`, tabIndex: -1,
                                            textContent: bare});
            this.wordOf.set(word.element, word);
            if (space !== '' && parts.length > 0) parts.push(space);
            parts.push(word.element);
        }
        segment.textElement.replaceChildren(...parts);
        const edit = segment.row.querySelector('.edit');
        edit.textContent = segment.data.corrected ? 'corrected \u00b7 Edit' : 'Edit';
        edit.ariaLabel = `${edit.textContent} the text at ${hark.shortTime(segment.data.start)}`;
        segment.row.classList.toggle('empty', segment.words.length === 0);
    }

    // ------------------------------------------------------------ choosing

    #click(event) {
        const segment = this.segmentOf.get(event.target.closest('li'));
        if (!segment) return;
        const word = this.wordOf.get(event.target);
        if (event.target.matches('.time')) this.events.play(segment.data.start);
        else if (event.target.matches('.edit')) this.edit(segment);
        else if (word && getSelection().isCollapsed) this.#play(word);  // else text is being marked
    }

    #key(event) {
        const word = this.wordOf.get(event.target);
        if (!word || event.ctrlKey || event.metaKey || event.altKey) return;
        const line = (step) => this.transcript.segments[word.segment.number + step]?.words[0];
        if (event.key === 'Enter') this.#play(word);
        else if (event.key === 'ArrowUp') this.moveTo(line(-1));
        else if (event.key === 'ArrowDown') this.moveTo(line(1));
        else return;
        event.preventDefault();
    }

    #play(word) {
        word.element.focus();
        this.events.play(word.start);
    }

    #choose(word) {
        const before = this.chosen?.element ?? this.transcript.words[0]?.element;
        if (before) {
            before.tabIndex = -1;
            before.removeAttribute('role');
        }
        this.chosen = word;
        word.element.tabIndex = 0;
        word.element.setAttribute('role', 'button');
        this.events.chosen(word);
    }

    // "at 0:12, probability 43%"
    describe(word) {
        const percent = Math.round(word.probability * 100);
        return `at ${hark.shortTime(word.start)}, probability ${percent}%`;
    }

    // Chooses a word, gives it the focus and moves the recording there.
    moveTo(word) {
        if (!word) return;
        word.element.focus({preventScroll: true});
        this.#show(word.element);
        this.events.seek(word.start);
    }

    // Moves by words from the chosen one, or else from the one that is spoken.
    step(words) {
        const from = this.chosen ?? this.current;
        this.moveTo(from ? this.transcript.words[from.number + words] : this.transcript.words[0]);
    }

    // Moves to the next word of low or medium probability, or with -1 to the one before.
    stepUncertain(direction) {
        const {words} = this.transcript;
        const from = this.chosen ?? this.current;
        for (let i = from ? from.number + direction : 0; words[i]; i += direction)
            if (hark.confidence(words[i].probability) !== 'high') return this.moveTo(words[i]);
        this.events.chosen(null);
    }

    // Scrolls to an element: far away at once, as the rows between have no heights yet.
    #show(shown) {
        const {top} = shown.getBoundingClientRect();
        const isNear = top > -innerHeight && top < 2 * innerHeight;
        const quiet = matchMedia('(prefers-reduced-motion: reduce)').matches;
        shown.scrollIntoView({block: 'nearest', behavior: isNear && !quiet ? 'smooth' : 'instant'});
    }

    // Marks the word that is spoken at that time. While the recording plays, its line stays in
    // sight of those who see the line before.
    follow(seconds, plays) {
        const word = this.transcript.wordAt(seconds);
        if (word === this.current) return;
        const before = this.current;
        before?.element.removeAttribute('aria-current');
        word?.element.setAttribute('aria-current', 'true');
        this.current = word;
        if (!plays || !word || !before || word.segment === before.segment) return;
        const {top, bottom} = before.segment.row.getBoundingClientRect();
        if (bottom > 0 && top < innerHeight) this.#show(word.segment.row);
    }

    // ------------------------------------------------------------ searching

    // Marks every place of `query` and shows the first. Returns how many there are.
    search(query) {
        this.query = query;
        this.#find();
        this.#mark(-1);
        this.goToHit(1);
        return this.places.length;
    }

    #find() {
        this.places = this.transcript.find(this.query);
        const hits = new Set(this.places.flat());
        for (const word of this.hits) if (!hits.has(word)) word.element.classList.remove('hit');
        for (const word of hits) word.element.classList.add('hit');
        this.hits = hits;
        const rows = new Set(this.places.flat().map((word) => word.segment.row));
        for (const {row} of this.transcript.segments)
            row.classList.toggle('match', rows.has(row));
    }

    // Shows the next place of the search, or with -1 the one before. Returns its number, from 1, or
    // 0 if there is none.
    goToHit(direction) {
        const {length} = this.places;
        if (!length) return 0;
        this.#mark(this.place < 0 ? 0 : (this.place + direction + length) % length);
        this.#show(this.hit.element);
        return this.place + 1;
    }

    // The first word of the place that is shown, or undefined.
    get hit() { return this.places[this.place]?.[0]; }

    #mark(place) {
        for (const one of this.list.querySelectorAll('.now')) one.classList.remove('now');
        this.place = place;
        for (const word of this.places[place] ?? []) word.element.classList.add('now');
    }

    // ------------------------------------------------------------ correcting

    // Replaces a segment's text by a field, until it is saved or not.
    edit(segment) {
        if (segment.row.querySelector('form')) return segment.row.querySelector('textarea').focus();
        const time = hark.shortTime(segment.data.start);
        const field = element('textarea', {value: segment.data.text.trim(), rows: 2, dir: 'auto',
                                           ariaLabel: `Text at ${time}`});
        const button = (text, properties) => element('button', {textContent: text, ...properties});
        const save = button('Save', {type: 'submit'});
        const cancel = button('Cancel', {type: 'button'});
        const original = button('As decoded', {type: 'button',
                                               hidden: segment.data === segment.original});
        const form = element('form', {className: 'correction'}, field,
                             element('div', {}, save, cancel, original));
        const close = () => {
            form.replaceWith(segment.textElement);
            segment.row.classList.remove('editing');
            segment.row.querySelector('.edit').focus();
        };
        form.addEventListener('submit', (event) => {
            event.preventDefault();
            this.#correct(segment, field.value);
            close();
            this.events.corrected(segment);
        });
        cancel.addEventListener('click', close);
        original.addEventListener('click', () => {
            field.value = segment.original.text.trim();
            field.focus();
        });
        form.addEventListener('keydown', (event) => {
            if (event.isComposing) return;
            if (event.key === 'Escape') close();
            else if (event.key === 'Enter' && event.target === field) form.requestSubmit();
            else return;
            event.preventDefault();
        });
        segment.textElement.replaceWith(form);
        segment.row.classList.add('editing');
        field.style.height = `${field.scrollHeight + 2}px`;
        field.focus();
    }

    #correct(segment, text) {
        const gone = new Set(segment.words);
        if (gone.has(this.chosen)) this.chosen = null;
        if (gone.has(this.current)) this.current = null;
        for (const word of gone) this.hits.delete(word);
        this.transcript.correct(segment, text);
        this.#fill(segment);
        this.#tabStop();
    }
}

Object.assign(hark, {TranscriptView, element});
})();
