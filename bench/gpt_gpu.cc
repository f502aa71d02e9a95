// A language model on a GPU: steps as gpt-generate makes them, the choice of a token by
// itself, and the card's bandwidth.
#include <cstdio>
#include <cstring>

#include "core/error.h"
#include "gpt/decoder/model.h"
#include "gpt/engine/gpu_decode_stream.h"
#include "gpt/sampling/sampler.h"
#include "gpt_work.h"
#include "harness.h"
#include "kernels/runtime/backend.h"
#include "kernels/runtime/cuda_library.h"
#include "operations/speed/gpu_speed.h"

namespace hark::bench {

using namespace hark::gpt;

namespace {

// Microseconds of one choice among random logits, replayed with others after it.
double choice_us(Context& ctx, const SamplerOptions& options, int64_t n) {
    constexpr int kCalls = 20, kRuns = 5;
    Arena device(ctx.arena.source()), pinned(ctx.host_arena.source());
    const std::vector<float> values = normal_values(n, 5);
    const Tensor logits = device.tensor(Dtype::f32, {n});
    device.source().write(logits.data, values.data(), logits.bytes());
    const Tensor uniform = device.tensor(Dtype::u8, {kCalls * int64_t{sizeof(double)}});
    std::vector<double> us;
    for (int i = 0; i < kCalls; ++i) us.push_back((i + 0.5) / kCalls);
    device.source().write(uniform.data, us.data(), uniform.bytes());
    const Tensor begin = pinned.tensor(Dtype::u8, {sizeof(DecodeState)});
    const DecodeState state;
    std::memcpy(begin.data, &state, sizeof state);
    SamplerArgs call;
    call.logits = logits.as<float>();
    call.uniform = static_cast<const double*>(uniform.data);
    call.state = static_cast<DecodeState*>(device.tensor(Dtype::u8, {sizeof(DecodeState)}).data);
    call.ring_size = kCalls;
    call.ring = static_cast<TokenRingEntry*>(
        pinned.tensor(Dtype::u8, {kCalls * int64_t{sizeof(TokenRingEntry)}}).data);
    call.scratch = device.tensor(Dtype::u8, {sample_scratch(n)}).data;
    call.n = static_cast<int32_t>(n);
    call.params = sampling_params_of(options);
    GraphScratch scratch(ctx);
    RecordedGraph captured(scratch);
    const auto replay = [&] {
        captured([&](Context& step) {
            cuda_runtime().upload(step, call.state, begin.data, sizeof(DecodeState));
            for (int i = 0; i < kCalls; ++i) cuda_sampler().sample(step, call);
        });
    };
    replay();
    return gpu_ms(ctx, kRuns, replay) * 1000 / kCalls;
}

}  // namespace

void gpt_on_gpu(const GptWork& work, Context& ctx, Communicator& ranks) {
    const Model model = bench_model(work, ctx, ranks);
    const std::string type = type_label(work);
    const double copy = gpu_copy_speed(ctx), bytes = gpt_token_bytes(model, work);
    const int64_t vocabulary = model.config.n_vocab;
    std::printf("what\tdtype\tms\ttokens/s\tGB/s\tlimit\tfraction\n");
    for (const NamedSampler& sampler : gpt_samplers()) {
        const auto stream =
            make_decode_stream(ctx, model, vocabulary, sampler.options, work.prompt + work.tokens);
        const GptTimes times = time_gpt(*stream, work, vocabulary);
        const double ms = times.token_ms, rate = bytes / ms * 1e-6;
        std::printf("%s prompt of %lld, %s\t%s\t%.4f\t%.0f\t\t\t\n", work.model.c_str(),
                    static_cast<long long>(work.prompt), sampler.name, type.c_str(),
                    times.prompt_ms, static_cast<double>(work.prompt) * 1000 / times.prompt_ms);
        std::printf("%s step, %s\t%s\t%.4f\t%.0f\t%.0f\t%.0f\t%.2f\n", work.model.c_str(),
                    sampler.name, type.c_str(), ms, 1000 / ms, rate, copy, rate / copy);
        std::fflush(stdout);
    }
    std::vector<NamedSampler> samplers = gpt_samplers();
    samplers.push_back({"top-p alone", {.temperature = 1, .top_k = 0, .top_p = 0.9}});
    for (const NamedSampler& sampler : samplers)
        std::printf("choice of %lld, %s\tf32\t%.4f\t\t\t\t\n", static_cast<long long>(vocabulary),
                    sampler.name, choice_us(ctx, sampler.options, vocabulary) * 1e-3);
}

}  // namespace hark::bench
