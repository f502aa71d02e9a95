// A transcript: its segments, words and times; what is found in it, and how it is corrected.
'use strict';
(() => {
const hark = globalThis.hark ??= {};

// Below these a word's probability is low, or medium (formats.h).
const kLowProbability = 0.4, kHighProbability = 0.7;
const kHold = 0.25;  // seconds after a word's end in which it is still the current one
const kWithoutSpaces = new Set(['zh', 'ja', 'th', 'lo', 'my', 'yue']);

// 'low', 'medium' or 'high'.
function confidence(probability) {
    if (probability < kLowProbability) return 'low';
    return probability < kHighProbability ? 'medium' : 'high';
}

// "1:02:03", or below an hour "2:03".
function shortTime(seconds) {
    const whole = Math.max(0, Math.floor(seconds));
    const two = (number) => String(number).padStart(2, '0');
    const hours = Math.floor(whole / 3600), minutes = Math.floor(whole / 60) % 60;
    return (hours > 0 ? `${hours}:${two(minutes)}` : String(minutes)) + ':' + two(whole % 60);
}

// As it is searched: small letters without accents.
function folded(text) {
    return text.normalize('NFD').replace(/[\u0300-\u036f]/gu, '').toLowerCase();
}

const toMilliseconds = (seconds) => Math.round(seconds * 1000) / 1000;

// Cuts a corrected text into words: first of all those that were there before, whatever their
// form; else at spaces, or in languages without spaces into characters.
function split(text, before, withoutSpaces) {
    const stays = (i, at) => {
        const word = before[i].word, end = at + word.length;
        if (word === '' || !text.startsWith(word, at)) return false;
        return withoutSpaces || end === text.length || /\s/u.test(text[end]) ||
            (i + 1 < before.length && text.startsWith(before[i + 1].word, end));
    };
    const words = [];
    for (let at = 0; at < text.length; at += words.at(-1).length) {
        let longest = '';
        for (let i = 0; i < before.length; ++i)
            if (before[i].word.length > longest.length && stays(i, at)) longest = before[i].word;
        const next = withoutSpaces ? /^./su : /^\s*\S*/u;
        words.push(longest || next.exec(text.slice(at))[0]);
    }
    return words;
}

// Of each of `words` the index of the same one in `before`, or -1: the longest common subsequence.
function matches(before, words) {
    const width = words.length + 1;
    const common = new Uint16Array((before.length + 1) * width);
    for (let i = before.length - 1; i >= 0; --i)
        for (let j = words.length - 1; j >= 0; --j)
            common[i * width + j] = before[i].word === words[j]
                ? common[(i + 1) * width + j + 1] + 1
                : Math.max(common[(i + 1) * width + j], common[i * width + j + 1]);
    const found = words.map(() => -1);
    for (let i = 0, j = 0; i < before.length && j < words.length;) {
        if (before[i].word === words[j]) found[j++] = i++;
        else if (common[(i + 1) * width + j] >= common[i * width + j + 1]) ++i;
        else ++j;
    }
    return found;
}

// The words of a corrected text. Words that stay keep their times. New ones share those of the
// words that they replace, or else the pause between their neighbours, by their lengths.
function corrected(text, segment, language) {
    const before = segment.words;
    const words = split(text, before, kWithoutSpaces.has(language));
    const found = matches(before, words);
    const result = [];
    for (let j = 0; j < words.length;) {
        if (found[j] >= 0) {
            result.push(before[found[j++]]);
            continue;
        }
        let end = j;
        while (end < words.length && found[end] < 0) ++end;
        const first = j > 0 ? found[j - 1] + 1 : 0;  // of the words that go
        const last = end < words.length ? found[end] : before.length;
        const pause = [first > 0 ? before[first - 1].end : segment.start,
                       last < before.length ? before[last].start : segment.end];
        const [from, to] =
            first < last ? [before[first].start, before[last - 1].end] : pause;
        const length = words.slice(j, end).join('').length;
        for (let at = 0; j < end; at += words[j++].length) {
            const timeAt = (place) =>
                toMilliseconds(from + Math.max(0, to - from) * place / length);
            result.push({word: words[j], start: timeAt(at), end: timeAt(at + words[j].length),
                         probability: 1});
        }
    }
    return result;
}

class Transcript {
    // `data` is an object as `--format json` writes it.
    constructor(data) {
        this.data = data;
        this.segments = data.segments.map((segment) => this.#segmentOf(segment));
        this.#index();
    }

    // Its `data` as it is now, `original` as it was decoded, and its `words`.
    #segmentOf(data) {
        return {data, original: data, words: this.#wordsOf(data)};
    }

    // Adds a segment of `--format json` after the last one, and returns it.
    add(data) {
        const segment = this.#segmentOf(data);
        this.data.text = (this.data.text ?? '') + data.text;
        this.segments.push(segment);
        this.#indexSegment(segment, this.segments.length - 1);
        this.byTime.sort((a, b) => a.start - b.start);
        return segment;
    }

    // What can be clicked, each with `word`, `start`, `end` and `probability`: the words, or if
    // they have no times the whole segment.
    #wordsOf(data) {
        if (data.words?.length > 0) return data.words.map((word) => ({...word}));
        if (data.text.trim() === '') return [];
        const probability = data.corrected ? 1 : Math.exp(data.avg_logprob);
        return [{word: data.text, start: data.start, end: data.end, probability}];
    }

    // Lists all words: in the order of the text, in that of time, and as one text to search.
    #index() {
        this.words = [];
        this.byTime = [];
        this.offsets = [];  // of the words in `searched`
        this.searched = '';
        this.segments.forEach((segment, number) => this.#indexSegment(segment, number));
        this.byTime.sort((a, b) => a.start - b.start);
    }

    #indexSegment(segment, number) {
        segment.number = number;
        for (const word of segment.words) {
            word.segment = segment;
            word.number = this.words.length;
            this.words.push(word);
            this.byTime.push(word);
            this.offsets.push(this.searched.length);
            this.searched += folded(word.word);
        }
    }

    // Whether the words have times of their own.
    get hasWordTimes() {
        return this.segments.some((segment) => segment.data.words?.length > 0);
    }

    get isCorrected() {
        return this.segments.some((segment) => segment.data !== segment.original);
    }

    // The word that is spoken at that time, or null.
    wordAt(seconds) {
        let low = 0, high = this.byTime.length;  // the first word that begins later
        while (low < high) {
            const middle = (low + high) >> 1;
            if (this.byTime[middle].start <= seconds) low = middle + 1;
            else high = middle;
        }
        const word = this.byTime[low - 1];
        return word && seconds < word.end + kHold ? word : null;
    }

    // Every place of `query`, whatever its capitals and accents: a list of lists of words.
    find(query) {
        const wanted = folded(query.trim());
        const places = [];
        if (wanted === '') return places;
        let word = 0;
        for (let at = 0; (at = this.searched.indexOf(wanted, at)) >= 0; at += wanted.length) {
            while (word + 1 < this.words.length && this.offsets[word + 1] <= at) ++word;
            let end = word + 1;
            while (end < this.words.length && this.offsets[end] < at + wanted.length) ++end;
            places.push(this.words.slice(word, end));
        }
        return places;
    }

    // Replaces a segment's text. The text that was decoded gives back what was decoded with it.
    correct(segment, text) {
        const {original} = segment;
        const plain = text.replace(/\s+/gu, ' ').trim();
        if (plain === original.text.trim()) {
            segment.data = original;
        } else {
            const data = {...segment.data, text: (/^\s/u.exec(original.text)?.[0] ?? '') + plain};
            if (plain === '') data.text = '';
            data.tokens = [];
            if (original.words)
                data.words = corrected(data.text, segment, this.data.language).map(
                    ({word, start, end, probability}) => ({word, start, end, probability}));
            segment.data = {...data, corrected: true};
        }
        segment.words = this.#wordsOf(segment.data);
        this.#index();
    }

    // As `--format json` writes it, corrected.
    toJson() {
        const segments = this.segments.map((segment) => segment.data);
        const text = this.isCorrected
            ? segments.map((segment) => segment.text).join('') : this.data.text;
        return {...this.data, text, segments};
    }
}

Object.assign(hark, {Transcript, confidence, shortTime});
})();
