// A window's text cut into words, each with its time. Source: openai/whisper tokenizer.py
// (split_to_word_tokens) and timing.py (add_word_timestamps).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/cli.h"
#include "whisper/model/tokenizer.h"
#include "whisper/transcribe/decoding.h"
#include "whisper/transcribe/window_loop.h"

namespace hark::whisper {

struct WordOptions {
    bool timestamps = false;
    std::string prepended = "\"'“¿([{-";                // joined to the word behind
    std::string appended = "\"'.。,，!！?？:：”)]}、";  // joined to the word before
    std::optional<double> hallucination_silence;        // seconds

    void flags(Flags& flags);
    void check() const;  // throws UsageError
};

struct TokenWord {
    std::string text;
    std::vector<int32_t> tokens;
};

// Cuts text tokens wherever they end with a whole code point; tokens that never do are one word.
std::vector<TokenWord> split_on_unicode(const Tokenizer& tokenizer,
                                        std::span<const int32_t> tokens);
// The same pieces put together into words: a word begins with a space or is ASCII punctuation.
// Languages written without spaces (zh, ja, th, lo, my, yue) keep the pieces.
std::vector<TokenWord> split_into_words(const Tokenizer& tokenizer, std::span<const int32_t> tokens,
                                        const std::string& language);

// A word with its time in the window; `tokens` of the text are its own.
struct TimedWord {
    std::string text;
    size_t tokens = 0;
    double start = 0, end = 0;  // seconds from the window's start
    double probability = 0;
};

std::vector<TimedWord> timed_words(std::span<const TokenWord> words,
                                   const TokenAlignment& alignment);

// Joins punctuation to the word that it belongs to, which leaves words of no text behind. A word is
// punctuation where it is found in `prepended` or `appended`, searched as strings.
void merge_punctuation(std::vector<TimedWord>& words, const std::string& prepended,
                       const std::string& appended);

// Gives the segments of one window their words: those far longer than the median cut short at the
// ends of sentences and behind pauses, segments and words brought to agree on where they begin and
// end. `text_tokens` are each segment's number of text tokens; `last_speech` is where the speech
// before the window ended, in seconds.
void add_words(std::vector<Segment>& segments, std::span<const size_t> text_tokens,
               std::vector<TimedWord> words, const WordOptions& options, double last_speech);

// All of the above for the window of `frames` frames in the decoder's `slot`.
void add_words(std::vector<Segment>& segments, WindowDecoder& decoder, int64_t slot,
               const std::string& language, int64_t frames, const WordOptions& options,
               double last_speech);

}  // namespace hark::whisper
