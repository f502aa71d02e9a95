#include <span>

#include "kernels/checks.h"
#include "kernels/linear/product.h"
#include "kernels/ops_table.h"
#include "kernels/runtime/parallel.h"

namespace hark {
namespace {

constexpr const char* kOp = "expert_linear";

void check_expert_linear(const Tensor& y, const Tensor& x, const ExpertMatrices& w,
                         const Tensor& chosen) {
    check_matrices(kOp, "experts", w.each);
    const Tensor& first = w.each.front().values;
    const int64_t n = first.dim(0), k = first.dim(1);
    require(x.rank == 2 && y.rank == 2 && is_float(x.dtype) && y.dtype == x.dtype && k > 0 &&
                x.dim(1) == k && y.dim(1) == n && x.dim(0) > 0 && y.dim(0) % x.dim(0) == 0,
            kOp, ": expected x (T, ", k, ") and y (P, ", n,
            ") of one type, f32, f16 or bf16, where T divides P, found ", x, " and ", y);
    require(chosen.dtype == Dtype::i32 && chosen && chosen.size() == y.dim(0), kOp, ": expected ",
            y.dim(0), " chosen experts in i32, found ", chosen);
    if (w.bias) check_tensor(kOp, "bias", w.bias, Dtype::f32, {std::ssize(w.each), n});
}

// The pairs of each expert: those of expert e are pairs[first[e]] to pairs[first[e + 1]].
struct Groups {
    int32_t *first, *pairs;
};

Groups group(Context& ctx, const int32_t* chosen, int64_t count, int64_t experts) {
    const Groups groups{ctx.arena.tensor(Dtype::i32, {experts + 2}).as<int32_t>(),
                        ctx.arena.tensor(Dtype::i32, {count}).as<int32_t>()};
    int32_t* next = groups.first + 1;  // of each expert: the place of its next pair
    std::fill(groups.first, groups.first + experts + 2, 0);
    for (int64_t p = 0; p < count; ++p) {
        require(chosen[p] >= 0 && chosen[p] < experts, kOp, ": expected an expert below ", experts,
                ", found ", chosen[p]);
        ++next[chosen[p] + 1];
    }
    for (int64_t e = 0; e < experts; ++e) next[e + 1] += next[e];
    for (int64_t p = 0; p < count; ++p) groups.pairs[next[chosen[p]]++] = static_cast<int32_t>(p);
    return groups;
}

// The rows of one expert.
void product(Context& ctx, float* y, const float* x, int64_t pairs_per_row, const Matrix& w,
             const Epilogue& then, std::span<const int32_t> pairs) {
    const Arena::Scope scope(ctx.arena);
    const int64_t n = w.values.dim(0), k = w.values.dim(1), rows = std::ssize(pairs);
    if (rows == 1)
        return cpu_product(ctx, y + pairs[0] * n, x + pairs[0] / pairs_per_row * k, 1, w, then);
    float* from = ctx.arena.tensor(Dtype::f32, {rows, k}).as<float>();
    float* to = ctx.arena.tensor(Dtype::f32, {rows, n}).as<float>();
    for (int64_t i = 0; i < rows; ++i)
        std::copy_n(x + pairs[static_cast<size_t>(i)] / pairs_per_row * k, k, from + i * k);
    cpu_product(ctx, to, from, rows, w, then);
    for (int64_t i = 0; i < rows; ++i)
        std::copy_n(to + i * n, n, y + pairs[static_cast<size_t>(i)] * n);
}

}  // namespace

void expert_linear(Context& ctx, Tensor y, Tensor x, const ExpertMatrices& w, Tensor chosen) {
    check_expert_linear(y, x, w, chosen);
    if (ctx.on_cuda()) return cuda_ops().expert_linear(ctx, y, x, w, chosen);
    const Arena::Scope scope(ctx.arena);
    const int64_t experts = std::ssize(w.each), n = y.dim(1);
    const Groups groups = group(ctx, chosen.as<int32_t>(), y.dim(0), experts);
    for (int64_t e = 0; e < experts; ++e) {
        const std::span<const int32_t> pairs(groups.pairs + groups.first[e],
                                             groups.pairs + groups.first[e + 1]);
        if (pairs.empty()) continue;
        const Tensor bias = w.bias ? w.bias.slice(e, e + 1).reshaped({n}) : Tensor();
        product(ctx, y.as<float>(), x.as<float>(), y.dim(0) / x.dim(0),
                w.each[static_cast<size_t>(e)], {.bias = bias}, pairs);
    }
}

void gated_experts(Context& ctx, Tensor y, Tensor x, const ExpertMatrices& gate,
                   const ExpertMatrices& up, Tensor chosen, const Gating& by) {
    check_expert_linear(y, x, gate, chosen);
    check_expert_linear(y, x, up, chosen);
    require(up.each.size() == gate.each.size(), "gated_experts: expected as many experts in up as ",
            gate.each.size(), ", found ", up.each.size());
    if (ctx.on_cuda()) return cuda_ops().gated_experts(ctx, y, x, gate, up, chosen, by);
    const Arena::Scope scope(ctx.arena);
    Tensor gates = ctx.arena.tensor(y.dtype, {y.dim(0), y.dim(1)}),
           ups = ctx.arena.tensor(y.dtype, {y.dim(0), y.dim(1)});
    expert_linear(ctx, gates, x, gate, chosen);
    expert_linear(ctx, ups, x, up, chosen);
    if (by.limit > 0) return clamped_swiglu(ctx, y, {gates}, {ups}, by.slope, by.limit);
    gated_activation(ctx, y, {gates}, {ups}, by.activation);
}

}  // namespace hark
