// A decoder's step of one row through a mixture of experts: the operations of a layer of
// gpt-oss-20b, in bf16 with experts in mxfp4, and Qwen3-30B-A3B, in f16 with quantised experts.
#include "cuda_timing.h"

namespace hark {
namespace {

struct Shape {
    const char* name;
    int64_t c, inner, experts, per_row;
    Dtype on;
    std::vector<Dtype> stored;
};

// A matrix per expert: parts of one.
ExpertMatrices random_experts(Context& ctx, Dtype dtype, int64_t experts, int64_t n, int64_t k) {
    const Tensor stacked = random_tensor(ctx, dtype, {experts * n, k});
    ExpertMatrices made;
    for (int64_t e = 0; e < experts; ++e) made.each.push_back({stacked.slice(e * n, (e + 1) * n)});
    return made;
}

void time_shape(Context& ctx, const Shape& of, Dtype stored) {
    const Arena::Scope scope(ctx.arena);
    const auto time = [&](const char* what, double bytes, auto&& call) {
        const std::string name = concat("experts ", of.name, " ", what);
        if (is_chosen(name))
            print(name.c_str(), stored, concat("1x", of.c, "x", of.inner), microseconds(ctx, call),
                  0, bytes);
    };
    const ExpertMatrices gate = random_experts(ctx, stored, of.experts, of.inner, of.c),
                         up = random_experts(ctx, stored, of.experts, of.inner, of.c),
                         down = random_experts(ctx, stored, of.experts, of.c, of.inner);
    const Tensor x = random_tensor(ctx, of.on, {1, of.c}),
                 h = random_tensor(ctx, of.on, {of.per_row, of.inner}),
                 out = random_tensor(ctx, of.on, {of.per_row, of.c}),
                 router = random_tensor(ctx, of.on, {of.experts, of.c}),
                 logits = random_tensor(ctx, Dtype::f32, {1, of.experts}),
                 weights = random_tensor(ctx, Dtype::f32, {1, of.per_row});
    std::vector<Tensor> choices;  // other experts in every call
    for (int i = 0; i < kCallsInGraph; ++i) {
        std::vector<int32_t> choice;
        for (int64_t j = 0; j < of.per_row; ++j)
            choice.push_back(static_cast<int32_t>((i * of.per_row + j) % of.experts));
        choices.push_back(ids(ctx, {1, of.per_row}, choice));
    }
    const auto chosen_in = [&](int i) { return choices[static_cast<size_t>(i) % choices.size()]; };
    const double bytes = static_cast<double>(of.per_row) * bytes_of({down.each[0].values});
    time("router", 0, [&](int) { cuda_ops().linear(ctx, logits, x, {router}, {}, {}); });
    const Tensor routed = ids(ctx, {1, of.per_row}, std::vector<int32_t>(size_t(of.per_row)));
    time("route", 0, [&](int) { cuda_ops().route_experts(ctx, routed, weights, logits, {}); });
    time("gate_up", 2 * bytes,
         [&](int i) { cuda_ops().gated_experts(ctx, h, x, gate, up, chosen_in(i), {}); });
    time("down", bytes, [&](int i) { cuda_ops().expert_linear(ctx, out, h, down, chosen_in(i)); });
    time("add", 0, [&](int) { cuda_ops().add_experts(ctx, x, out, weights); });
}

}  // namespace

void time_experts(Context& ctx) {
    if (!is_chosen("experts")) return;
    ctx.batch_invariant = false;  // as a language model's steps
    for (const Shape& of :
         {Shape{"gpt-oss-20b", 2880, 2880, 32, 4, Dtype::bf16, {Dtype::mxfp4}},
          Shape{
              "qwen3-30b", 2048, 768, 128, 8, Dtype::f16, {Dtype::q4_k, Dtype::q6_k, Dtype::q8_0}}})
        for (const Dtype stored : of.stored) time_shape(ctx, of, stored);
    ctx.batch_invariant = true;
}

}  // namespace hark
