// Recordings decoded together come out as they do alone, to the bit; a draft model changes nothing.
// Every fourth recording of tests/golden/whisper_sweep.py up to 35 s.
#include <algorithm>
#include <numeric>

#include "core/random.h"
#include "whisper/model/model.h"
#include "whisper/transcripts.h"

namespace hark::test {
namespace {

const std::vector<MelRecording>& mels() {
    static const std::vector<MelRecording> kMels = [] {
        std::vector<MelRecording> mels;
        const json all = golden("whisper_sweep.json");
        for (const json& entry : all["recordings"])
            if (entry["seconds"].get<double>() <= 35 && entry["seed"].get<int>() % 4 == 0)
                mels.push_back(mel_of(samples_of(entry)));
        return mels;
    }();
    return kMels;
}

// Of the first `count` recordings.
void expect_alone_equals_together(size_t count, TranscribeOptions options, const std::string& dtype,
                                  const std::vector<int64_t>& batches) {
    options.batch_size = 1;
    std::vector<Outcome> alone;
    for (size_t i = 0; i < count; ++i)
        alone.push_back(run_all({mels().at(i)}, options, dtype).at(0));

    std::vector<size_t> order(count);
    std::iota(order.begin(), order.end(), size_t{0});
    Random random(5);
    for (const int64_t batch : batches) {
        std::vector<MelRecording> shuffled;
        for (size_t i : order) shuffled.push_back(mels()[i]);
        options.batch_size = batch;
        const std::vector<Outcome> together = run_all(shuffled, options, dtype);
        ASSERT_EQ(together.size(), order.size());
        for (size_t i = 0; i < order.size(); ++i) {
            SCOPED_TRACE(concat("recording ", order[i], " in a batch of ", batch));
            expect_equal(alone[order[i]], together[i]);
        }
        for (size_t i = order.size(); i-- > 1;) std::swap(order[i], order[random.next() % (i + 1)]);
    }
}

// Languages are detected in one test: that takes as long as the rest.
TranscribeOptions english() {
    TranscribeOptions options;
    options.language = "en";
    return options;
}

TEST(Batch, GreedyWithFallbackEqualsAlone) {
    expect_alone_equals_together(mels().size(), {}, "auto", {4});
}

TEST(Batch, BeamsWithWordsEqualAlone) {
    TranscribeOptions options = english();
    options.beam_size = 3;
    options.words.timestamps = true;
    options.fallback_temperatures = {};
    expect_alone_equals_together(5, options, "f32", {3});
}

TEST(Batch, WithoutPreviousTextInInt8EqualsAlone) {
    TranscribeOptions options = english();
    options.previous_text = false;
    expect_alone_equals_together(6, options, "int8", {5});
}

// The draft is the same model in int8: most of its guesses are right, some are not.
TEST(Draft, TheTextIsTheModelsOwn) {
    TranscribeOptions options = english();
    options.fallback_temperatures = {};
    const std::vector<MelRecording> some(mels().begin(), mels().begin() + 4);
    const std::vector<Outcome> plain = run_all(some, options, "f32");
    for (const int64_t tokens : {3, 7}) {
        options.draft_tokens = tokens;
        const std::vector<Outcome> drafted = run_all(some, options, "f32", &demo("int8").model);
        ASSERT_EQ(plain.size(), drafted.size());
        for (size_t i = 0; i < plain.size(); ++i) {
            SCOPED_TRACE(concat("recording ", i, ", ", tokens, " tokens guessed"));
            expect_equal(plain[i], drafted[i]);
        }
    }
}

TEST(Draft, AnotherVocabularyIsAnError) {
    Demo& d = demo("f32");
    Config other = d.model.config;
    other.n_vocab -= 1;
    const Model draft = random_model(other, precision_of("f32"), 1);
    EXPECT_THROW(Transcriber(d.ctx, d.model, d.tokenizer, {}, {}, &draft), Error);
}

}  // namespace
}  // namespace hark::test
