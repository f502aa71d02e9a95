// The demo model on a GPU: openai-whisper's transcripts in f32, the CPU's numbers in every dtype,
// and rows that do not depend on their neighbours. Skipped without a GPU.
#include <cmath>
#include <limits>
#include <numeric>

#include "core/half.h"
#include "eval/word_errors.h"
#include "kernels/runtime/transfer.h"
#include "support/on_gpu.h"
#include "support/ops.h"
#include "whisper/ggml_demo.h"
#include "whisper/transcribe/pass.h"
#include "whisper/transcribe/token_sampler.h"
#include "whisper/transcripts.h"

namespace hark::test {
namespace {

const json& all() {
    static const json kGolden = golden("whisper_transcribe.json");
    return kGolden;
}

// Encoder output and the logits after a short text, for the first window of a recording.
struct Numbers {
    std::vector<float> encoder_out, logits;
};

Numbers numbers_of(const std::string& name, const MelRecording& mel, CrossKvMode mode) {
    Demo& d = demo(name);
    const Config& c = d.model.config;
    std::vector<float> frames(static_cast<size_t>(kWindowFrames * c.n_mels));
    mel.window(0, std::min(mel.content_frames(), kWindowFrames), frames);
    const Tensor window(frames.data(), Dtype::f32, {1, kWindowFrames, c.n_mels});
    Caches caches(d.model, 1, 1, mode, d.ctx.arena.source());
    Numbers numbers;
    const auto values = [](const Tensor& t) {
        return std::vector<float>(t.as<float>(), t.as<float>() + t.size());
    };
    const Scratch scratch(d.ctx);
    encode_windows(d.ctx, d.model, caches, std::vector<int64_t>{0}, window);
    std::vector<int32_t> tokens = d.tokenizer.sot_sequence("en", Task::transcribe);
    const std::vector<int32_t> text = d.tokenizer.encode(" He lived with his mother");
    tokens.insert(tokens.end(), text.begin(), text.end());
    // In passes of at most kFewQueries rows, so that CrossKvMode::recompute materializes no keys.
    const auto count = std::ssize(tokens);
    for (int64_t begin = 0, end = 0; begin < count; begin = end) {
        end = std::min(begin + kFewQueries, count);
        Pass pass;
        pass.add(std::span(tokens).first(static_cast<size_t>(end)), begin, 0, 0, c.n_audio_ctx);
        for (int64_t i = 0; i < pass.rows(); ++i) pass.want(i);
        const std::vector<float> logits = values(pass.logits(d.ctx, d.model, caches));
        numbers.logits.insert(numbers.logits.end(), logits.begin(), logits.end());
    }
    Tensor encoder_out = to_host(d.ctx, d.model.encoder(d.ctx, to_device(d.ctx, window)));
    for (int64_t i = 0; i < encoder_out.size(); ++i) {
        if (encoder_out.dtype == Dtype::f16)
            numbers.encoder_out.push_back(to_float(encoder_out.as<f16_t>()[i]));
        else if (encoder_out.dtype == Dtype::bf16)
            numbers.encoder_out.push_back(to_float(encoder_out.as<bf16_t>()[i]));
        else
            numbers.encoder_out.push_back(encoder_out.as<float>()[i]);
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
    const Numbers cpu = numbers_of("f32", mel, CrossKvMode::store);
    const std::pair<const char*, double> cases[] = {{"cuda:f32", 1e-5},
                                                    {"cuda:f16", 5e-3},
                                                    {"cuda:bf16", 4e-2},
                                                    {"cuda:int8", 3e-2},
                                                    {"cuda:fp8", 0.2}};
    for (const auto& [name, tolerance] : cases)
        for (const CrossKvMode mode : {CrossKvMode::store, CrossKvMode::recompute}) {
            const Numbers gpu = numbers_of(name, mel, mode);
            const std::string what =
                concat(name, mode == CrossKvMode::recompute ? ", recompute" : "");
            ASSERT_EQ(cpu.encoder_out.size(), gpu.encoder_out.size());
            ASSERT_EQ(cpu.logits.size(), gpu.logits.size());
            const double encoder_out = distance(gpu.encoder_out, cpu.encoder_out);
            const double logits = distance(gpu.logits, cpu.logits);
            std::printf("%s: encoder %.2e, logits %.2e\n", what.c_str(), encoder_out, logits);
            EXPECT_LT(encoder_out, tolerance) << what;
            EXPECT_LT(logits, tolerance) << what;
        }
}

class Transcribed : public OnGpu, public testing::WithParamInterface<size_t> {};

TEST_P(Transcribed, EqualsReferenceInF32) {
    const json& entry = all()["recordings"][GetParam()];
    expect_same_recording(entry, run(entry, "cuda:f32", {0}));
}

INSTANTIATE_TEST_SUITE_P(OnGpu, Transcribed, testing::Range<size_t>(0, 40));

// The WAV files of samples/ at 16 kHz, by name.
std::map<std::string, MelRecording> sample_mels() {
    std::map<std::string, MelRecording> mels;
    for (const auto& file : std::filesystem::directory_iterator(samples_dir())) {
        const std::string name = file.path().filename();
        if (!name.ends_with(".wav") || name == "telephone.wav") continue;  // 8 kHz
        mels.emplace(name, mel_of(as_float(read_plain_wav(file.path()))));
    }
    return mels;
}

// In the type that a GPU computes in by itself all words are the CPU's; in others some may change.
TEST_F(OnGpu, SamplesTranscribeToTheCpusWords) {
    std::vector<MelRecording> mels;
    for (auto& [name, mel] : sample_mels()) mels.push_back(std::move(mel));
    ASSERT_GT(mels.size(), 10u);
    TranscribeOptions options;
    options.fallback_temperatures = {};
    const std::vector<Outcome> cpu = run_all(mels, options, "f32");
    for (const auto& [dtype, most] : {std::pair{"cuda:f16", 0.0}, std::pair{"cuda:bf16", 0.1},
                                      std::pair{"cuda:int8", 0.1}, std::pair{"cuda:fp8", 0.2}}) {
        const std::vector<Outcome> gpu = run_all(mels, options, dtype);
        ErrorCounts changed;
        for (size_t i = 0; i < mels.size(); ++i)
            changed += compare_words(cpu[i].text, gpu[i].text).counts;
        std::printf("%s: %d of %d words changed\n", dtype, int(changed.words.errors()),
                    int(changed.reference_words()));
        EXPECT_LE(changed.word_rate().value(), most) << dtype;
    }
}

TEST_F(OnGpu, QuantizedModelsTranscribeTheReferencesText) {
    const json& entry = all()["recordings"][0];
    const MelRecording mel = mel_of(samples_of(entry));
    const TemporaryDirectory folder;
    for (const Dtype dtype : {Dtype::q8_0, Dtype::q5_1, Dtype::q4_0}) {
        const std::filesystem::path path = folder.path() / name_of(dtype);
        write_text(path, ggml_demo(dtype).text());
        const std::unique_ptr<ModelFile> file = open_model(path);
        Context ctx = make_cuda_context(0);
        const Model model =
            read_model(*file, precision_of("auto", Device::cuda), ctx.arena.source());
        EXPECT_EQ(model.decoder.token_embedding.values.dtype, dtype);
        const Tokenizer tokenizer = file->tokenizer();
        for (const int64_t batch : {1, 40})  // CrossKvMode::store, and ::recompute
            for (const int64_t beams : {1, 3}) {
                TranscribeOptions options;
                options.fallback_temperatures = {};
                options.batch_size = batch;
                options.beam_size = beams;
                const std::string text = text_of(ctx, model, tokenizer, options, mel);
                SCOPED_TRACE(concat(name_of(dtype), ", batch ", batch, ", ", beams, " beams"));
                if (beams == 1)
                    EXPECT_EQ(text, entry["text"].get<std::string>());
                else
                    EXPECT_FALSE(text.empty());
            }
    }
}

// The same bits alone and in batches, whatever the neighbours: short recordings, whose prompts are
// short, next to longer ones, whose later windows have the previous text as their prompt.
TEST_F(OnGpu, RowsDoNotDependOnTheirNeighbours) {
    std::vector<MelRecording> mels;
    for (size_t i = 0; i < 24; i += i < 8 ? 1 : 4)
        mels.push_back(mel_of(samples_of(all()["recordings"][i])));
    const std::vector<MelRecording> reversed(mels.rbegin(), mels.rend());
    for (const std::string name :
         {"cuda:f16", "cuda:int8", "cuda:fp8", "cuda:f32", "beams", "penalty", "absorbed"}) {
        TranscribeOptions options;
        options.batch_size = name == "absorbed" ? 40 : 1;
        options.words.timestamps = name == "absorbed" || name == "beams";
        if (name == "beams") options.beam_size = 3;
        if (name == "penalty") options.repetition_penalty = 1.3, options.no_repeat_ngram = 3;
        const std::string model = name.starts_with("cuda") ? name : "cuda:f16";
        std::vector<Outcome> alone;
        for (const MelRecording& mel : mels) alone.push_back(run_all({mel}, options, model).at(0));
        if (name != "absorbed") options.batch_size = 7;
        const std::vector<Outcome> together = run_all(reversed, options, model);
        ASSERT_EQ(together.size(), alone.size());
        for (size_t i = 0; i < alone.size(); ++i) {
            SCOPED_TRACE(concat(name, " recording ", i));
            expect_equal(alone[i], together[alone.size() - 1 - i]);
        }
    }
}

// Old contents of GPU memory, here NaN in every dtype, are never used: neither the arena's scratch
// nor the caches are cleared.
TEST_F(OnGpu, WhatMemoryHeldBeforeDoesNotMatter) {
    std::vector<MelRecording> mels;
    for (size_t i = 0; i < 8; ++i) mels.push_back(mel_of(samples_of(all()["recordings"][i])));
    for (const int64_t batch : {4, 40}) {  // CrossKvMode::store, and ::recompute
        TranscribeOptions options;
        options.batch_size = batch;
        const std::vector<Outcome> before = run_all(mels, options, "cuda:f16");
        Context& ctx = demo("cuda:f16").ctx;
        const std::vector<uint8_t> ones(size_t{1} << 30, 0xff);
        const MemorySource& memory = ctx.arena.source();
        {
            const Scratch scratch(ctx);
            const Tensor all_ones = ctx.arena.tensor(Dtype::u8, {std::ssize(ones)});
            memory.write(all_ones.data, ones.data(), ones.size());
        }
        void* released = memory.allocate(ones.size());
        memory.write(released, ones.data(), ones.size());
        memory.release(released);
        const std::vector<Outcome> after = run_all(mels, options, "cuda:f16");
        ASSERT_EQ(before.size(), after.size());
        for (size_t i = 0; i < before.size(); ++i) {
            SCOPED_TRACE(concat("batch ", batch, ", recording ", i));
            expect_equal(before[i], after[i]);
        }
    }
}

// The draft is the same model in int8: most of its guesses are right, some are not.
TEST_F(OnGpu, ADraftModelChangesNothing) {
    std::vector<MelRecording> mels;
    for (size_t i = 0; i < 8; ++i) mels.push_back(mel_of(samples_of(all()["recordings"][i])));
    TranscribeOptions options;
    options.fallback_temperatures = {};
    const std::vector<Outcome> plain = run_all(mels, options, "cuda:f16");
    for (const int64_t tokens : {3, 7}) {
        options.draft_tokens = tokens;
        const std::vector<Outcome> drafted =
            run_all(mels, options, "cuda:f16", &demo("cuda:int8").model);
        ASSERT_EQ(plain.size(), drafted.size());
        for (size_t i = 0; i < plain.size(); ++i) {
            SCOPED_TRACE(concat("recording ", i, ", ", tokens, " tokens guessed"));
            expect_equal(plain[i], drafted[i]);
        }
    }
}

// The tokens that the kernel samples from each row of logits (n, n_vocab).
std::vector<Candidate> chosen_on_gpu(const LogitConstraints& constraints,
                                     std::vector<float>& logits, std::vector<SampleRequest>& rows,
                                     int64_t k) {
    Context ctx = make_cuda_context(0);
    const int64_t n = std::ssize(rows), n_vocab = std::ssize(logits) / n;
    const TokenSampler sampler(ctx, constraints, n_vocab);
    const auto bytes = [&](void* data, size_t size) {
        return to_device(ctx, Tensor(data, Dtype::u8, {static_cast<int64_t>(size)}));
    };
    const Tensor best = ctx.arena.tensor(Dtype::u8, {n * k * int64_t{sizeof(Candidate)}});
    const Tensor given = bytes(rows.data(), rows.size() * sizeof(SampleRequest));
    sampler(ctx, reinterpret_cast<Candidate*>(best.as<uint8_t>()), k,
            to_device(ctx, Tensor(logits.data(), Dtype::f32, {n, n_vocab})),
            reinterpret_cast<const SampleRequest*>(given.as<uint8_t>()));
    const Tensor host = to_host(ctx, best);
    const auto* first = reinterpret_cast<const Candidate*>(host.as<uint8_t>());
    return {first, first + n * k};
}

// Rows in all states of the constraints, with all tokens allowed, few, one or none.
TEST_F(OnGpu, ChoicesAreThoseOfTheHost) {
    constexpr int32_t kVocab = 3001, kText = 1500;
    constexpr int64_t kBest = 6;
    LogitConstraints constraints;
    constraints.eot = 1490;
    constraints.no_timestamps = 1499;
    constraints.timestamp_begin = kText;
    constraints.blank = {7, constraints.eot};
    for (int32_t id = 0; id < 1400; id += 3) constraints.suppressed.push_back(id);
    const std::vector<std::vector<int32_t>> sampled = {
        {}, {1600}, {1600, 5}, {1600, 5, 1700}, {1600, 5, 1700, 1700}, {1600, 5, 3000}, {5, 8}};
    for (const bool timestamps : {true, false})
        for (const double lift : {0.0, 6.0})        // of the timestamps
            for (const int left : {-1, 3, 1, 0}) {  // tokens that are not ruled out beforehand
                constraints.timestamps = timestamps;
                std::vector<float> logits = random_values(kVocab * std::ssize(sampled), 5, 3);
                std::vector<SampleRequest> rows;
                std::vector<std::vector<float>> filtered;
                for (size_t i = 0; i < sampled.size(); ++i) {
                    float* row = logits.data() + i * kVocab;
                    for (int32_t id = kText; id < kVocab; ++id) row[id] += static_cast<float>(lift);
                    for (int32_t id = 0; id < kVocab && left >= 0; ++id)
                        if (id != 1000 && (left < 2 || (id != 1001 && id != 2990)))
                            row[id] = -std::numeric_limits<float>::infinity();
                    if (left == 0) row[1000] = -std::numeric_limits<float>::infinity();
                    rows.push_back(sample_request(constraints, sampled[i], kVocab));
                    filtered.emplace_back(row, row + kVocab);
                    apply_constraints(constraints, sampled[i], filtered.back());
                }
                const std::vector<Candidate> best = chosen_on_gpu(constraints, logits, rows, kBest);
                for (size_t i = 0; i < rows.size(); ++i) {
                    SCOPED_TRACE(concat(timestamps, " ", lift, " ", left, " row ", i));
                    const std::vector<Candidate> wanted = best_candidates(filtered[i], kBest);
                    for (size_t k = 0; k < kBest; ++k) {
                        const Candidate& ours = best[i * kBest + k];
                        ASSERT_EQ(ours.token, k < wanted.size() ? wanted[k].token : -1) << k;
                        if (ours.token < 0) continue;
                        EXPECT_NEAR(ours.logprob, wanted[k].logprob, 1e-4);
                    }
                }
            }
}

// A draw takes each allowed token as often as the tempered distribution says, and no other.
TEST_F(OnGpu, DrawsFollowTheDistribution) {
    constexpr int32_t kVocab = 40;
    constexpr int kDraws = 4000;
    LogitConstraints constraints;
    constraints.timestamps = false;
    constraints.timestamp_begin = kVocab;
    constraints.suppressed = {3, 4};
    const std::vector<float> one = random_values(kVocab, 9);
    std::vector<float> logits;
    std::vector<SampleRequest> rows;
    Random random(1);
    for (int i = 0; i < kDraws; ++i) {
        logits.insert(logits.end(), one.begin(), one.end());
        rows.push_back(sample_request(constraints, std::vector<int32_t>{1}, kVocab));
        rows.back().temperature = 0.5;
        rows.back().u = random.uniform();
    }
    std::vector<double> weights, count(kVocab);
    for (int32_t id = 0; id < kVocab; ++id)
        weights.push_back(id == 3 || id == 4 ? 0 : std::exp(one[static_cast<size_t>(id)] / 0.5));
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (const Candidate& drawn : chosen_on_gpu(constraints, logits, rows, 1)) {
        ASSERT_GE(drawn.token, 0);
        count[static_cast<size_t>(drawn.token)] += 1;
    }
    for (size_t id = 0; id < kVocab; ++id) {
        const double p = weights[id] / total;
        EXPECT_NEAR(count[id], kDraws * p, 5 * std::sqrt(kDraws * p) + (p > 0 ? 1 : 0)) << id;
    }
}

}  // namespace
}  // namespace hark::test
