// The window loop on the demo model against openai-whisper's own transcribe().
// Golden: tests/golden/whisper_transcribe.py.
#include <gtest/gtest.h>

#include "core/profile/measured_run.h"
#include "whisper/transcribe/decoding.h"
#include "whisper/transcripts.h"

namespace hark::test {
namespace {

using namespace hark::whisper;
using nlohmann::json;

const json& transcribe_all() {
    static const json kGolden = golden("whisper_transcribe.json");
    return kGolden;
}

// Counts the encoder's runs.
class EncoderRuns {
  public:
    EncoderRuns() {
        console_.stats = true;
        measured_.emplace("test", console_);
    }
    int64_t count() const { return total() - before_; }

  private:
    static int64_t total() {
        for (const StageTotal& one : stage_totals())
            if (one.stage == "encode") return one.spans;
        return 0;
    }

    Console console_{"test"};
    std::optional<MeasuredRun> measured_;
    int64_t before_ = total();
};

class Recording : public testing::TestWithParam<size_t> {};

TEST_P(Recording, EqualsReferenceInF32) {
    const json& entry = transcribe_all()["recordings"][GetParam()];
    const EncoderRuns encoder;
    expect_same_recording(entry, run(entry, "f32", {0}));
    // The language and the text share a window without padding. Padding differs: silence, zeros.
    const bool detects = !entry.value("options", json::object()).contains("language");
    const bool again = detects && entry["seconds"].get<double>() < 30;
    EXPECT_EQ(encoder.count(), std::ssize(entry["windows"]) + (again ? 1 : 0));
}

INSTANTIATE_TEST_SUITE_P(Golden, Recording, testing::ValuesIn(fewer_long_ones(40, 8, 5)),
                         [](const auto& info) {
                             return name_of_entry(transcribe_all()["recordings"][info.param]);
                         });

// What --dtype auto takes on the CPU, float32 arithmetic on f16 weights, which are those of f32: 3
// of the shorter ones, or 20 where HARK_ALL_RECORDINGS is set, as tests/sanitize.sh does.
size_t short_recordings() { return all_recordings() ? 20 : 3; }

class ShortRecording : public testing::TestWithParam<size_t> {};

TEST_P(ShortRecording, EqualsReferenceInAuto) {
    const json& entry = transcribe_all()["recordings"][GetParam()];
    expect_same_recording(entry, run(in_its_language(entry), "auto", {0}));
}

INSTANTIATE_TEST_SUITE_P(Golden, ShortRecording, testing::Range<size_t>(0, short_recordings()),
                         [](const auto& info) {
                             return name_of_entry(transcribe_all()["recordings"][info.param]);
                         });

const json& rarer() {
    static const json kGolden = golden("whisper_options.json");
    return kGolden;
}

// Golden: tests/golden/whisper_options.py.
class RarerOptions : public testing::TestWithParam<size_t> {};

TEST_P(RarerOptions, EqualReferenceInF32) {
    const json& entry = rarer()["recordings"][GetParam()];
    const Outcome ours = run(entry, "f32", {0});
    const bool words = entry["options"].contains("word_timestamps");
    expect_same_recording(entry, ours, words ? kWordTimes : 1e-6);
    if (words) expect_same_words(entry, ours);
}

INSTANTIATE_TEST_SUITE_P(Golden, RarerOptions, testing::Range<size_t>(0, 26), [](const auto& info) {
    return concat(info.param, "_", name_of_entry(rarer()["recordings"][info.param]));
});

class Fallback : public testing::TestWithParam<size_t> {};

// Equal up to and including the first refused window; a random draw changes transcribe_all that
// follows.
TEST_P(Fallback, FirstRejectionEqualsReference) {
    const json& entry = transcribe_all()["fallbacks"][GetParam()];
    const size_t n = entry["windows"].size();
    const Outcome ours = run(entry, "f32", {0, 0.2, 0.4, 0.6, 0.8, 1}, n + 1);
    ASSERT_GT(ours.attempts.size(), n);
    for (size_t i = 0; i < n; ++i) expect_same_window(ours.attempts[i], entry["windows"][i]);
    for (size_t i = 0; i + 1 < n; ++i) EXPECT_EQ(ours.attempts[i].rejection, Rejection::none);
    const std::string reason = entry["rejected"].at(0).get<std::string>();
    EXPECT_EQ(ours.attempts[n - 1].rejection,
              reason == "compression_ratio" ? Rejection::compression_ratio : Rejection::logprob);
    EXPECT_EQ(ours.attempts[n].seek, ours.attempts[n - 1].seek);
    EXPECT_EQ(ours.attempts[n].result.temperature, 0.2);
}

INSTANTIATE_TEST_SUITE_P(Golden, Fallback, testing::Range<size_t>(0, 5), [](const auto& info) {
    return name_of_entry(transcribe_all()["fallbacks"][info.param]);
});

// The window of the language is not the first one of the text, or not the only one.
TEST(Transcribe, OtherWindowsThanThatOfTheLanguageAreEncoded) {
    const json& entry = transcribe_all()["recordings"][18];  // of 31 s
    const std::vector<MelRecording> mel = {mel_of(samples_of(entry))};
    TranscribeOptions clip, votes;
    clip.clips = {0.5, 30.5};
    votes.language_windows = 2;
    votes.language_threshold = 1;
    for (TranscribeOptions options : {clip, votes}) {
        options.fallback_temperatures = {};
        const EncoderRuns encoder;
        const Outcome ours = run_all(mel, options, "f32").at(0);
        const int64_t runs = encoder.count();
        options.language = ours.language;
        expect_equal(run_all(mel, options, "f32").at(0), ours);
        EXPECT_EQ(runs, encoder.count() - runs + options.language_windows);
    }
}

TEST(Transcribe, SilenceAndQuietNoiseGiveNoText) {
    for (const json& entry : transcribe_all()["quiet"]) {
        const Outcome ours = run(entry, "f32", {0, 0.2, 0.4, 0.6, 0.8, 1});
        EXPECT_EQ(ours.text, "") << entry["kind"];
        EXPECT_TRUE(ours.segments.empty()) << entry["kind"];
    }
}

TEST(Transcribe, SameSeedSameDraws) {
    const json& entry = transcribe_all()["fallbacks"][4];
    const Outcome a = run(entry, "auto", {0.8}), b = run(entry, "auto", {0.8});
    ASSERT_EQ(a.attempts.size(), b.attempts.size());
    for (size_t i = 0; i < a.attempts.size(); ++i)
        EXPECT_EQ(a.attempts[i].result.tokens, b.attempts[i].result.tokens);
}

TEST(Transcribe, SuppressedTokensEqualReference) {
    Demo& d = demo("f32");
    const WindowDecoder decoder(d.ctx, d.model, d.tokenizer,
                                TranscribeOptions().decoding(d.tokenizer), 1);
    EXPECT_EQ(decoder.constraints().suppressed,
              transcribe_all()["suppressed_tokens"].get<std::vector<int32_t>>());
}

TEST(Transcribe, NoSuppressedTokensAreNoneOfTheSpecialOnesEither) {
    Demo& d = demo("f32");
    TranscribeOptions options;
    options.suppress_tokens = "";
    const WindowDecoder none(d.ctx, d.model, d.tokenizer, options.decoding(d.tokenizer), 1);
    EXPECT_TRUE(none.constraints().suppressed.empty());
    options.suppress_tokens = "7";
    const WindowDecoder one(d.ctx, d.model, d.tokenizer, options.decoding(d.tokenizer), 1);
    EXPECT_EQ(one.constraints().suppressed.size(), 7u);  // and six special tokens
}

void expect_usage_error(const std::function<void(TranscribeOptions&)>& change) {
    TranscribeOptions options;
    EXPECT_NO_THROW(options.check());
    change(options);
    EXPECT_THROW(options.check(), UsageError);
}

TEST(TranscribeOptions, WhatCannotBeHonouredIsRefused) {
    using O = TranscribeOptions;
    expect_usage_error([](O& o) { o.patience = 2; });
    expect_usage_error([](O& o) { o.suppress_regex = "("; });
    expect_usage_error([](O& o) { o.fallback_temperatures = {}, o.best_of = 3; });
    expect_usage_error([](O& o) { o.fallback_temperatures = {}, o.seed = 3; });
    expect_usage_error([](O& o) { o.fallback_temperatures = {}, o.length_penalty = 0.5; });
    expect_usage_error([](O& o) { o.temperature = 0.5, o.beam_size = 5; });
    expect_usage_error([](O& o) { o.draft_tokens = 2; });
    expect_usage_error([](O& o) { o.draft_model = "x", o.beam_size = 5; });
    expect_usage_error([](O& o) { o.multilingual = true, o.language = "de"; });
    expect_usage_error([](O& o) { o.language_windows = 3, o.language = "de"; });
    expect_usage_error([](O& o) { o.language_threshold = 0.9; });
    expect_usage_error([](O& o) { o.carry_initial_prompt = true, o.initial_prompt = " "; });
    expect_usage_error([](O& o) { o.windows = "independent", o.previous_text = false; });
    expect_usage_error([](O& o) { o.suppress_tokens = "1,x"; });
    expect_usage_error([](O& o) { o.words.hallucination_silence = 1; });
}

TEST(TranscribeOptions, FallsBackToHigherTemperaturesAlone) {
    TranscribeOptions options;
    EXPECT_EQ(options.temperatures(), (std::vector<double>{0, 0.2, 0.4, 0.6, 0.8, 1}));
    options.temperature = 0.6;
    EXPECT_EQ(options.temperatures(), (std::vector<double>{0.6, 0.8, 1}));
    options.fallback_temperatures.clear();
    EXPECT_EQ(options.temperatures(), (std::vector<double>{0.6}));
}

// Greedy and with beams alike: no token is left for the first place.
TEST(Transcribe, SuppressingEverythingIsAnError) {
    Demo& d = demo("auto");
    const int32_t first = d.tokenizer.special().timestamp_begin;
    for (const int64_t beams : {1, 3}) {
        TranscribeOptions options;
        options.beam_size = beams;
        options.language = "en";
        for (int32_t id = first; id <= first + 50; ++id) options.suppress_tokens += concat(",", id);
        const MelRecording mel = mel_of(samples_of(transcribe_all()["recordings"][3]));
        EXPECT_THROW(run_all({mel}, options, "auto"), Error);
    }
}

TEST(Transcribe, TooLongAPrefixOrTooManyHotwordsAreErrors) {
    Demo& d = demo("auto");
    TranscribeOptions options;
    for (int i = 0; i < 300; ++i) options.prefix += "hello world ";
    EXPECT_THROW(Transcriber(d.ctx, d.model, d.tokenizer, options, {}), Error);
    options.hotwords.swap(options.prefix);
    EXPECT_THROW(Transcriber(d.ctx, d.model, d.tokenizer, options, {}), Error);
}

// The prompt, the prefix and the patterns reach the decoder.
TEST(Transcribe, PrefixHotwordsAndPatternsChangeTheText) {
    const MelRecording mel = mel_of(samples_of(transcribe_all()["recordings"][9]));
    TranscribeOptions options;
    options.language = "en";
    options.fallback_temperatures = {};
    const std::string plain = run_all({mel}, options, "auto").at(0).text;
    options.suppress_regex = "\\s?[Tt]he";
    const std::string without = run_all({mel}, options, "auto").at(0).text;
    EXPECT_NE(without, plain);
    EXPECT_EQ(without.find(" the "), std::string::npos);
    options.suppress_regex.clear();
    options.no_repeat_ngram = 1;
    EXPECT_NE(run_all({mel}, options, "auto").at(0).text, plain);
    options.no_repeat_ngram = 0;
    options.prefix = "Nobody answered,";
    EXPECT_NE(run_all({mel}, options, "auto").at(0).text, plain);
}

TEST(Transcribe, LanguagesOfSeveralWindowsAndOfEach) {
    TranscribeOptions options;
    options.fallback_temperatures = {};
    options.language_windows = 4;
    options.language_threshold = 1;
    const MelRecording mel = mel_of(samples_of(transcribe_all()["recordings"][30]));
    EXPECT_EQ(run_all({mel}, options, "auto").at(0).language, "en");
    options.language_windows = 1;
    options.language_threshold = 0.5;
    options.multilingual = true;
    const std::vector<Outcome> ours = run_all({mel}, options, "auto");
    EXPECT_FALSE(ours.at(0).segments.empty());
    for (const Segment& segment : ours.at(0).segments) EXPECT_FALSE(segment.language.empty());
}

TEST(Transcribe, AnUnknownLanguageIsAnError) {
    Demo& d = demo("f32");
    TranscribeOptions options;
    options.language = "xx";
    EXPECT_THROW(Transcriber(d.ctx, d.model, d.tokenizer, options, {}), Error);
}

}  // namespace
}  // namespace hark::test
