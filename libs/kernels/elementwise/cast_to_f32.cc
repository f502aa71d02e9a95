#include "kernels/elementwise/cast_to_f32.h"

#include <algorithm>

#include "core/error.h"
#include "kernels/cpu/cpu.h"
#include "kernels/runtime/parallel.h"

namespace hark {
namespace {

// Calls body(first, count) for pieces of n values.
template <class Body>
void each_piece(const Context& ctx, int64_t n, const Body& body) {
    constexpr int64_t kAtOnce = 1 << 14;
    parallel_for(ctx.threads, (n + kAtOnce - 1) / kAtOnce,
                 [&](int64_t i) { body(i * kAtOnce, std::min(kAtOnce, n - i * kAtOnce)); });
}

}  // namespace

Tensor CastToF32::out(const Tensor& t) {
    if (!t) return t;
    require(t.dtype == Dtype::bf16, op_, ": expected activations of one type, bf16, found ", t);
    Tensor wide = t;
    wide.dtype = Dtype::f32;
    wide.data = ctx_.arena.tensor(Dtype::f32, {t.size()}).data;
    outputs_.push_back({t, wide});
    return wide;
}

Tensor CastToF32::inout(const Tensor& t) {
    const Tensor wide = out(t);
    if (!t) return wide;
    const bf16_t* from = t.as<bf16_t>();
    float* to = wide.as<float>();
    each_piece(ctx_, t.size(), [&](int64_t first, int64_t n) {
        cpu_kernels().widen(to + first, from + first, Dtype::bf16, n);
    });
    return wide;
}

Tensor CastToF32::in(const Tensor& t) {
    const Tensor wide = inout(t);
    if (t) outputs_.pop_back();
    return wide;
}

void CastToF32::round() {
    for (const Output& output : outputs_) {
        bf16_t* to = output.to.as<bf16_t>();
        const float* from = output.from.as<float>();
        each_piece(ctx_, output.to.size(), [&](int64_t first, int64_t n) {
            cpu_kernels().narrow(to + first, Dtype::bf16, from + first, n);
        });
    }
}

}  // namespace hark
