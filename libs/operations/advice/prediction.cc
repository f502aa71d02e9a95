#include "operations/advice/prediction.h"

#include <algorithm>

#include "whisper/transcribe/decoding.h"
#include "whisper/transcribe/transcribe_options.h"

namespace hark::advice {
namespace {

constexpr double kWindowMs = 30'000;
constexpr int64_t kMostWindows = 1024, kMostTexts = 1024;    // on a GPU
constexpr int64_t kMostCpuWindows = 16, kMostCpuTexts = 64;  // more are no faster
constexpr int64_t kGpuWindows = 32, kCpuWindows = 8, kGpuTexts = 256, kCpuTexts = 16;
constexpr double kCpuCaches = 1 << 30;  // limit of a default batch's caches
// A GPU's context and libraries, and cuBLASLt's workspace.
constexpr double kGpuContext = 0.5e9 + 64e6;
constexpr double kWindowShare = 0.8, kCacheShare = 0.9;  // of what is free; the rest: activations

// Bytes of keys and values, of a window and of the rows that are decoded for it.
double window_bytes(const whisper::Config& c, const Weights& weights, bool absorbed) {
    const whisper::TranscribeOptions standard;
    const auto frames = static_cast<double>(c.n_audio_ctx * c.n_text_state);
    const double rows = static_cast<double>(standard.best_of);
    const double self = static_cast<double>(2 * c.n_text_layer * c.n_text_ctx * c.n_text_state);
    const double cross = absorbed ? frames : 2 * static_cast<double>(c.n_text_layer) * frames;
    return weights.cache_bytes * (cross + rows * self);
}

// Activations of the encoder's windows, of which a GPU has 16 at once.
double encoder_scratch(const whisper::Config& c, bool is_gpu) {
    return (is_gpu ? 16.0 * 2 : 4.0) * 10 * static_cast<double>(c.n_audio_ctx * c.n_audio_state);
}

void whisper_memory(Memory& memory, const Machine& machine, const whisper::Config& config,
                    const Weights& weights) {
    memory.fixed += encoder_scratch(config, machine.is_gpu);
    memory.item = window_bytes(config, weights, false);
    const double free = machine.memory_bytes - memory.weights - (machine.is_gpu ? kGpuContext : 0);
    const auto fit = [&](double bytes) {
        return std::max<int64_t>(0, static_cast<int64_t>(free * kWindowShare / bytes));
    };
    if (!machine.is_gpu) {
        memory.most = std::min(fit(memory.item), kMostCpuWindows);
        return;
    }
    memory.most = std::min(fit(memory.item), whisper::kMaxStoredKvWindows);
    if (!absorbs(machine, config, kMostWindows)) return;
    memory.many_items = window_bytes(config, weights, true);
    const int64_t many = std::min(fit(memory.many_items), kMostWindows);
    if (many > whisper::kMaxStoredKvWindows) memory.most = many;
}

void gpt_memory(Memory& memory, const Machine& machine, const gpt::DecoderConfig& config,
                const Weights& weights, const Load& load) {
    const auto tokens = static_cast<double>(load.prompt_tokens + load.max_tokens);
    memory.item =
        tokens * weights.cache_bytes * static_cast<double>(config.n_layer * config.cache_width());
    const double free = machine.memory_bytes - memory.weights - memory.fixed;
    memory.most = std::clamp<int64_t>(static_cast<int64_t>(free * kCacheShare / memory.item), 0,
                                      machine.is_gpu ? kMostTexts : kMostCpuTexts);
}

}  // namespace

Prediction predict(const Machine& machine, const Shape& shape, const Weights& weights,
                   int64_t batch, const Load& load) {
    Prediction prediction;
    prediction.type = weights.type;
    prediction.batch = batch;
    const double n = static_cast<double>(batch);
    const double tokens =
        static_cast<double>(shape.is_whisper() ? load.tokens_per_window : load.max_tokens);
    prediction.stages = shape.is_whisper()
                            ? whisper_stages(machine, shape.whisper(), weights, batch, load)
                            : gpt_stages(machine, shape.gpt(), weights, batch, load);
    for (const Stage& stage : prediction.stages) {
        std::vector<Term> terms = stage.terms;
        if (stage.name == "step")
            for (Term& term : terms) term.ms *= tokens / n;
        add_terms(prediction.terms, terms);
    }
    prediction.item_ms = total_ms(prediction.terms);
    prediction.speed = (shape.is_whisper() ? kWindowMs : 1000 * tokens) / prediction.item_ms;
    return prediction;
}

Memory memory_of(const Machine& machine, const Shape& shape, const Weights& weights,
                 const Load& load) {
    Memory memory;
    memory.type = weights.type;
    memory.weights = weights.total();
    memory.fixed = machine.is_gpu ? kGpuContext : 0;
    if (shape.is_whisper())
        whisper_memory(memory, machine, shape.whisper(), weights);
    else
        gpt_memory(memory, machine, shape.gpt(), weights, load);
    if (memory.weights + memory.fixed > machine.memory_bytes) memory.most = 0;
    return memory;
}

int64_t default_batch(const Machine& machine, const Shape& shape, const Memory& memory) {
    int64_t usual = machine.is_gpu ? kGpuTexts : kCpuTexts;
    if (shape.is_whisper())
        usual = machine.is_gpu ? kGpuWindows
                               : std::clamp<int64_t>(static_cast<int64_t>(kCpuCaches / memory.item),
                                                     1, kCpuWindows);
    return std::min(usual, memory.most);
}

std::vector<int64_t> batches(const Machine& machine, const Shape& shape, const Memory& memory) {
    std::vector<int64_t> all;
    for (int64_t batch = 1; batch <= memory.most; batch *= 2) all.push_back(batch);
    const int64_t usual = default_batch(machine, shape, memory);
    if (usual > 0 && std::find(all.begin(), all.end(), usual) == all.end()) all.push_back(usual);
    std::sort(all.begin(), all.end());
    return all;
}

}  // namespace hark::advice
