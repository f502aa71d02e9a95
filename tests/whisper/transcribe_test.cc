// The window loop on the demo model against openai-whisper's own transcribe().
// Golden: tests/golden/whisper_transcribe.py.
#include <gtest/gtest.h>

#include "whisper/support.h"

namespace hark::test {
namespace {

using namespace hark::whisper;
using nlohmann::json;

const json& all() {
    static const json kGolden = golden("whisper_transcribe.json");
    return kGolden;
}

// The demo model in one precision, loaded once.
struct Demo {
    explicit Demo(const std::string& dtype)
        : ctx(make_cpu_context(1)),
          model(load_model(demo_model(), precision_of(dtype))),
          tokenizer(demo_model(), model.config.n_vocab) {}
    Context ctx;
    Model model;
    Tokenizer tokenizer;
};

Demo& demo(const std::string& dtype) {
    static std::map<std::string, std::unique_ptr<Demo>> loaded;
    std::unique_ptr<Demo>& one = loaded[dtype];
    if (!one) one = std::make_unique<Demo>(dtype);
    return *one;
}

TranscribeOptions options_of(const json& given, std::vector<double> temperature) {
    TranscribeOptions options;
    options.temperature = std::move(temperature);
    for (const auto& [key, value] : given.items()) {
        if (key == "language")
            options.language = value.get<std::string>();
        else if (key == "task")
            options.task = value.get<std::string>();
        else if (key == "initial_prompt")
            options.initial_prompt = value.get<std::string>();
        else if (key == "carry_initial_prompt")
            options.carry_initial_prompt = value.get<bool>();
        else if (key == "without_timestamps")
            options.no_timestamps = value.get<bool>();
        else if (key == "condition_on_previous_text")
            options.no_previous_text = !value.get<bool>();
        else if (key == "clip_timestamps") {
            std::istringstream in(value.get<std::string>());
            for (std::string part; std::getline(in, part, ',');)
                options.clips.push_back(std::stod(part));
        } else
            throw std::runtime_error("unknown option " + key);
    }
    return options;
}

struct Outcome {
    std::string language, text;
    std::vector<Segment> segments;
    std::vector<Attempt> attempts;
};

Outcome run(const json& entry, const std::string& dtype, std::vector<double> temperature) {
    Demo& d = demo(dtype);
    const MelRecording mel = mel_of(samples_of(entry));
    Transcriber transcriber(
        d.ctx, d.model, d.tokenizer,
        options_of(entry.value("options", json::object()), std::move(temperature)));
    Outcome run;
    run.language = transcriber.language(mel);
    Transcriber::Listener listener;
    listener.segment = [&](const Segment& segment) { run.segments.push_back(segment); };
    listener.attempt = [&](const Attempt& attempt) { run.attempts.push_back(attempt); };
    run.text = transcriber.transcribe(mel, run.language, listener);
    return run;
}

void expect_same_window(const Attempt& ours, const json& theirs) {
    EXPECT_EQ(ours.seek, theirs[0].get<int64_t>());
    EXPECT_EQ(ours.result.tokens, theirs[2].get<std::vector<int32_t>>());
    EXPECT_NEAR(ours.result.avg_logprob, theirs[3].get<double>(), 1e-3);
    EXPECT_NEAR(ours.result.compression_ratio, theirs[4].get<double>(), 1e-5);
    EXPECT_NEAR(ours.result.no_speech_prob, theirs[5].get<double>(), 1e-3);
}

void expect_same_recording(const json& theirs, const Outcome& ours) {
    EXPECT_EQ(ours.language, theirs["language"].get<std::string>());
    EXPECT_EQ(ours.text, theirs["text"].get<std::string>());
    ASSERT_EQ(ours.attempts.size(), theirs["windows"].size());
    for (size_t i = 0; i < ours.attempts.size(); ++i)
        expect_same_window(ours.attempts[i], theirs["windows"][i]);
    std::vector<json> segments;  // those with text
    for (const json& segment : theirs["segments"])
        if (!segment[3].get<std::string>().empty()) segments.push_back(segment);
    ASSERT_EQ(ours.segments.size(), segments.size());
    for (size_t i = 0; i < segments.size(); ++i) {
        const Segment& segment = ours.segments[i];
        EXPECT_EQ(segment.seek, segments[i][0].get<int64_t>());
        EXPECT_NEAR(segment.start, segments[i][1].get<double>(), 1e-6);
        EXPECT_NEAR(segment.end, segments[i][2].get<double>(), 1e-6);
        EXPECT_EQ(segment.text, segments[i][3].get<std::string>());
        EXPECT_EQ(segment.tokens, segments[i][4].get<std::vector<int32_t>>());
        EXPECT_EQ(segment.temperature, segments[i][5].get<double>());
    }
}

std::string name_of_entry(const json& entry) {
    return concat(entry["kind"].get<std::string>(), entry["seed"].get<int>());
}

class Recording : public testing::TestWithParam<size_t> {};

TEST_P(Recording, EqualsReferenceInF32) {
    const json& entry = all()["recordings"][GetParam()];
    expect_same_recording(entry, run(entry, "f32", {0}));
}

INSTANTIATE_TEST_SUITE_P(Golden, Recording, testing::Range<size_t>(0, 40), [](const auto& info) {
    return name_of_entry(all()["recordings"][info.param]);
});

// What --dtype auto takes on the CPU, float32 arithmetic on f16 weights, on the shorter ones.
class ShortRecording : public testing::TestWithParam<size_t> {};

TEST_P(ShortRecording, EqualsReferenceInAuto) {
    const json& entry = all()["recordings"][GetParam()];
    expect_same_recording(entry, run(entry, "auto", {0}));
}

INSTANTIATE_TEST_SUITE_P(Golden, ShortRecording, testing::Range<size_t>(0, 20),
                         [](const auto& info) {
                             return name_of_entry(all()["recordings"][info.param]);
                         });

class Fallback : public testing::TestWithParam<size_t> {};

// Equal up to and including the first refused window; a random draw changes all that follows.
TEST_P(Fallback, FirstRejectionEqualsReference) {
    const json& entry = all()["fallbacks"][GetParam()];
    const Outcome ours = run(entry, "f32", {0, 0.2, 0.4, 0.6, 0.8, 1});
    const size_t n = entry["windows"].size();
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
    return name_of_entry(all()["fallbacks"][info.param]);
});

TEST(Transcribe, SilenceAndQuietNoiseGiveNoText) {
    for (const json& entry : all()["quiet"]) {
        const Outcome ours = run(entry, "f32", {0, 0.2, 0.4, 0.6, 0.8, 1});
        EXPECT_EQ(ours.text, "") << entry["kind"];
        EXPECT_TRUE(ours.segments.empty()) << entry["kind"];
    }
}

TEST(Transcribe, SameSeedSameDraws) {
    const json& entry = all()["fallbacks"][4];
    const Outcome a = run(entry, "auto", {0.8}), b = run(entry, "auto", {0.8});
    ASSERT_EQ(a.attempts.size(), b.attempts.size());
    for (size_t i = 0; i < a.attempts.size(); ++i)
        EXPECT_EQ(a.attempts[i].result.tokens, b.attempts[i].result.tokens);
}

TEST(Transcribe, SuppressedTokensEqualReference) {
    Demo& d = demo("f32");
    const WindowDecoder decoder(d.ctx, d.model, d.tokenizer, {}, 1);
    EXPECT_EQ(decoder.rules().suppressed, all()["suppressed_tokens"].get<std::vector<int32_t>>());
}

TEST(Transcribe, AnUnknownLanguageIsAnError) {
    Demo& d = demo("f32");
    TranscribeOptions options;
    options.language = "xx";
    EXPECT_THROW(Transcriber(d.ctx, d.model, d.tokenizer, options), Error);
}

}  // namespace
}  // namespace hark::test
