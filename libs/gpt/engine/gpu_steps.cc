#include "gpt/engine/gpu_steps.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>
#include <vector>

#include "core/error.h"
#include "kernels/batch_layout.h"
#include "kernels/runtime/cuda_library.h"
#include "kernels/runtime/transfer.h"

namespace hark::gpt {
namespace {

static_assert(sizeof(StepState) == 20 && sizeof(RingEntry) == 24 && sizeof(Filters) == 32);

// So many steps may be on their way beyond the token that was taken last.
constexpr int64_t kAhead = 16;
constexpr int64_t kRing = 2 * kAhead;  // serial numbers leave 0 out: not all places are in turn
// A token that is not there after so long is looked for once all steps have ended.
constexpr std::chrono::seconds kPatience{1};

uint32_t later(uint32_t serial, int64_t by) {
    for (; by > 0; --by) serial = serial == UINT32_MAX ? 1 : serial + 1;
    return serial;
}

// The places of StepState as the model's operations take them.
Tensor one_of(const int32_t& place) {
    return Tensor(const_cast<int32_t*>(&place), Dtype::i32, {1}, Device::cuda);
}

}  // namespace

Filters filters_of(const SamplerOptions& options) {
    Filters filters;
    filters.temperature = static_cast<float>(options.temperature);
    filters.penalty = static_cast<float>(options.repetition_penalty);
    filters.top_k = static_cast<int32_t>(options.top_k);
    filters.top_p = options.top_p;
    filters.has_min_p = options.min_p > 0;
    if (filters.has_min_p) filters.log_min_p = std::log(options.min_p);
    return filters;
}

const CudaSampler& cuda_sampler() {
    static const auto* table =
        reinterpret_cast<const CudaSampler* (*)()>(cuda_symbol("hark_cuda_gpt_sampler"))();
    return *table;
}

GpuSteps::GpuSteps(Context& ctx, const Model& model, int64_t vocabulary,
                   const SamplerOptions& options)
    : ctx_(ctx),
      model_(model),
      session_(ctx, model),
      memory_(ctx.arena.source()),
      host_memory_(ctx.host_arena.source()),
      scratch_(ctx) {
    const auto bytes = [](Arena& arena, int64_t n) {
        return arena.tensor(Dtype::u8, {n}).as<uint8_t>();
    };
    call_.filters = filters_of(options);
    call_.n = static_cast<int32_t>(vocabulary);
    call_.ring_size = kRing;
    call_.state = reinterpret_cast<StepState*>(bytes(memory_, sizeof(StepState)));
    call_.scratch = bytes(memory_, sample_scratch(vocabulary));
    call_.ring =
        reinterpret_cast<RingEntry*>(bytes(host_memory_, kRing * int64_t{sizeof(RingEntry)}));
    std::fill_n(call_.ring, kRing, RingEntry{});
    if (options.temperature > 0)
        call_.uniform = reinterpret_cast<const double*>(
            bytes(memory_, (model.config.n_positions + 1) * int64_t{sizeof(double)}));
    if (options.repetition_penalty != 1) call_.seen = bytes(memory_, vocabulary);
    const int32_t places[] = {0, 1, 0};  // start (2), slot (1)
    const Tensor rows = memory_.tensor(Dtype::i32, {3});
    memory_.source().write(rows.data, places, sizeof places);
    start_ = rows.slice(0, 2);
    slot_ = rows.slice(2, 3);
}

GpuSteps::~GpuSteps() { wait_for(ctx_); }

SampleCall GpuSteps::call(const Tensor& logits) const {
    SampleCall call = call_;
    call.logits = logits.as<float>();
    return call;
}

void GpuSteps::begin(std::span<const int32_t> prompt, const Random& random, int64_t most) {
    serial_ = later(serial_, launched_ - taken_);  // behind those that nobody has asked for
    prompt_ = std::ssize(prompt);
    most_ = most;
    launched_ = taken_ = 0;
    require(most > 0 && prompt_ + most - 1 <= model_.config.n_positions,
            "the model's context has room for ", model_.config.n_positions, " tokens, found ",
            prompt_, " and ", most, " more");
    // Copies run behind the steps still on their way.
    StepState state;
    state.position = static_cast<int32_t>(prompt_ - 1);
    state.length = static_cast<int32_t>(prompt_);
    state.serial = serial_;
    cuda_runtime().upload(ctx_, call_.state, &state, sizeof state);
    if (call_.uniform) {
        Random draws = random;
        std::vector<double> uniform(static_cast<size_t>(most));
        for (double& u : uniform) u = draws.uniform();
        cuda_runtime().upload(ctx_, const_cast<double*>(call_.uniform), uniform.data(),
                              uniform.size() * sizeof(double));
    }
    if (call_.seen) {
        std::vector<uint8_t> seen(static_cast<size_t>(call_.n));
        for (const int32_t id : prompt)
            if (id >= 0 && id < call_.n) seen[static_cast<size_t>(id)] = 1;
        cuda_runtime().upload(ctx_, call_.seen, seen.data(), seen.size());
    }
    const Scratch scratch(ctx_);
    session_.clear();
    cuda_sampler().sample(ctx_, call(session_.append(ctx_, prompt)));
    launched_ = 1;
}

// What a step reads is written by kernels, not by uploads: the embedding, the first of them, waits
// for the end of all that is in front, so the ones behind it may read before they wait.
void GpuSteps::step(Context& ctx, int64_t most_keys) {
    const StepState& state = *call_.state;
    const BatchLayout rows{start_, slot_, one_of(state.length), 1, most_keys, true};
    const Tensor logits = model_(ctx, one_of(state.token), one_of(state.position), rows,
                                 start_.slice(0, 1), session_.cache());
    cuda_sampler().sample(ctx, call(logits));
}

void GpuSteps::launch() {
    const int64_t most_keys = graph_bucket(prompt_ + launched_, model_.config.n_positions);
    RecordedGraph& captured = captured_.try_emplace(most_keys, scratch_).first->second;
    captured([&](Context& ctx) { step(ctx, most_keys); });
    ++launched_;
}

bool GpuSteps::arrived(uint32_t serial, Choice& choice) const {
    RingEntry& entry = call_.ring[serial % static_cast<uint32_t>(call_.ring_size)];
    const uint64_t token = std::atomic_ref(entry.token).load(std::memory_order_acquire);
    const uint64_t logprob = std::atomic_ref(entry.logprob).load(std::memory_order_acquire);
    if (token >> 32 != serial || logprob >> 32 != serial) return false;
    choice.token = static_cast<int32_t>(static_cast<uint32_t>(token));
    choice.logprob = std::bit_cast<float>(static_cast<uint32_t>(logprob));
    return true;
}

Choice GpuSteps::next() {
    require(taken_ < most_, "expected to choose ", most_, " tokens at most");
    const Stage stage(ctx_, "gpt", slot_);
    while (launched_ < most_ && launched_ - taken_ < kAhead) launch();
    Choice choice;
    const auto begin = std::chrono::steady_clock::now();
    while (!arrived(serial_, choice)) {
        std::this_thread::yield();
        if (std::chrono::steady_clock::now() - begin < kPatience) continue;
        cuda_runtime().synchronize(ctx_);  // throws what has failed there
        require(arrived(serial_, choice), "the GPU has chosen no token");
    }
    require(choice.token >= 0, "all logits of the model are NaN");
    serial_ = later(serial_, 1);
    ++taken_;
    return choice;
}

}  // namespace hark::gpt
