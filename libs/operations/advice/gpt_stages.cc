// A language model's stages: the prompt, and steps of one token per text.
#include <algorithm>
#include <cmath>

#include "operations/advice/prediction.h"

namespace hark::advice {
namespace {

constexpr double kTextRowsPerPass = 16;  // of next tokens, on the CPU
constexpr double kPromptRows = 1024;     // of a pass of several prompts, on a GPU
constexpr double kLongPromptRows = 2048;  // of one
constexpr double kBatchRows = 9;         // from which on a step has other kernels there
constexpr double kCpuRegions = 8;        // parallel ones, of a layer

// Kernels of a layer in a step: products and attention; of experts, the router and what sorts rows;
// of latent attention, its own products. And those of a step: its last norm, the head, the choice.
constexpr double kLayerKernels = 5, kExpertKernels = 5, kLatentKernels = 16, kStepKernels = 5;

struct GptStages {
    const Machine& machine;
    const gpt::DecoderConfig& config;
    const Weights& weights;

    double layers() const { return static_cast<double>(config.n_layer); }
    double vocabulary() const { return static_cast<double>(config.n_vocab); }
    double experts() const { return static_cast<double>(config.experts.count); }
    double chosen() const { return static_cast<double>(config.experts.per_token); }
    Arithmetic few_rows() const { return machine.is_gpu ? Arithmetic::half : Arithmetic::f32; }

    double kernels() const {
        if (!machine.is_gpu) return kCpuRegions * layers();
        double of_experts = 0;
        for (const gpt::LayerConfig& layer : config.layers)
            of_experts += layer.has_experts ? kExpertKernels : 0;
        return layers() * (kLayerKernels + (config.is_latent() ? kLatentKernels : 0)) + of_experts +
               kStepKernels;
    }
    // Keys that all layers have of a text of `tokens`.
    double keys(double tokens) const {
        double sum = 0;
        for (const gpt::LayerConfig& layer : config.layers)
            sum += layer.window > 0 ? std::min(tokens, static_cast<double>(layer.window)) : tokens;
        return sum;
    }
    // Of scores and weighted values, for a query and a key.
    double key_flops() const { return 4 * static_cast<double>(config.n_head * config.head_dim); }
    // Which share of a layer's experts some rows choose, if each chooses by chance.
    double share_of_experts(double rows) const {
        return experts() > 0 ? 1 - std::pow(1 - chosen() / experts(), rows) : 0;
    }
    double expert_flops(double rows) const {
        return experts() > 0 ? 2 * rows * weights.count(Group::experts) * chosen() / experts() : 0;
    }

    // Of one pass: the next token of `texts`, of `keys` tokens each.
    std::vector<Term> step(double texts, double tokens) const {
        const double key = static_cast<double>(config.cache_width()) * weights.cache_bytes;
        const bool is_batch = machine.is_gpu && texts >= kBatchRows;
        return terms_of(
            machine,
            std::vector<Work>{
                {.part = is_batch ? Part::gpt_batch : Part::gpt_step,
                 .weights = weights.kind,
                 .arithmetic = is_batch ? weights.arithmetic : few_rows(),
                 .flops = 2 * texts * (weights.count(Group::layers) + weights.count(Group::head)),
                 .bytes = weights.of(Group::layers) + weights.of(Group::head),
                 .kernels = kernels()},
                {.part = Part::step_experts,
                 .weights = weights.expert_kind,
                 .arithmetic = few_rows(),
                 .flops = expert_flops(texts),
                 .bytes = weights.of(Group::experts) * share_of_experts(texts)},
                {.part = Part::self_attention,
                 .arithmetic = few_rows(),
                 .flops = texts * keys(tokens) * key_flops(),
                 .bytes = texts * keys(tokens) * key},
                {.part = Part::gpt_choice, .bytes = texts * vocabulary() * 4}});
    }

    // Whether quantised weights are turned to 16 bits for a pass of that many rows.
    bool widens_for(double rows) const {
        const bool is_quantized =
            weights.kind != WeightKind::half && weights.kind != WeightKind::fp8;
        return machine.is_gpu && is_quantized && rows > (machine.is_hopper ? 256 : 128);
    }

    // Of one pass: prompts of `tokens` each, `rows` in all.
    std::vector<Term> prompts(double rows, double tokens) const {
        const double texts = rows / tokens;
        const bool widens = widens_for(rows);
        const double passes = machine.is_gpu ? std::max(1.0, std::ceil(rows / kLongPromptRows)) : 1;
        const double matrices = weights.of(Group::layers) + weights.of(Group::head);
        const double counted = weights.count(Group::layers) + weights.count(Group::head);
        std::vector<Work> work = {
            {.part = Part::prompt,
             .weights = widens ? WeightKind::half : product_kind(),
             .arithmetic = weights.arithmetic,
             .flops =
                 2 * rows * weights.count(Group::layers) + 2 * texts * weights.count(Group::head),
             .bytes = widens ? 2 * counted : matrices,
             .kernels = kernels() * passes,
             .passes = passes},
            {.part = Part::prompt_experts,
             .weights = machine.is_gpu ? weights.expert_kind : WeightKind::any,
             .arithmetic = few_rows(),
             .flops = expert_flops(rows),
             .bytes = weights.of(Group::experts) * share_of_experts(rows)},
            // Half of all pairs of a query and a key.
            {.part = config.is_latent() ? Part::prompt_latent : Part::prompt_attention,
             .arithmetic = few_rows(),
             .flops = rows * keys(tokens) / 2 * key_flops()}};
        if (widens)
            work.push_back({.part = Part::widen,
                            .bytes = weights.of(Group::layers) + 2 * weights.count(Group::layers)});
        return terms_of(machine, work);
    }

  private:
    WeightKind product_kind() const {
        return !machine.is_gpu && weights.kind == WeightKind::half &&
                       weights.arithmetic == Arithmetic::f32
                   ? WeightKind::f32
                   : weights.kind;
    }
};

}  // namespace

std::vector<Stage> gpt_stages(const Machine& machine, const gpt::DecoderConfig& config,
                              const Weights& weights, int64_t texts, const Load& load) {
    const GptStages stages{machine, config, weights};
    const double n = static_cast<double>(texts);
    const double prompt = static_cast<double>(load.prompt_tokens);
    const double tokens = static_cast<double>(load.max_tokens);
    // A pass has several prompts on a GPU.
    const double together =
        machine.is_gpu ? std::max(1.0, std::min(n, std::floor(kPromptRows / prompt))) : 1;
    std::vector<Term> one = stages.prompts(together * prompt, prompt);
    for (Term& term : one) term.ms /= together;
    const double passes = machine.is_gpu ? 1 : std::max(1.0, n / kTextRowsPerPass);
    std::vector<Term> step = stages.step(n / passes, prompt + tokens / 2);
    for (Term& term : step) term.ms *= passes;
    std::vector<Stage> all = {{"prompt", 0, std::move(one)}, {"step", 0, std::move(step)}};
    for (Stage& stage : all) stage.ms = total_ms(stage.terms);
    return all;
}

}  // namespace hark::advice
