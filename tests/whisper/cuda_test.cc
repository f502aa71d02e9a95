// The demo model on a GPU: openai-whisper's transcripts in f32, the CPU's numbers in every dtype,
// and rows that do not depend on their neighbours. Skipped where there is no GPU.
#include <cmath>

#include "core/half.h"
#include "kernels/transfer.h"
#include "whisper/transcripts.h"

namespace hark::test {
namespace {

class OnGpu : public testing::Test {
  protected:
    void SetUp() override {
        try {
            make_cuda_context(0);
        } catch (const Error& error) {
            GTEST_SKIP() << error.what();
        }
    }
};

const json& all() {
    static const json kGolden = golden("whisper_transcribe.json");
    return kGolden;
}

// Encoder output and the logits behind a short text, for the first window of a recording.
struct Numbers {
    std::vector<float> encoded, logits;
};

Numbers numbers_of(const std::string& name, const MelRecording& mel) {
    Demo& d = demo(name);
    const Config& c = d.model.config;
    std::vector<float> frames(static_cast<size_t>(kWindowFrames * c.n_mels));
    mel.window(0, std::min(mel.content_frames(), kWindowFrames), frames);
    const Tensor window(frames.data(), Dtype::f32, {1, kWindowFrames, c.n_mels});
    Caches caches(d.model, 1, 1, d.ctx.arena.source());
    Numbers numbers;
    const auto values = [](const Tensor& t) {
        return std::vector<float>(t.as<float>(), t.as<float>() + t.size());
    };
    const Scratch scratch(d.ctx);
    encode_windows(d.ctx, d.model, caches, std::vector<int64_t>{0}, window);
    std::vector<int32_t> tokens = d.tokenizer.sot_sequence("en", Task::transcribe);
    const std::vector<int32_t> text = d.tokenizer.encode(" He lived with his mother");
    tokens.insert(tokens.end(), text.begin(), text.end());
    Pass pass;
    pass.add(tokens, 0, 0, 0, c.n_audio_ctx);
    for (int64_t i = 0; i < pass.rows(); ++i) pass.want(i);
    numbers.logits = values(pass.logits(d.ctx, d.model, caches));
    Tensor encoded = to_host(d.ctx, d.model.encoder(d.ctx, to_device(d.ctx, window)));
    for (int64_t i = 0; i < encoded.size(); ++i) {
        if (encoded.dtype == Dtype::f16)
            numbers.encoded.push_back(to_float(encoded.as<f16_t>()[i]));
        else if (encoded.dtype == Dtype::bf16)
            numbers.encoded.push_back(to_float(encoded.as<bf16_t>()[i]));
        else
            numbers.encoded.push_back(encoded.as<float>()[i]);
    }
    return numbers;
}

// The difference's size relative to that of the values themselves.
double distance(const std::vector<float>& a, const std::vector<float>& b) {
    double difference = 0, size = 0;
    for (size_t i = 0; i < a.size(); ++i) {
        difference += std::pow(static_cast<double>(a[i]) - b[i], 2);
        size += std::pow(static_cast<double>(b[i]), 2);
    }
    return std::sqrt(difference / size);
}

TEST_F(OnGpu, NumbersAreNearTheCpus) {
    const MelRecording mel = mel_of(samples_of(all()["recordings"][0]));
    const Numbers cpu = numbers_of("f32", mel);
    const std::pair<const char*, double> cases[] = {
        {"cuda:f32", 1e-5}, {"cuda:f16", 5e-3}, {"cuda:bf16", 4e-2}, {"cuda:int8", 3e-2}};
    for (const auto& [name, tolerance] : cases) {
        const Numbers gpu = numbers_of(name, mel);
        ASSERT_EQ(cpu.encoded.size(), gpu.encoded.size());
        ASSERT_EQ(cpu.logits.size(), gpu.logits.size());
        const double encoded = distance(gpu.encoded, cpu.encoded);
        const double logits = distance(gpu.logits, cpu.logits);
        std::printf("%s: encoder %.2e, logits %.2e\n", name, encoded, logits);
        EXPECT_LT(encoded, tolerance) << name;
        EXPECT_LT(logits, tolerance) << name;
    }
}

class Transcribed : public OnGpu, public testing::WithParamInterface<size_t> {};

TEST_P(Transcribed, EqualsReferenceInF32) {
    const json& entry = all()["recordings"][GetParam()];
    expect_same_recording(entry, run(entry, "cuda:f32", {0}));
}

INSTANTIATE_TEST_SUITE_P(OnGpu, Transcribed, testing::Range<size_t>(0, 40));

// The same bits alone and in batches, whatever the neighbours.
TEST_F(OnGpu, RowsDoNotDependOnTheirNeighbours) {
    std::vector<MelRecording> mels;
    for (size_t i = 0; i < 12; ++i) mels.push_back(mel_of(samples_of(all()["recordings"][i])));
    for (const std::string name : {"cuda:f16", "cuda:int8", "cuda:f32"}) {
        TranscribeOptions options;
        options.batch = 1;
        std::vector<Outcome> alone;
        for (const MelRecording& mel : mels) alone.push_back(run_all({mel}, options, name).at(0));
        options.batch = 7;
        std::vector<MelRecording> reversed(mels.rbegin(), mels.rend());
        const std::vector<Outcome> together = run_all(reversed, options, name);
        ASSERT_EQ(together.size(), alone.size());
        for (size_t i = 0; i < alone.size(); ++i) {
            SCOPED_TRACE(concat(name, " recording ", i));
            expect_equal(alone[i], together[alone.size() - 1 - i]);
        }
    }
}

}  // namespace
}  // namespace hark::test
