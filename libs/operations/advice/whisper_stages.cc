// Whisper's stages: the encoder, the prompt, steps of one token per window.
#include <algorithm>

#include "kernels/ops.h"
#include "operations/advice/prediction.h"
#include "whisper/model/work.h"
#include "whisper/transcribe/decoding.h"

namespace hark::advice {
namespace {

constexpr double kPrompt = 4;  // <|startoftranscript|>, language, task, <|notimestamps|>
constexpr double kEncodedAtOnce = 16;
constexpr double kWindowRowsPerPass = 16;  // on the CPU

// Kernels of a GPU, parallel regions of a CPU.
constexpr double kEncoderKernels = 9, kGpuKernels = 11, kCpuKernels = 8;

// Windows decode together: what a step has is read once for all of them.
struct WhisperStages {
    const Machine& machine;
    const whisper::Config& config;
    const Weights& weights;
    double windows;
    bool absorbed;

    double frames() const { return static_cast<double>(config.n_audio_ctx); }
    double width() const { return static_cast<double>(config.n_text_state); }
    double layers() const { return static_cast<double>(config.n_text_layer); }
    double heads() const { return static_cast<double>(config.n_text_head); }
    double vocabulary() const { return static_cast<double>(config.n_vocab); }
    // Few rows are computed in f32 on a CPU.
    Arithmetic few_rows() const { return machine.is_gpu ? Arithmetic::half : Arithmetic::f32; }

    // Of a window.
    std::vector<Term> encoder() const {
        const double at_once = machine.is_gpu ? std::min(windows, kEncodedAtOnce) : 1;
        const whisper::EncoderFlops flops = whisper::encoder_flops(config);
        const double kernels =
            machine.is_gpu ? kEncoderKernels * static_cast<double>(config.n_audio_layer) : 0;
        // A GPU turns weights of fewer bits to f16 for each call, except e4m3.
        const bool widens =
            machine.is_gpu && weights.kind != WeightKind::half && weights.kind != WeightKind::fp8;
        const double wide = widens ? 4 * weights.count(Group::encoder) : 0;
        std::vector<Work> work = {{.part = Part::encoder,
                                   .weights = product_kind(),
                                   .arithmetic = weights.arithmetic,
                                   .flops = at_once * flops.products,
                                   .bytes = weights.of(Group::encoder) + wide,
                                   .kernels = kernels},
                                  {.part = Part::encoder_attention,
                                   .arithmetic = few_rows(),
                                   .flops = at_once * flops.attention}};
        if (!absorbed) {
            work.push_back(work[0]);
            work.back().flops = at_once * whisper::cross_kv_flops(config);
            work.back().bytes = weights.of(Group::cross_kv);
            work.back().kernels = 0;
        }
        return terms_of(machine, work, 1 / at_once);
    }

    // Of one pass: `rows` of each of `at_once` windows, after `before` tokens.
    std::vector<Term> pass(double at_once, double rows, double before) const {
        const double row = 2 * width() * weights.cache_bytes;  // a key and a value
        std::vector<Work> work = {
            {.part = Part::step,
             .weights = weights.kind,
             .arithmetic = few_rows(),
             .flops = 2 * at_once * rows * weights.count(Group::layers) +
                      2 * at_once * weights.count(Group::head),
             .bytes = weights.of(Group::layers) + weights.of(Group::head),
             .kernels = layers() * (machine.is_gpu ? kGpuKernels : kCpuKernels) + 5},
            {.part = Part::self_attention,
             .arithmetic = few_rows(),
             .flops = at_once * rows * layers() * 4 * before * width(),
             .bytes = at_once * layers() * before * row},
            {.part = Part::choice, .bytes = at_once * vocabulary() * 4}};
        if (absorbed)
            work.push_back({.part = Part::cross_absorbed,
                            .flops = at_once * rows * layers() * 4 * heads() * frames() * width(),
                            .bytes = at_once * layers() * frames() * width() * 2 +
                                     weights.of(Group::cross_kv)});
        else
            work.push_back({.part = Part::cross_stored,
                            .arithmetic = few_rows(),
                            .flops = at_once * rows * layers() * 4 * frames() * width(),
                            .bytes = at_once * layers() * frames() * row});
        return terms_of(machine, work);
    }

  private:
    // That of products of many rows: `auto` keeps weights in f16 and computes in f32.
    WeightKind product_kind() const {
        return weights.kind == WeightKind::half && weights.arithmetic == Arithmetic::f32
                   ? WeightKind::f32
                   : weights.kind;
    }
};

std::vector<Term> scaled(std::vector<Term> terms, double times) {
    for (Term& term : terms) term.ms *= times;
    return terms;
}

}  // namespace

bool absorbs(const Machine& machine, const whisper::Config& config, int64_t windows) {
    return machine.is_gpu &&
           whisper::cross_kv_mode(windows, 1) == whisper::CrossKvMode::recompute &&
           can_absorb(Dtype::f16, Dtype::f16, config.n_text_state, config.n_text_head,
                      config.n_audio_ctx);
}

std::vector<Stage> whisper_stages(const Machine& machine, const whisper::Config& config,
                                  const Weights& weights, int64_t windows, const Load& load) {
    const WhisperStages stages{machine, config, weights, static_cast<double>(windows),
                               absorbs(machine, config, windows)};
    const double n = static_cast<double>(windows);
    const double tokens = static_cast<double>(load.tokens_per_window);
    std::vector<Stage> all = {{"encoder", 0, stages.encoder()}};
    // A CPU reads each prompt in a pass of its own, and has at most 16 rows per step.
    const double passes = machine.is_gpu ? 1 : std::max(1.0, n / kWindowRowsPerPass);
    all.push_back({"step", 0, scaled(stages.pass(n / passes, 1, kPrompt + tokens / 2), passes)});
    all.push_back({"prompt", 0,
                   machine.is_gpu ? scaled(stages.pass(n, kPrompt, kPrompt / 2), 1 / n)
                                  : stages.pass(1, kPrompt, kPrompt / 2)});
    for (Stage& stage : all) stage.ms = total_ms(stage.terms);
    return all;
}

}  // namespace hark::advice
