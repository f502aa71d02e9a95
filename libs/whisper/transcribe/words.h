// Cuts a window's text into words and gives each its time. Source: openai/whisper tokenizer.py
// (split_to_word_tokens) and timing.py (add_word_timestamps).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/cli/cli.h"
#include "whisper/model/tokenizer.h"
#include "whisper/output/segment.h"

namespace hark::whisper {

struct TokenAlignment;
class WindowDecoder;

struct WordOptions {
    bool timestamps = false;
    std::string prepended = "\"'“¿([{-";                // joined to the next word
    std::string appended = "\"'.。,，!！?？:：”)]}、";  // joined to the previous word
    std::optional<double> hallucination_silence;        // seconds

    void flags(Flags& flags);
    void check() const;  // throws UsageError
};

struct TokenWord {
    std::string text;
    std::vector<int32_t> tokens;
};

// Cuts text tokens after each whole code point. Tokens without one are one word.
std::vector<TokenWord> split_on_unicode(const Tokenizer& tokenizer,
                                        std::span<const int32_t> tokens);
// Joins split_on_unicode()'s pieces to words. A word begins with a space or is ASCII punctuation.
// Languages written without spaces (zh, ja, th, lo, my, yue) keep the pieces.
std::vector<TokenWord> split_into_words(const Tokenizer& tokenizer, std::span<const int32_t> tokens,
                                        const std::string& language);

// A word with its time in the window; it has `tokens` tokens of the text.
struct TimedWord {
    std::string text;
    size_t tokens = 0;
    double start = 0, end = 0;  // seconds from the window's start
    double probability = 0;
};

std::vector<TimedWord> timed_words(std::span<const TokenWord> words,
                                   const TokenAlignment& alignment);

// Joins punctuation to the word that it belongs to; its own text becomes empty. A word is
// punctuation if it is a substring of `prepended` or `appended`.
void merge_punctuation(std::vector<TimedWord>& words, const std::string& prepended,
                       const std::string& appended);

// Gives the segments of one window their words. Shortens words far above the median duration at
// ends of sentences and after pauses, and reconciles times of segments and words. `text_tokens`:
// text tokens per segment; `last_speech`: seconds, end of the speech before the window.
void add_words(std::vector<Segment>& segments, std::span<const size_t> text_tokens,
               std::vector<TimedWord> words, const WordOptions& options, double last_speech);

// Aligns and adds the words of the window of `frames` frames in the decoder's `slot`.
void add_words(std::vector<Segment>& segments, WindowDecoder& decoder, int64_t slot,
               const std::string& language, int64_t frames, const WordOptions& options,
               double last_speech);

}  // namespace hark::whisper
