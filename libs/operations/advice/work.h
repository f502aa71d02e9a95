// The time of a piece of work on a machine: its bytes and its arithmetic over the machine's limits,
// each by the fraction that hark's kernels reach (factors.def).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "operations/advice/machine.h"

namespace hark::advice {

// What a factor is of.
enum class Part {
    encoder,  // Whisper's products of many rows, cross-attention's keys and values too
    encoder_attention,
    step,  // Whisper's products of few rows
    cross_stored,
    cross_absorbed,
    choice,     // of Whisper's next tokens, from their logits
    gpt_step,   // a language model's products of few rows
    gpt_batch,  // of 9 rows and more, on a GPU
    step_experts,
    self_attention,  // of few rows: of both kinds of models
    gpt_choice,
    prompt,  // a language model's products of many rows
    widen,   // quantised weights to 16 bits, for such products
    prompt_experts,
    prompt_attention,
    prompt_latent,  // latent attention
};

// How the weights that are read are stored.
enum class WeightKind { any, f32, half, int8, fp8, q8_0, q4, k };

struct Factor {
    bool is_gpu;
    Part part;
    WeightKind weights;
    double bytes, arithmetic;
    bool overlap;
    double kernel_us, pass_us;
    const char* source;
};
std::span<const Factor> factors();
// That of these weights, or else that of any.
const Factor& find_factor(bool is_gpu, Part part, WeightKind weights);

const char* name_of(Part part);  // "the encoder's products"

struct Work {
    Part part;
    WeightKind weights = WeightKind::any;
    Arithmetic arithmetic = Arithmetic::half;  // the type of the products
    double flops = 0, bytes = 0;
    double kernels = 0, passes = 0;
};

// A share of a time, and what bounds it: "bytes of cross-attention".
struct Term {
    std::string bound;
    double ms = 0;
};

// Of work that overlaps one term, of other work two, and one for kernels; none of 0 ms.
std::vector<Term> terms_of(const Machine& machine, const Work& work);

// Terms of several pieces of work, those with one bound added, the longest first.
std::vector<Term> terms_of(const Machine& machine, std::span<const Work> work, double times = 1);
void add_terms(std::vector<Term>& sum, const std::vector<Term>& more);
double total_ms(const std::vector<Term>& terms);

}  // namespace hark::advice
