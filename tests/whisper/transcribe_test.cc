// The window loop on the demo model against openai-whisper's own transcribe().
// Golden: tests/golden/whisper_transcribe.py.
#include <gtest/gtest.h>

#include "whisper/transcripts.h"

namespace hark::test {
namespace {

using namespace hark::whisper;
using nlohmann::json;

const json& all() {
    static const json kGolden = golden("whisper_transcribe.json");
    return kGolden;
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
    const WindowDecoder decoder(d.ctx, d.model, d.tokenizer,
                                TranscribeOptions().decoding(d.tokenizer), 1);
    EXPECT_EQ(decoder.rules().suppressed, all()["suppressed_tokens"].get<std::vector<int32_t>>());
}

TEST(Transcribe, AnUnknownLanguageIsAnError) {
    Demo& d = demo("f32");
    TranscribeOptions options;
    options.language = "xx";
    EXPECT_THROW(Transcriber(d.ctx, d.model, d.tokenizer, options, {}), Error);
}

}  // namespace
}  // namespace hark::test
