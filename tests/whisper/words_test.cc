// Cutting text into words, punctuation, and the times of words and segments.
#include "whisper/transcribe/words.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "support/byte_vocabulary.h"
#include "support/process.h"
#include "text/utf8.h"
#include "whisper/model/alignment_heads.h"
#include "whisper/output/formats.h"
#include "whisper/transcribe/alignment.h"
#include "whisper/transcribe/window_loop.h"

namespace hark::whisper {
namespace {

std::vector<std::string> texts_of(const std::vector<TokenWord>& words) {
    std::vector<std::string> texts;
    for (const TokenWord& word : words) texts.push_back(word.text);
    return texts;
}

// Ids 0 to 255 are the bytes.
Tokenizer bytes() {
    Bpe bpe = Bpe::parse_tiktoken(test::byte_vocabulary(), "ranks");
    int32_t id = 256;
    for (const char* content : {"<|endoftext|>", "<|startoftranscript|>", "<|startofprev|>",
                                "<|notimestamps|>", "<|0.00|>"})
        bpe.add_special(content, id++);
    return Tokenizer(bpe, find_special_tokens(bpe, "", 300, "bytes"));
}

std::vector<std::string> split(const std::string& text, const std::string& language) {
    const Tokenizer tokenizer = bytes();
    const std::vector<int32_t> tokens = tokenizer.encode(text);
    std::vector<int32_t> joined;
    const std::vector<TokenWord> words = split_into_words(tokenizer, tokens, language);
    for (const TokenWord& word : words)
        joined.insert(joined.end(), word.tokens.begin(), word.tokens.end());
    EXPECT_EQ(joined, tokens);
    return texts_of(words);
}

using WordsTexts = std::vector<std::string>;

TEST(SplitIntoWords, AtSpacesAndPunctuation) {
    EXPECT_EQ(split(" Hello, the sea!", "en"), (WordsTexts{" Hello", ",", " the", " sea", "!"}));
    EXPECT_EQ(split("don't stop", "en"), (WordsTexts{"don", "'t", " stop"}));
    EXPECT_EQ(split("", "en"), WordsTexts{});
    // White space alone is found in any string, so it begins a word.
    EXPECT_EQ(split("a\tb", "en"), (WordsTexts{"a", "\tb"}));
    // Only ASCII punctuation cuts.
    EXPECT_EQ(split("für Äpfel…", "de"), (WordsTexts{"für", " Äpfel…"}));
}

TEST(SplitIntoWords, LanguagesWithoutSpacesAtCodePoints) {
    for (const char* language : {"zh", "ja", "th", "lo", "my", "yue"})
        EXPECT_EQ(split("我的 sé", language), (WordsTexts{"我", "的", " ", "s", "é"}));
    EXPECT_EQ(split("我的 sé", "ko"), (WordsTexts{"我的", " sé"}));
}

// The timestamps between two segments may be within a code point.
TEST(CutCodePoints, AreValidInEveryFormat) {
    const Tokenizer tokenizer = bytes();
    const int32_t zero = tokenizer.special().timestamp_begin;
    DecodingResult result;
    result.tokens = {zero, 'a',       0xe6,      zero + 50, zero + 50, 0x88,     0x91,
                     0xf0, zero + 90, zero + 90, 0x9f,      'b',       zero + 99};
    WindowLoop loop({}, tokenizer, 3000);
    const auto add_words = [&](const auto&, std::vector<Segment>& segments, double) {
        for (Segment& words_segment : segments) {
            std::vector<int32_t> text;
            for (const int32_t token : words_segment.tokens)
                if (token < zero) text.push_back(token);
            words_segment.words.emplace();
            for (const TokenWord& word : split_into_words(tokenizer, text, "zh"))
                words_segment.words->push_back(
                    {word.text, words_segment.start, words_segment.end, 0.5});
        }
    };
    const std::vector<Segment> segments = loop.accept(result, add_words);
    ASSERT_EQ(segments.size(), 3u);
    EXPECT_EQ(segments[0].text, "a\ufffd");
    EXPECT_EQ(loop.text(), "a我\ufffdb");
    for (const std::string& format : transcript_formats()) {
        std::string out;
        auto writer = make_transcript_writer(format, [&](const std::string& text) { out += text; },
                                             {1, 1, 0, true});
        writer->begin({"a\xff.wav", "0", "zh"});
        for (const Segment& words_segment : segments) writer->segment(words_segment);
        writer->end(loop.text(), "");
        EXPECT_TRUE(is_valid_utf8(out)) << format << ": " << out;
        EXPECT_NE(out.find("\ufffd"), out.npos) << format << ": " << out;
    }
}

// A byte that belongs to nothing is a word at once; one that only begins a code point waits.
TEST(SplitIntoWords, BrokenBytes) {
    const Tokenizer tokenizer = bytes();
    const auto texts = [&](const std::vector<int32_t>& tokens) {
        return texts_of(split_on_unicode(tokenizer, tokens));
    };
    EXPECT_EQ(texts({'a', 0x80, 'b'}), (WordsTexts{"a", "\ufffd", "b"}));
    EXPECT_EQ(texts({'a', 0xc3, 0xa9}), (WordsTexts{"a", "é"}));
    EXPECT_EQ(texts({0xc3, 'a'}), (WordsTexts{"\ufffd", "a"}));
    EXPECT_EQ(texts({'a', 0xe6, 0x88}), (WordsTexts{"a", "\ufffd", "\ufffd"}));
}

// openai/whisper tests/test_tokenizer.py, test_split_on_unicode.
TEST(SplitIntoWords, OfficialVocabulary) {
    const std::filesystem::path file =
        test::source_dir().parent_path() / "shared/data/multilingual.tiktoken";
    if (!std::filesystem::exists(file))
        GTEST_SKIP() << "the official vocabulary multilingual.tiktoken is not at hand";
    Bpe bpe = Bpe::from_tiktoken(file);
    int32_t id = 50257;
    for (const char* content :
         {"<|endoftext|>", "<|startoftranscript|>", "<|startofprev|>", "<|notimestamps|>"})
        bpe.add_special(content, id++);
    const Tokenizer tokenizer(bpe, find_special_tokens(bpe, "", 51864, file.string()));
    const std::vector<TokenWord> words =
        split_on_unicode(tokenizer, std::vector<int32_t>{8404, 871, 287, 6, 246, 526, 3210, 20378});
    EXPECT_EQ(texts_of(words),
              (WordsTexts{" elle", " est", " l", "'", "\ufffd", "é", "rit", "oire"}));
    for (const TokenWord& word : words) EXPECT_EQ(word.tokens.size(), 1u);
}

WordsTexts merged(const WordsTexts& texts, const std::string& prepended = WordOptions().prepended,
                  const std::string& appended = WordOptions().appended) {
    std::vector<TimedWord> words;
    for (const std::string& text : texts) words.push_back({text, 1, 0, 0, 0});
    merge_punctuation(words, prepended, appended);
    WordsTexts result;
    size_t tokens = 0;
    for (const TimedWord& word : words) {
        EXPECT_EQ(word.text.empty(), word.tokens == 0);
        tokens += word.tokens;
        result.push_back(word.text);
    }
    EXPECT_EQ(tokens, texts.size());
    return result;
}

TEST(MergePunctuation, BelongsToTheWordBesideIt) {
    EXPECT_EQ(merged({" He", ",", " said", "."}), (WordsTexts{" He,", "", " said.", ""}));
    EXPECT_EQ(merged({" said", " \"", "No", "!", "\""}),
              (WordsTexts{" said", "", " \"No!\"", "", ""}));
    EXPECT_EQ(merged({" (", "[", "a"}),
              (WordsTexts{"", " ([", "a"}));  // "[" has no space before it
    EXPECT_EQ(merged({" (", " [", "a"}), (WordsTexts{"", "", " ( [a"}));  // from the right
    EXPECT_EQ(merged({" a", "?", "!"}), (WordsTexts{" a?!", "", ""}));
    EXPECT_EQ(merged({"a ", "."}), (WordsTexts{"a ", "."}));  // a space is between them
    EXPECT_EQ(merged({}), WordsTexts{});
}

TEST(MergePunctuation, IsSearchedAsOneString) {
    EXPECT_EQ(merged({" a", ".。,"}), (WordsTexts{" a.。,", ""}));
    EXPECT_EQ(merged({" a", ",."}), (WordsTexts{" a", ",."}));  // not in this order
    EXPECT_EQ(merged({" a", "."}, "", ""), (WordsTexts{" a", "."}));
}

TEST(TimedWords, EndWhereTheNextBegins) {
    const TokenAlignment alignment = {{0.5, 0.25, 1.0}, {0, 10, 25, 50}};
    const std::vector<TimedWord> words =
        timed_words(std::vector<TokenWord>{{" a", {1, 2}}, {"b", {3}}}, alignment);
    ASSERT_EQ(words.size(), 2u);
    EXPECT_EQ(words[0].start, 0.0);
    EXPECT_EQ(words[0].end, 0.5);
    EXPECT_EQ(words[0].probability, 0.375);
    EXPECT_EQ(words[1].start, 0.5);
    EXPECT_EQ(words[1].end, 1.0);
    EXPECT_EQ(words[1].probability, 1.0);
}

Segment words_segment(double start, double end, int64_t seek = 0) {
    Segment words_segment;
    words_segment.seek = seek;
    words_segment.start = start;
    words_segment.end = end;
    return words_segment;
}

// Words of one token each, by where they begin; the last number is the last one's end.
std::vector<TimedWord> words_at(const WordsTexts& texts, const std::vector<double>& times) {
    std::vector<TimedWord> words;
    for (size_t i = 0; i < texts.size(); ++i)
        words.push_back({texts[i], 1, times[i], times[i + 1], 0.5});
    return words;
}

struct ExpectedTimes {
    std::vector<std::array<double, 2>> words;
    double start, end;  // of the words_segment
};

void expect_times(const Segment& words_segment, const ExpectedTimes& expected) {
    ASSERT_EQ(words_segment.words->size(), expected.words.size());
    for (size_t i = 0; i < expected.words.size(); ++i) {
        EXPECT_NEAR((*words_segment.words)[i].start, expected.words[i][0], 1e-9) << i;
        EXPECT_NEAR((*words_segment.words)[i].end, expected.words[i][1], 1e-9) << i;
    }
    EXPECT_NEAR(words_segment.start, expected.start, 1e-9);
    EXPECT_NEAR(words_segment.end, expected.end, 1e-9);
}

Segment with_words(Segment words_segment, std::vector<TimedWord> words, double last_speech = 0) {
    std::vector<Segment> segments = {words_segment};
    const size_t tokens[] = {words.size()};
    add_words(segments, tokens, std::move(words), WordOptions(), last_speech);
    return segments[0];
}

TEST(AddWords, SegmentsTakeTheWordsTimes) {
    const Segment found = with_words(words_segment(10.0, 12.0, 1000),
                                     words_at({" a", " b", " c"}, {0.2, 0.5, 0.8, 1.9}), 10.0);
    expect_times(found, {{{10.2, 10.5}, {10.5, 10.8}, {10.8, 11.9}}, 10.2, 11.9});
}

// The times of these three are what the reference's add_word_timestamps gives.
TEST(AddWords, SentenceEndsAreCutShort) {
    // The median is 0.3 s: the word after the full stop gets 0.6 s.
    const Segment after =
        with_words(words_segment(0, 4), words_at({" a", ".", " b", " c"}, {0, 0.3, 0.6, 3.0, 3.3}));
    expect_times(after, {{{0, 0.3}, {2.4, 3.0}, {3.0, 3.3}}, 0, 3.3});
    // What is joined to a word leaves its time alone.
    const Segment stop =
        with_words(words_segment(0, 4), words_at({" a", " b", ".", " c"}, {0, 0.3, 0.6, 3.0, 3.3}));
    expect_times(stop, {{{0, 0.3}, {0.3, 0.6}, {3.0, 3.3}}, 0, 3.3});
    WordOptions apart;
    apart.appended = "-";
    std::vector<Segment> segments = {words_segment(0, 4)};
    const size_t tokens[] = {4};
    add_words(segments, tokens, words_at({" a", " b", ".", " c"}, {0, 0.3, 0.6, 3.0, 3.3}), apart,
              0);
    expect_times(segments[0], {{{0, 0.3}, {0.3, 0.6}, {0.6, 1.2}, {3.0, 3.3}}, 0, 3.3});
}

TEST(AddWords, FirstWordsBehindAPauseAreCutShort) {
    // Median 0.3: the first word holds a pause of 5 s; it keeps 0.6 s.
    const Segment one =
        with_words(words_segment(0, 6), words_at({" a", " b", " c"}, {0, 5.0, 5.3, 5.6}), 0);
    expect_times(one, {{{4.4, 5.0}, {5.0, 5.3}, {5.3, 5.6}}, 4.4, 5.6});
    // The second is too long as well: the boundary moves into it.
    const Segment two =
        with_words(words_segment(0, 8),
                   words_at({" a", " b", " c", " d", " e"}, {0, 2.0, 5.0, 5.3, 5.6, 5.9}), 0);
    expect_times(two, {{{3.8, 4.4}, {4.4, 5.0}, {5.0, 5.3}, {5.3, 5.6}, {5.6, 5.9}}, 3.8, 5.9});
    // 1 s after the previous speech is no pause.
    const Segment close =
        with_words(words_segment(0, 6), words_at({" a", " b", " c"}, {0, 5.0, 5.3, 5.6}), 4.0);
    expect_times(close, {{{0, 5.0}, {5.0, 5.3}, {5.3, 5.6}}, 0, 5.6});
}

TEST(AddWords, TheSegmentsTimesHoldWhereAnEdgeWordIsTooLong) {
    // Over 0.5 s apart: the words_segment keeps its start and end, and the words move towards them.
    const Segment found =
        with_words(words_segment(1.0, 3.0), words_at({" a", " b", " c"}, {0.2, 1.1, 1.4, 4.0}), 0);
    expect_times(found, {{{0.4, 1.1}, {1.1, 1.4}, {1.4, 3.0}}, 1.0, 3.0});
    const Segment wide =
        with_words(words_segment(1.0, 3.0),
                   words_at({" a", " b", " c", " d"}, {0.2, 1.6, 1.9, 2.2, 4.0}), 1.0);
    expect_times(wide, {{{0.9, 1.6}, {1.6, 1.9}, {1.9, 2.2}, {2.2, 3.0}}, 1.0, 3.0});
}

TEST(AddWords, AreSharedOutByTokens) {
    std::vector<Segment> segments = {words_segment(0, 1), words_segment(1, 2), words_segment(2, 3)};
    std::vector<TimedWord> words =
        words_at({" a", " b", ".", " c", " d"}, {0, 0.4, 0.8, 1.2, 1.6, 2.0});
    const size_t tokens[] = {3, 0, 2};
    add_words(segments, tokens, words, WordOptions(), 0);
    ASSERT_EQ(segments[0].words->size(), 2u);
    EXPECT_EQ((*segments[0].words)[1].text, " b.");
    EXPECT_TRUE(segments[1].words->empty());
    EXPECT_EQ(segments[1].start, 1.0);
    ASSERT_EQ(segments[2].words->size(), 2u);
    EXPECT_EQ(segments[2].end, 2.0);
}

// 0.125 and 0.375 are doubles themselves, so the even neighbour is taken; 2.675 is below it.
TEST(AddWords, TimesAreRoundedAsPythonDoes) {
    const Segment found = with_words(words_segment(0, 3),
                                     words_at({" a", " b", " c"}, {0.125, 0.375, 2.675, 2.8}), 2.8);
    EXPECT_EQ((*found.words)[0].start, 0.12);
    EXPECT_EQ((*found.words)[0].end, 0.38);
    EXPECT_EQ((*found.words)[1].end, 2.67);
}

TEST(WordOptions, NeedWordTimestamps) {
    const auto expect_usage_error = [](WordOptions options) {
        EXPECT_THROW(options.check(), UsageError);
        options.timestamps = true;
        EXPECT_NO_THROW(options.check());
    };
    EXPECT_NO_THROW(WordOptions().check());
    WordOptions silence, prepended, appended;
    silence.hallucination_silence = 0.0;
    prepended.prepended = "";
    appended.appended = ".";
    expect_usage_error(silence);
    expect_usage_error(prepended);
    expect_usage_error(appended);
}

using Heads = std::vector<AlignmentHead>;

TEST(AlignmentHeads, OfOfficialShapesAndOfTheUpperHalf) {
    EXPECT_EQ(official_config("tiny").alignment_heads,
              (Heads{{2, 2}, {3, 0}, {3, 2}, {3, 3}, {3, 4}, {3, 5}}));
    EXPECT_EQ(official_config("tiny.en").alignment_heads.front(), (AlignmentHead{1, 0}));
    EXPECT_EQ(official_config("turbo").alignment_heads,
              (Heads{{2, 4}, {2, 11}, {3, 3}, {3, 6}, {3, 11}, {3, 14}}));
    EXPECT_EQ(official_config("large-v2").alignment_heads.size(), 23u);
    EXPECT_EQ(official_config("large-v3").alignment_heads.size(), 10u);
    for (const char* size : {"tiny", "tiny.en", "base", "base.en", "small", "small.en", "medium",
                             "medium.en", "large-v2", "large-v3", "turbo"}) {
        const Config config = official_config(size);
        EXPECT_TRUE(std::is_sorted(config.alignment_heads.begin(), config.alignment_heads.end()));
        for (const AlignmentHead& head : config.alignment_heads) {
            EXPECT_LT(head.layer, config.n_text_layer) << size;
            EXPECT_LT(head.head, config.n_text_head) << size;
        }
    }
    Config odd = official_config("tiny");
    odd.n_vocab = 5000;
    odd.n_text_layer = 3;
    odd.n_text_head = 2;
    EXPECT_EQ(default_alignment_heads(odd), (Heads{{1, 0}, {1, 1}, {2, 0}, {2, 1}}));
}

TEST(AlignmentHeads, GenerationConfigComesFirst) {
    const Config tiny = official_config("tiny");
    const auto parsed = [&](const std::string& text) {
        return parse_alignment_heads(text, tiny, "file");
    };
    EXPECT_EQ(parsed(R"({"alignment_heads": [[3, 1], [0, 5], [3, 1]]})"), (Heads{{0, 5}, {3, 1}}));
    EXPECT_EQ(parsed("{}"), tiny.alignment_heads);
    EXPECT_EQ(parsed(R"({"alignment_heads": null})"), tiny.alignment_heads);
    EXPECT_EQ(parsed(R"({"alignment_heads": []})"), tiny.alignment_heads);
    for (const char* wrong :
         {R"({"alignment_heads": 3})", R"({"alignment_heads": [[4, 0]]})",
          R"({"alignment_heads": [[0, 6]]})", R"({"alignment_heads": [[0, -1]]})",
          R"({"alignment_heads": [[0]]})", R"({"alignment_heads": [[0, 1.5]]})", "[]", "x"})
        EXPECT_THROW(parsed(wrong), Error) << wrong;
}

}  // namespace
}  // namespace hark::whisper
