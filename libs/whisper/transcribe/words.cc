#include "whisper/transcribe/words.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>
#include <set>

#include "core/error.h"
#include "text/utf8.h"
#include "whisper/model/config.h"
#include "whisper/output/strings.h"
#include "whisper/transcribe/decoding.h"

namespace hark::whisper {
namespace {

constexpr double kStepsPerSecond = 50;
constexpr double kLongestMedian = 0.7;  // seconds
constexpr double kTolerance = 0.5;      // seconds between a segment's time and its words'

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

// The code point at `index` of valid UTF-8; nullopt after the end.
std::optional<char32_t> code_point_at(const std::string& text, size_t index) {
    for (size_t at = 0; at < text.size(); --index) {
        const char32_t c = next_code_point(text, at);
        if (index == 0) return c;
    }
    return std::nullopt;
}

// Rounds the double's exact value to 0.01, as Python's round() does.
double round_to_centiseconds(double seconds) {
    std::array<char, 64> text{};
    const auto written =
        std::to_chars(text.data(), text.data() + text.size(), seconds, std::chars_format::fixed, 2);
    double rounded = seconds;
    std::from_chars(text.data(), written.ptr, rounded);
    return rounded;
}

// The median of the durations above 0, at most 0.7 s; 0 if there are none.
double median_duration(const std::vector<TimedWord>& words) {
    std::vector<double> durations;
    for (const TimedWord& word : words)
        if (word.end != word.start) durations.push_back(word.end - word.start);
    if (durations.empty()) return 0;
    std::sort(durations.begin(), durations.end());
    const size_t half = durations.size() / 2;
    const double median =
        durations.size() % 2 == 1 ? durations[half] : (durations[half - 1] + durations[half]) / 2;
    return std::min(kLongestMedian, median);
}

// Alignment adds pauses to the words next to a sentence's end: these get at most twice the median.
void shorten_at_sentence_ends(std::vector<TimedWord>& words, double longest) {
    static const std::string kMarks = ".。!！?？";
    for (size_t i = 1; i < words.size(); ++i) {
        if (!(words[i].end - words[i].start > longest)) continue;
        if (contains(kMarks, words[i].text))
            words[i].end = words[i].start + longest;
        else if (contains(kMarks, words[i - 1].text))
            words[i].start = words[i].end - longest;
    }
}

// Shortens the first two words after a pause.
void shorten_after_pause(std::vector<Word>& words, double median, double last_speech) {
    const double longest = 2 * median;
    Word& first = words[0];
    Word* second = words.size() > 1 ? &words[1] : nullptr;
    const bool pause = first.end - last_speech > 4 * median;
    const bool too_long =
        first.end - first.start > longest || (second && second->end - first.start > 2 * longest);
    if (!pause || !too_long) return;
    if (second && second->end - second->start > longest)
        first.end = second->start = std::max(second->end / 2, second->end - longest);
    first.start = std::max(0.0, first.end - longest);
}

// Sets the segment's times from its words, or shortens a first or last word that exceeds them.
void reconcile(Segment& segment, double median) {
    Word &first = segment.words->front(), &last = segment.words->back();
    if (segment.start < first.end && segment.start - kTolerance > first.start)
        first.start = std::max(0.0, std::min(first.end - median, segment.start));
    else
        segment.start = first.start;
    if (segment.end > last.start && segment.end + kTolerance < last.end)
        last.end = std::max(last.start + median, segment.end);
    else
        segment.end = last.end;
}

}  // namespace

void WordOptions::flags(Flags& flags) {
    flags.section("Output");
    flags.add_switch("word-timestamps", timestamps, "give words their times and probabilities")
        .essential()
        .details(
            "In json, jsonl and subtitles. A window then begins after the last word of the one "
            "before");
    flags.section("Words");
    flags.add("prepend-punctuations", prepended, "MARKS that belong to the word after them")
        .details("Needs --word-timestamps");
    flags.add("append-punctuations", appended, "MARKS that belong to the word before them")
        .details("Needs --word-timestamps");
    flags
        .add("hallucination-silence-threshold", hallucination_silence,
             "SECONDS of silence around invented text to skip", 0, 1e9)
        .details("Needs --word-timestamps. Words of odd length or low probability tell such text");
}

void WordOptions::check() const {
    const WordOptions standard;
    const auto needs_words = [&](bool given, const char* flag) {
        require_usage(timestamps || !given, flag, ": needs --word-timestamps");
    };
    needs_words(prepended != standard.prepended, "--prepend-punctuations");
    needs_words(appended != standard.appended, "--append-punctuations");
    needs_words(hallucination_silence.has_value(), "--hallucination-silence-threshold");
}

std::vector<TokenWord> split_on_unicode(const Tokenizer& tokenizer,
                                        std::span<const int32_t> tokens) {
    constexpr char32_t kReplacement = 0xfffd;
    const std::string replacement = "\xef\xbf\xbd", whole = tokenizer.decode(tokens);
    std::vector<TokenWord> words;
    TokenWord word;
    size_t begin = 0;  // of the word in `whole`, in code points
    for (const int32_t token : tokens) {
        word.tokens.push_back(token);
        word.text = tokenizer.decode(word.tokens);
        const size_t broken = word.text.find(replacement);
        // The text itself may contain U+FFFD, which marks an incomplete code point.
        if (broken != std::string::npos &&
            code_point_at(whole, begin + count_code_points(word.text.substr(0, broken))) !=
                kReplacement)
            continue;
        begin += count_code_points(word.text);
        words.push_back(std::exchange(word, {}));
    }
    if (!word.tokens.empty()) words.push_back(word);
    return words;
}

std::vector<TokenWord> split_into_words(const Tokenizer& tokenizer, std::span<const int32_t> tokens,
                                        const std::string& language) {
    static const std::set<std::string> kWithoutSpaces = {"zh", "ja", "th", "lo", "my", "yue"};
    static const std::string kPunctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
    std::vector<TokenWord> pieces = split_on_unicode(tokenizer, tokens);
    if (kWithoutSpaces.contains(language)) return pieces;
    std::vector<TokenWord> words;
    for (TokenWord& piece : pieces) {
        if (words.empty() || piece.text.starts_with(' ') ||
            contains(kPunctuation, strip(piece.text))) {
            words.push_back(std::move(piece));
            continue;
        }
        words.back().text += piece.text;
        words.back().tokens.insert(words.back().tokens.end(), piece.tokens.begin(),
                                   piece.tokens.end());
    }
    return words;
}

std::vector<TimedWord> timed_words(std::span<const TokenWord> words,
                                   const TokenAlignment& alignment) {
    std::vector<TimedWord> timed;
    size_t begin = 0;
    for (const TokenWord& word : words) {
        const size_t n = word.tokens.size(), end = begin + n;
        const double* probability = alignment.probability.data();
        timed.push_back({word.text, n, alignment.start.at(begin) / kStepsPerSecond,
                         alignment.start.at(end) / kStepsPerSecond,
                         std::accumulate(probability + begin, probability + end, 0.0) /
                             static_cast<double>(n)});
        begin = end;
    }
    return timed;
}

void merge_punctuation(std::vector<TimedWord>& words, const std::string& prepended,
                       const std::string& appended) {
    if (words.empty()) return;
    const auto move_into = [](TimedWord& to, TimedWord& from, const std::string& text) {
        to.text = text;
        to.tokens += std::exchange(from.tokens, 0);
        from.text.clear();
    };
    for (size_t i = words.size() - 1, next = i; i-- > 0;) {
        TimedWord& word = words[i];
        if (word.text.starts_with(' ') && contains(prepended, strip(word.text)))
            move_into(words[next], word, word.text + words[next].text);
        else
            next = i;
    }
    for (size_t i = 1, previous = 0; i < words.size(); ++i) {
        TimedWord& before = words[previous];
        if (!before.text.ends_with(' ') && contains(appended, words[i].text))
            move_into(before, words[i], before.text + words[i].text);
        else
            previous = i;
    }
}

void add_words(std::vector<Segment>& segments, std::span<const size_t> text_tokens,
               std::vector<TimedWord> words, const WordOptions& options, double last_speech) {
    const double median = median_duration(words);
    if (median > 0) shorten_at_sentence_ends(words, 2 * median);
    merge_punctuation(words, options.prepended, options.appended);
    size_t next = 0;
    for (size_t i = 0; i < segments.size(); ++i) {
        Segment& segment = segments[i];
        const double offset = seconds_of(segment.seek);
        std::vector<Word>& own = segment.words.emplace();
        for (size_t taken = 0; next < words.size() && taken < text_tokens[i]; ++next) {
            const TimedWord& word = words[next];
            taken += word.tokens;
            if (!word.text.empty())
                own.push_back({word.text, round_to_centiseconds(offset + word.start),
                               round_to_centiseconds(offset + word.end), word.probability});
        }
        if (own.empty()) continue;
        shorten_after_pause(own, median, last_speech);
        reconcile(segment, median);
        last_speech = segment.end;
    }
}

void add_words(std::vector<Segment>& segments, WindowDecoder& decoder, int64_t slot,
               const std::string& language, int64_t frames, const WordOptions& options,
               double last_speech) {
    std::vector<int32_t> text;
    std::vector<size_t> text_tokens;
    for (const Segment& segment : segments) {
        const size_t before = text.size();
        for (const int32_t token : segment.tokens)
            if (token < decoder.tokenizer().special().eot) text.push_back(token);
        text_tokens.push_back(text.size() - before);
    }
    const TokenAlignment alignment = decoder.align(slot, language, text, frames);
    add_words(segments, text_tokens,
              timed_words(split_into_words(decoder.tokenizer(), text, language), alignment),
              options, last_speech);
}

}  // namespace hark::whisper
