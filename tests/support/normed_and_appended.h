// A product and what goes with it, in one call and in several: the same bits.
#pragma once

#include <vector>

#include "support/ops.h"

namespace hark::test {

// A product of x (rows, K) and w (3K, K) with its norm before it and its columns from K on appended
// to caches, and the same by three calls: y, keys and values.
inline std::vector<std::vector<float>> normed_and_appended(TestDevice& device, const Tensor& x,
                                                           const Matrix& w, const Tensor& bias,
                                                           Dtype cache, bool fused) {
    constexpr int64_t kCapacity = 5, kHead = 32;
    Context& ctx = device.ctx();
    const Arena::Scope scope(ctx.arena);
    const int64_t rows = x.dim(0), k = x.dim(1);
    Tensor y = device.empty(x.dtype, {rows, 3 * k});
    const Norm norm{device.up(random_values(k, 1), Dtype::f32, {k}),
                    device.up(random_values(k, 2), Dtype::f32, {k})};
    const std::vector<float> before((rows + 1) * k * kCapacity, 0.5f);
    const auto filled = [&] {
        return device.up(before, cache, {rows + 1, k / kHead, kCapacity, kHead});
    };
    Tensor keys = filled(), values = filled();
    std::vector<int32_t> starts, slots, lengths;
    for (int32_t i = 0; i <= rows; ++i) starts.push_back(i);
    for (int32_t i = 0; i < rows; ++i) {
        slots.push_back(static_cast<int32_t>(rows) - i);
        lengths.push_back(1 + i % static_cast<int32_t>(kCapacity));
    }
    const BatchLayout ragged{device.up(starts), device.up(slots), device.up(lengths), 1, kCapacity};
    const Append append{keys, values, k, ragged};
    const Epilogue then{.bias = bias};
    if (fused) {
        linear(ctx, y, x, w, then, {norm, &append});
    } else {
        Tensor normed = device.empty(x.dtype, {rows, k});
        layer_norm(ctx, normed, x, norm.weight, norm.bias, norm.eps);
        linear(ctx, y, normed, w, then);
        append_cache(ctx, keys, values, y, k, ragged);
    }
    return {device.down(y), device.down(keys), device.down(values)};
}

// gated_activation of the halves of a product of x (rows, K) and w (2N, K) with its norm before it,
// in one call or in three.
inline std::vector<float> normed_and_gated(TestDevice& device, const Tensor& x, const Matrix& w,
                                           const Tensor& bias, NormKind kind, bool fused) {
    Context& ctx = device.ctx();
    const Arena::Scope scope(ctx.arena);
    const int64_t rows = x.dim(0), k = x.dim(1), n = w.values.dim(0) / 2;
    Norm norm{.weight = device.up(random_values(k, 1), Dtype::f32, {k}), .kind = kind};
    if (kind == NormKind::layer) norm.bias = device.up(random_values(k, 2), Dtype::f32, {k});
    Tensor y = device.empty(x.dtype, {rows, n});
    if (fused) {
        linear(ctx, y, x, w, {.bias = bias, .activation = Activation::silu},
               {.norm = norm, .gated = true});
        return device.down(y);
    }
    Tensor normed = device.empty(x.dtype, {rows, k}), halves = device.empty(x.dtype, {rows, 2 * n});
    normalize(ctx, normed, x, norm);
    linear(ctx, halves, normed, w, {.bias = bias});
    gated_activation(ctx, y, {halves, 0}, {halves, n}, Activation::silu);
    return device.down(y);
}

}  // namespace hark::test
