#include "gpt/engine/gpu_decode_stream.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/random.h"
#include "gpt/decoder/model.h"
#include "gpt/sampling/sampler.h"
#include "kernels/batch_layout.h"
#include "kernels/runtime/cuda_library.h"
#include "kernels/runtime/gpu_span.h"
#include "kernels/runtime/transfer.h"

namespace hark::gpt {
namespace {

static_assert(sizeof(DecodeState) == 20 && sizeof(TokenRingEntry) == 24 &&
              sizeof(SamplingParams) == 32);

// Steps that may be in flight after the last token taken.
constexpr int64_t kMaxStepsInFlight = 16;
// Serial numbers skip 0, so the ring's places are not all used in turn.
constexpr int64_t kRingSize = 2 * kMaxStepsInFlight;
// After this time without a token the host waits for the GPU and looks once more.
constexpr std::chrono::seconds kTokenTimeout{1};

bool has_arrived(TokenRingEntry& entry, uint32_t serial, SampledToken& sampled) {
    const uint64_t token = std::atomic_ref(entry.token).load(std::memory_order_acquire);
    const uint64_t logprob = std::atomic_ref(entry.logprob).load(std::memory_order_acquire);
    if (token >> 32 != serial || logprob >> 32 != serial) return false;
    sampled.token = static_cast<int32_t>(static_cast<uint32_t>(token));
    sampled.logprob = std::bit_cast<float>(static_cast<uint32_t>(logprob));
    return true;
}

// A field of DecodeState as a tensor (1) of the GPU.
Tensor as_tensor(const int32_t& field) {
    return Tensor(const_cast<int32_t*>(&field), Dtype::i32, {1}, Device::cuda);
}

}  // namespace

uint32_t advance_serial(uint32_t serial, int64_t by) {
    for (; by > 0; --by) serial = serial == UINT32_MAX ? 1 : serial + 1;
    return serial;
}

SampledToken wait_for_choice(Context& ctx, TokenRingEntry& entry, uint32_t serial) {
    SampledToken sampled;
    const auto begin = std::chrono::steady_clock::now();
    while (!has_arrived(entry, serial, sampled)) {
        std::this_thread::yield();
        if (std::chrono::steady_clock::now() - begin < kTokenTimeout) continue;
        cuda_runtime().synchronize(ctx);  // throws the GPU's error
        require(has_arrived(entry, serial, sampled),
                "internal error: the sampling kernel returned no token");
    }
    return sampled;
}

SamplingParams sampling_params_of(const SamplerOptions& options) {
    SamplingParams params;
    params.temperature = static_cast<float>(options.temperature);
    params.penalty = static_cast<float>(options.repetition_penalty);
    params.top_k = static_cast<int32_t>(options.top_k);
    params.top_p = options.top_p;
    params.has_min_p = options.min_p > 0;
    if (params.has_min_p) params.log_min_p = std::log(options.min_p);
    return params;
}

GpuDecodeStream::GpuDecodeStream(Context& ctx, const Model& model, int64_t vocabulary,
                                 const SamplerOptions& options, int64_t context)
    : ctx_(ctx),
      model_(model),
      sequence_(ctx, model, {.context = context}),
      memory_(ctx.arena.source()),
      host_memory_(ctx.host_arena.source()),
      graphs_(ctx) {
    const auto bytes = [](Arena& arena, int64_t n) {
        return arena.tensor(Dtype::u8, {n}).as<uint8_t>();
    };
    call_.params = sampling_params_of(options);
    call_.n = static_cast<int32_t>(vocabulary);
    call_.ring_size = kRingSize;
    call_.state = reinterpret_cast<DecodeState*>(bytes(memory_, sizeof(DecodeState)));
    call_.scratch = bytes(memory_, sample_scratch(vocabulary));
    call_.ring = reinterpret_cast<TokenRingEntry*>(
        bytes(host_memory_, kRingSize * int64_t{sizeof(TokenRingEntry)}));
    std::fill_n(call_.ring, kRingSize, TokenRingEntry{});
    if (options.temperature > 0)
        call_.uniform = reinterpret_cast<const double*>(
            bytes(memory_, (sequence_.context() + 1) * int64_t{sizeof(double)}));
    if (options.repetition_penalty != 1) call_.seen = bytes(memory_, vocabulary);
    const int32_t places[] = {0, 1, 0};  // start (2), slot (1)
    const Tensor rows = memory_.tensor(Dtype::i32, {3});
    memory_.source().write(rows.data, places, sizeof places);
    start_ = rows.slice(0, 2);
    slot_ = rows.slice(2, 3);
}

GpuDecodeStream::~GpuDecodeStream() { wait_for(ctx_); }

SamplerArgs GpuDecodeStream::call(const Tensor& logits) const {
    SamplerArgs call = call_;
    call.logits = logits.as<float>();
    return call;
}

void GpuDecodeStream::prepare(std::span<const int32_t> prompt, uint64_t seed, int64_t max_tokens) {
    // After the tokens that were launched but never taken.
    serial_ = advance_serial(serial_, launched_ - taken_);
    prompt_ = std::ssize(prompt);
    max_tokens_ = max_tokens;
    launched_ = taken_ = 0;
    require(max_tokens > 0 && prompt_ + max_tokens - 1 <= sequence_.context(),
            "the context has room for ", sequence_.context(), " tokens, found ", prompt_, " and ",
            max_tokens, " more");
    // The stream runs these copies after the steps still in flight.
    DecodeState state;
    state.position = static_cast<int32_t>(prompt_ - 1);
    state.length = static_cast<int32_t>(prompt_);
    state.serial = serial_;
    cuda_runtime().upload(ctx_, call_.state, &state, sizeof state);
    if (call_.uniform) {
        std::vector<double> uniform;
        for (int64_t i = 0; i < max_tokens; ++i)
            uniform.push_back(uniform_at(seed, static_cast<uint64_t>(prompt_ + i)));
        cuda_runtime().upload(ctx_, const_cast<double*>(call_.uniform), uniform.data(),
                              uniform.size() * sizeof(double));
    }
    if (call_.seen) {
        std::vector<uint8_t> seen(static_cast<size_t>(call_.n));
        for (const int32_t id : prompt)
            if (id >= 0 && id < call_.n) seen[static_cast<size_t>(id)] = 1;
        cuda_runtime().upload(ctx_, call_.seen, seen.data(), seen.size());
    }
}

int64_t GpuDecodeStream::begin(std::span<const int32_t> prompt, uint64_t seed, int64_t max_tokens,
                               bool reuse) {
    prepare(prompt, seed, max_tokens);
    const Scratch scratch(ctx_);
    if (!reuse) sequence_.clear();
    const int64_t kept = sequence_.keep_beginning_of(prompt);
    const std::span fresh = prompt.subspan(static_cast<size_t>(kept));
    const GpuSpan span(ctx_, "gpu.prefill");
    cuda_sampler().sample(ctx_, call(sequence_.forward(ctx_, fresh)));
    launched_ = 1;
    return kept;
}

void GpuDecodeStream::go_on(std::span<const float> logits, uint64_t seed, int64_t max_tokens) {
    prepare(sequence_.tokens(), seed, max_tokens);
    const Scratch scratch(ctx_);
    const Tensor row(const_cast<float*>(logits.data()), Dtype::f32, {1, std::ssize(logits)});
    cuda_sampler().sample(ctx_, call(to_device(ctx_, row)));
    launched_ = 1;
}

// Kernels, not uploads, write a step's inputs. Its first kernel, the embedding, waits for all
// earlier work, so its later kernels may read the inputs before they wait.
void GpuDecodeStream::step(Context& ctx, int64_t max_keys) {
    const DecodeState& state = *call_.state;
    // A GPU's sequence is block 0 of each group.
    const BatchLayout layout{start_, slot_, as_tensor(state.length), 1, max_keys, true};
    const std::vector<BatchLayout> rows(sequence_.cache().groups(), layout);
    const Tensor logits = model_(ctx, as_tensor(state.token), as_tensor(state.position), rows,
                                 start_.slice(0, 1), sequence_.cache());
    cuda_sampler().sample(ctx, call(logits));
}

void GpuDecodeStream::launch() {
    const int64_t max_keys = graph_bucket(prompt_ + launched_, sequence_.context());
    const GraphKey key{1, 1, max_keys};
    graphs_.io(key, [] { return Io{}; });
    const GpuSpan span(ctx_, "gpu.step");
    graphs_.launch(key, [&](Context& ctx, Io&) { step(ctx, max_keys); });
    ++launched_;
}

SampledToken GpuDecodeStream::next() {
    require(taken_ < max_tokens_, "expected to choose ", max_tokens_, " tokens at most");
    const Stage stage(ctx_, "gpt", slot_);
    while (launched_ < max_tokens_ && launched_ - taken_ < kMaxStepsInFlight) launch();
    const SampledToken sampled = wait_for_choice(
        ctx_, call_.ring[serial_ % static_cast<uint32_t>(call_.ring_size)], serial_);
    require(sampled.token >= 0, "all logits of the model are NaN");
    serial_ = advance_serial(serial_);
    ++taken_;
    return sampled;
}

}  // namespace hark::gpt
