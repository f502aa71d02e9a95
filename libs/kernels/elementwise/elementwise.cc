#include <algorithm>
#include <cstring>

#include "core/random.h"
#include "kernels/checks.h"
#include "kernels/cpu/cpu.h"
#include "kernels/elementwise/cast_to_f32.h"
#include "kernels/elementwise/rounding.h"
#include "kernels/gradients.h"
#include "kernels/ops_table.h"
#include "kernels/runtime/parallel.h"

namespace hark {
namespace {

void check_activation(const char* op, const Tensor& x, Activation f) {
    require(x.rank == 2, op, ": expected x (T, C), found ", x);
    require(f != Activation::none, op, ": expected an activation, found none");
}

}  // namespace

void set_zero(Context& ctx, Tensor x) {
    if (ctx.on_cuda()) return cuda_ops().set_zero(ctx, x);
    std::memset(x.data, 0, x.bytes());
}

void stochastic_round(Context& ctx, Tensor to, Tensor x, uint64_t seed) {
    check_tensor("stochastic_round", "x", x, Dtype::f32, {-1});
    check_tensor("stochastic_round", "to", to, Dtype::bf16, {x.dim(0)});
    if (ctx.on_cuda()) return cuda_ops().stochastic_round(ctx, to, x, seed);
    const float* from = x.as<float>();
    bf16_t* rounded = to.as<bf16_t>();
    const uint64_t start = Random(seed).next();
    constexpr int64_t kAtOnce = 1 << 14;  // a multiple of 4
    const int64_t n = x.dim(0);
    parallel_for(ctx.threads, (n + kAtOnce - 1) / kAtOnce, [&](int64_t piece) {
        const int64_t end = std::min(n, (piece + 1) * kAtOnce);
        for (int64_t first = piece * kAtOnce; first < end; first += 4) {
            const uint64_t chances = split_mix(start, static_cast<uint64_t>(first) / 4);
            for (int64_t i = first; i < std::min(end, first + 4); ++i) {
                uint32_t bits;
                std::memcpy(&bits, from + i, sizeof bits);
                const auto chance = static_cast<uint32_t>(chances >> (16 * (i - first))) & 0xffff;
                rounded[i].bits = rounded_by(bits, chance);
            }
        }
    });
}

void activate(Context& ctx, Tensor y, Tensor x, Activation f) {
    check_activation("activate", x, f);
    check_tensor("activate", "y", y, x.dtype, {x.dim(0), x.dim(1)});
    if (ctx.on_cuda()) return cuda_ops().activate(ctx, y, x, f);
    if (x.dtype == Dtype::bf16) {
        CastToF32 wide(ctx, "activate");
        activate(ctx, wide.out(y), wide.in(x), f);
        return wide.round();
    }
    const int64_t columns = x.dim(1);
    const float* from = x.as<float>();
    float* to = y.as<float>();
    parallel_for(ctx.threads, x.dim(0), [&](int64_t t) {
        cpu_kernels().epilogue(to + t * columns, from + t * columns, nullptr, nullptr, columns, f);
    });
}

void activate_backward(Context& ctx, Tensor dx, Tensor dy, Tensor x, Activation f) {
    check_activation("activate_backward", x, f);
    check_tensor("activate_backward", "dx", dx, x.dtype, {x.dim(0), x.dim(1)});
    check_tensor("activate_backward", "dy", dy, x.dtype, {x.dim(0), x.dim(1)});
    if (ctx.on_cuda()) return cuda_ops().activate_backward(ctx, dx, dy, x, f);
    if (x.dtype == Dtype::bf16) {
        CastToF32 wide(ctx, "activate_backward");
        activate_backward(ctx, wide.out(dx), wide.in(dy), wide.in(x), f);
        return wide.round();
    }
    const int64_t columns = x.dim(1);
    const float *gradient = dy.as<float>(), *input = x.as<float>();
    float* to = dx.as<float>();
    parallel_for(ctx.threads, x.dim(0), [&](int64_t t) {
        const int64_t at = t * columns;
        cpu_kernels().activate_backward(to + at, gradient + at, input + at, columns, f);
    });
}

}  // namespace hark
