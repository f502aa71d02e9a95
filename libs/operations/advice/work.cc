#include "operations/advice/work.h"

#include <algorithm>

#include "core/error.h"

namespace hark::advice {
namespace {

constexpr bool cpu = false, gpu = true;
using enum Part;
using enum WeightKind;

constexpr Factor kFactors[] = {
#define HARK_FACTOR(DEVICE, PART, WEIGHTS, BYTES, ARITHMETIC, OVERLAP, KERNEL_US, PASS_US, SOURCE) \
    {DEVICE, PART, WEIGHTS, BYTES, ARITHMETIC, OVERLAP, KERNEL_US, PASS_US, SOURCE},
#include "operations/advice/factors.def"
#undef HARK_FACTOR
};

}  // namespace

std::span<const Factor> factors() { return kFactors; }

const Factor& find_factor(bool is_gpu, Part part, WeightKind weights) {
    const Factor* found = nullptr;
    for (const Factor& factor : kFactors) {
        if (factor.is_gpu != is_gpu || factor.part != part) continue;
        if (factor.weights == weights) return factor;
        if (factor.weights == any) found = &factor;
    }
    require(found != nullptr, "internal error: no factor of ", name_of(part));
    return *found;
}

const char* name_of(Part part) {
    switch (part) {
        case encoder:
            return "the encoder's products";
        case encoder_attention:
            return "the encoder's attention";
        case step:
        case gpt_step:
        case gpt_batch:
            return "weights";
        case cross_stored:
        case cross_absorbed:
            return "cross-attention";
        case choice:
        case gpt_choice:
            return "logits";
        case step_experts:
        case prompt_experts:
            return "experts";
        case self_attention:
            return "keys and values";
        case prompt:
            return "the prompt's products";
        case widen:
            return "widening weights";
        case prompt_attention:
        case prompt_latent:
            return "the prompt's attention";
    }
    fail("internal error: a part without a name");
}

std::vector<Term> terms_of(const Machine& machine, const Work& work) {
    const Factor& factor = find_factor(machine.is_gpu, work.part, work.weights);
    const double bytes = work.bytes / (machine.gb_per_s * factor.bytes) * 1e-6;
    const double flops = work.flops / (machine.tflops(work.arithmetic) * factor.arithmetic) * 1e-9;
    const double starts = (work.kernels * factor.kernel_us + work.passes * factor.pass_us) * 1e-3;
    std::vector<Term> terms;
    const auto add = [&](const std::string& bound, double ms) {
        if (ms > 0) terms.push_back({bound, ms});
    };
    if (!factor.overlap || bytes >= flops) add(concat("bytes of ", name_of(work.part)), bytes);
    if (!factor.overlap || bytes < flops) add(concat("arithmetic of ", name_of(work.part)), flops);
    add(machine.is_gpu ? "latency of kernels" : "starts of threads", starts);
    return terms;
}

std::vector<Term> terms_of(const Machine& machine, std::span<const Work> work, double times) {
    std::vector<Term> sum;
    for (const Work& one : work) {
        std::vector<Term> terms = terms_of(machine, one);
        for (Term& term : terms) term.ms *= times;
        add_terms(sum, terms);
    }
    return sum;
}

void add_terms(std::vector<Term>& sum, const std::vector<Term>& more) {
    for (const Term& term : more) {
        const auto same = std::find_if(sum.begin(), sum.end(),
                                       [&](const Term& one) { return one.bound == term.bound; });
        if (same == sum.end())
            sum.push_back(term);
        else
            same->ms += term.ms;
    }
    std::stable_sort(sum.begin(), sum.end(),
                     [](const Term& a, const Term& b) { return a.ms > b.ms; });
}

double total_ms(const std::vector<Term>& terms) {
    double sum = 0;
    for (const Term& term : terms) sum += term.ms;
    return sum;
}

}  // namespace hark::advice
