// Times the operations of libhark-cuda.so at the sizes of Whisper's encoder and decoder. Prints
// TSV: what, dtype, shape, microseconds, TFLOP/s, TB/s. cuda_ops_torch.py beside this file times
// PyTorch's at the same sizes in the same way, and the card's limits. Words on the command line
// choose the operations whose names begin with one of them; without any all are timed.
#include "cuda_timing.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <iostream>
#include <random>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/half.h"
#include "kernels/cuda_gradients.h"
#include "kernels/cuda_library.h"

namespace hark {
namespace {

void time_linear(Context& ctx, const char* what, int64_t t, int64_t n, int64_t k, Dtype x_type,
                 Dtype w_type, Activation activation, bool with_residual) {
    if (!is_chosen(what)) return;
    const Arena::Scope scope(ctx.arena);
    const Tensor x = random_tensor(ctx, x_type, {t, k}), y = random_tensor(ctx, x_type, {t, n});
    const Tensor bias = random_tensor(ctx, Dtype::f32, {n});
    const Tensor residual = with_residual ? random_tensor(ctx, x_type, {t, n}) : Tensor();
    const Tensor scales = w_type == Dtype::i8 ? random_tensor(ctx, Dtype::f32, {n}) : Tensor();
    const std::vector<Tensor> weights = rotated(ctx, w_type, {n, k});
    const double us = microseconds(ctx, [&](int i) {
        const Tensor& w = weights[static_cast<size_t>(i) % weights.size()];
        cuda_ops().linear(ctx, y, x, {w, scales}, {bias, activation, residual}, {});
    });
    const double moved =
        static_cast<double>(x.bytes() + y.bytes() * (with_residual ? 2 : 1) + weights[0].bytes());
    print(what, w_type, concat(t, "x", k, "x", n), us, 2.0 * double(t) * double(n) * double(k),
          moved);
}

// b sequences of `queries` rows over `length` keys each.
Ragged ragged(Context& ctx, int b, int64_t queries, int64_t length) {
    std::vector<int32_t> starts, slots, lengths(static_cast<size_t>(b), int32_t(length));
    for (int i = 0; i <= b; ++i) starts.push_back(static_cast<int32_t>(i * queries));
    for (int i = 0; i < b; ++i) slots.push_back(i);
    return {ids(ctx, {b + 1}, starts), ids(ctx, {b}, slots), ids(ctx, {b}, lengths), queries,
            length};
}

// B sequences of `queries` queries over `length` keys, H heads of D channels.
void time_attention(Context& ctx, const char* what, int b, int h, int64_t queries, int64_t length,
                    int64_t d, Dtype dtype, bool causal) {
    if (!is_chosen(what)) return;
    const Arena::Scope scope(ctx.arena);
    const Tensor q = random_tensor(ctx, dtype, {b * queries, h * d});
    const Tensor out = random_tensor(ctx, dtype, {b * queries, h * d});
    std::vector<std::pair<Tensor, Tensor>> caches;
    size_t bytes = 0;
    while (bytes < kRotatedBytes && caches.size() < kCallsInGraph) {
        caches.emplace_back(random_tensor(ctx, dtype, {b, h, length, d}),
                            random_tensor(ctx, dtype, {b, h, length, d}));
        bytes += 2 * caches.back().first.bytes();
    }
    const Ragged rows = ragged(ctx, b, queries, length);
    const double us = microseconds(ctx, [&](int i) {
        const auto& [keys, values] = caches[static_cast<size_t>(i) % caches.size()];
        cuda_ops().attention(ctx, out, q, keys, values, rows, 0.125f, causal);
    });
    const double pairs = double(queries) * double(length) * (causal && queries == length ? 0.5 : 1);
    print(what, dtype, concat("B", b, " H", h, " T", queries, " S", length, " D", d), us,
          4.0 * b * h * double(d) * pairs,
          static_cast<double>(2 * q.bytes() + 2 * caches[0].first.bytes()));
}

// A token's cross-attention over what was heard: b windows with `queries` rows each. Layers share
// what is heard, each has its own weights, so these rotate alone where a window fits the L2 cache.
void time_folded(Context& ctx, int b, int64_t h, int64_t queries, Dtype dtype, Dtype weights) {
    if (!is_chosen("folded_attention")) return;
    const Arena::Scope scope(ctx.arena);
    constexpr int64_t kFrames = 1500;
    const int64_t c = 64 * h;
    const Tensor q = random_tensor(ctx, dtype, {b * queries, c});
    const Tensor out = random_tensor(ctx, dtype, {b * queries, c});
    const Tensor heard = random_tensor(ctx, dtype, {b, kFrames, c});
    const std::vector<Tensor> kv = rotated(ctx, weights, {2 * c, c});
    const Tensor scales = weights == Dtype::i8 ? random_tensor(ctx, Dtype::f32, {2 * c}) : Tensor();
    const Tensor bias = random_tensor(ctx, Dtype::f32, {2 * c});
    const Ragged rows = ragged(ctx, b, queries, kFrames);
    // Weights are of deviation 1 here: this scale makes scores of about that.
    const float scale = 0.125f / std::sqrt(static_cast<float>(c));
    const double us = microseconds(ctx, [&](int i) {
        cuda_ops().folded_attention(ctx, out, q, heard,
                                    {kv[static_cast<size_t>(i) % kv.size()], scales}, bias, h, rows,
                                    scale);
    });
    print("folded_attention", weights, concat("B", b, " H", h, " T", queries, " S", kFrames), us,
          4.0 * double(b * queries) * double(h) * double(c) * (kFrames + 64),
          static_cast<double>(2 * q.bytes() + heard.bytes() + kv[0].bytes()));
}

// Training's: B sequences of T rows, one behind another, forward and backward.
void time_self_attention(Context& ctx, int b, int64_t h, int64_t t, int64_t d, Dtype dtype) {
    if (!is_chosen("self_attention")) return;
    const Arena::Scope scope(ctx.arena);
    const int64_t rows = b * t, c = h * d;
    const Tensor qkv = random_tensor(ctx, dtype, {rows, 3 * c});
    const Tensor dout = random_tensor(ctx, dtype, {rows, c});
    const Tensor out = random_tensor(ctx, dtype, {rows, c});
    const Tensor lse = random_tensor(ctx, Dtype::f32, {rows, h});
    const Tensor dqkv = random_tensor(ctx, dtype, {rows, 3 * c});
    std::vector<int32_t> first, end;
    for (int64_t row = 0; row < rows; ++row) {
        first.push_back(static_cast<int32_t>(row / t * t));
        end.push_back(first.back() + static_cast<int32_t>(t));
    }
    const Sequences sequences = {ids(ctx, {rows}, first), ids(ctx, {rows}, end)};
    const std::string shape = concat("B", b, " H", h, " T", t, " D", d);
    const double forward = microseconds(
        ctx, [&](int) { cuda_gradients().self_attention(ctx, out, lse, qkv, sequences); });
    const double products = double(b) * double(h) * double(t) * double(t) * double(d);
    print("self_attention", dtype, shape, forward, 2 * products,
          static_cast<double>(qkv.bytes() + out.bytes() + lse.bytes()));
    const double backward = microseconds(ctx, [&](int) {
        cuda_gradients().self_attention_backward(ctx, dqkv, dout, out, lse, qkv, sequences);
    });
    print("self_attention_backward", dtype, shape, backward, 5 * products,
          static_cast<double>(2 * qkv.bytes() + 2 * out.bytes() + lse.bytes()));
}

void time_layer_norm(Context& ctx, int64_t t, int64_t c, Dtype dtype) {
    if (!is_chosen("layer_norm")) return;
    const Arena::Scope scope(ctx.arena);
    const std::vector<Tensor> x = rotated(ctx, dtype, {t, c}), y = rotated(ctx, dtype, {t, c});
    const Tensor w = random_tensor(ctx, Dtype::f32, {c}), b = random_tensor(ctx, Dtype::f32, {c});
    const double us = microseconds(ctx, [&](int i) {
        const size_t at = static_cast<size_t>(i) % x.size();
        cuda_ops().layer_norm(ctx, y[at], x[at], w, b, 1e-5f);
    });
    print("layer_norm", dtype, concat(t, "x", c), us, 0, 2.0 * static_cast<double>(x[0].bytes()));
}

// x (B, T, C) of x_type to n channels, exact GELU, as Whisper's encoder begins.
void time_conv1d(Context& ctx, int64_t b, int64_t t, int64_t c, int64_t n, int stride, Dtype x_type,
                 Dtype dtype) {
    if (!is_chosen("conv1d")) return;
    const Arena::Scope scope(ctx.arena);
    const std::vector<Tensor> x = rotated(ctx, x_type, {b, t, c});
    const Tensor w = random_tensor(ctx, dtype, {n, 3 * c});
    const Tensor bias = random_tensor(ctx, Dtype::f32, {n});
    const Tensor y = random_tensor(ctx, dtype, {b, t / stride, n});
    const double us = microseconds(ctx, [&](int i) {
        cuda_ops().conv1d(ctx, y, x[static_cast<size_t>(i) % x.size()], {w, {}}, stride,
                          {bias, Activation::gelu, {}});
    });
    print("conv1d+gelu", dtype, concat("B", b, " ", t, "x", c, "->", n, " stride ", stride), us,
          2.0 * 3 * double(y.size()) * double(c),
          static_cast<double>(x[0].bytes() + w.bytes() + y.bytes()));
}

// Keys and values of `queries` rows a sequence, the last two thirds of the columns of x, as a fused
// product leaves them.
void time_append(Context& ctx, int b, int64_t h, int64_t queries, int64_t capacity, int64_t d,
                 Dtype dtype) {
    if (!is_chosen("append_cache")) return;
    const Arena::Scope scope(ctx.arena);
    const std::vector<Tensor> x = rotated(ctx, dtype, {b * queries, 3 * h * d});
    const std::vector<Tensor> caches = rotated(ctx, dtype, {2 * b, h, capacity, d});
    const Ragged rows = ragged(ctx, b, queries, capacity);
    const double us = microseconds(ctx, [&](int i) {
        const size_t at = static_cast<size_t>(i);
        const Tensor& both = caches[at % caches.size()];
        cuda_ops().append_cache(ctx, both.slice(0, b), both.slice(b, 2 * b), x[at % x.size()],
                                h * d, rows);
    });
    print("append_cache", dtype, concat("B", b, " H", h, " T", queries, " S", capacity, " D", d),
          us, 0, static_cast<double>(4 * b * queries * h * d) * size_of(dtype));
}

// Beams change places: every slot of b is written from the next one.
void time_copy(Context& ctx, int b, int64_t h, int64_t length, int64_t d, Dtype dtype) {
    if (!is_chosen("copy_cache")) return;
    const Arena::Scope scope(ctx.arena);
    const std::vector<Tensor> caches = rotated(ctx, dtype, {b, h, 448, d});
    std::vector<int32_t> from, to;
    for (int i = 0; i < b; ++i) from.push_back(i), to.push_back((i + 1) % b);
    const Tensor sources = ids(ctx, {b}, from), targets = ids(ctx, {b}, to);
    const double us = microseconds(ctx, [&](int i) {
        const Tensor& cache = caches[static_cast<size_t>(i) % caches.size()];
        cuda_ops().copy_cache(ctx, cache, sources, targets, length);
    });
    print("copy_cache", dtype, concat("B", b, " H", h, " S", length, " D", d), us, 0,
          static_cast<double>(2 * b * h * length * d) * size_of(dtype));
}

// What word times need: `n` heads' scores of T queries over 1500 keys.
void time_scores(Context& ctx, int b, int64_t h, int64_t queries, int32_t n, Dtype dtype) {
    if (!is_chosen("attention_scores")) return;
    const Arena::Scope scope(ctx.arena);
    constexpr int64_t kFrames = 1500, kSize = 64;
    const std::vector<Tensor> keys = rotated(ctx, dtype, {b, h, kFrames, kSize});
    const Tensor q = random_tensor(ctx, dtype, {b * queries, h * kSize});
    const Tensor scores = ctx.arena.tensor(Dtype::f32, {n, b * queries, kFrames});
    std::vector<int32_t> heads;
    for (int32_t i = 0; i < n; ++i) heads.push_back(i);
    const Ragged rows = ragged(ctx, b, queries, kFrames);
    const double us = microseconds(ctx, [&](int i) {
        cuda_ops().attention_scores(ctx, scores, q, keys[static_cast<size_t>(i) % keys.size()],
                                    Tensor(heads.data(), Dtype::i32, {n}), rows, 0.125f);
    });
    print("attention_scores", dtype, concat("B", b, " n", n, " T", queries, " S", kFrames), us,
          2.0 * double(scores.size()) * kSize,
          static_cast<double>(scores.bytes()) +
              double(b * n * kSize * (queries + kFrames)) * double(size_of(dtype)));
}

void time_rows(Context& ctx) {
    const Dtype half = Dtype::f16, single = Dtype::f32;
    for (int64_t t : {1, 64, 1500, 12000}) time_layer_norm(ctx, t, 1280, half);
    time_layer_norm(ctx, 12000, 1280, single);
    time_layer_norm(ctx, 1500, 384, half);
    for (int64_t b : {1, 8}) {
        time_conv1d(ctx, b, 3000, 128, 1280, 1, single, half);
        time_conv1d(ctx, b, 3000, 1280, 1280, 2, half, half);
    }
    time_append(ctx, 8, 20, 1500, 1500, 64, half);
    for (int b : {1, 64}) time_append(ctx, b, 20, 1, 448, 64, half);
    for (int b : {5, 40}) time_copy(ctx, b, 20, 100, 64, half);
    for (int b : {1, 8}) time_scores(ctx, b, 20, 100, 10, half);
}

void run() {
    Context ctx = cuda_ops().make_context(0, 1);
    std::printf("what\tdtype\tshape\tus\tTFLOP/s\tTB/s\n");
    const Activation none = Activation::none, gelu = Activation::gelu;
    // Whisper's encoder, 1, 8 and 16 windows; without an activation, what exact GELU adds.
    for (Dtype type : {Dtype::f16, Dtype::bf16})
        for (int64_t t : {1500, 12000, 24000}) {
            time_linear(ctx, "many linear", t, 1280, 1280, type, type, none, false);
            time_linear(ctx, "many linear+residual", t, 1280, 1280, type, type, none, true);
            time_linear(ctx, "many linear", t, 3840, 1280, type, type, none, false);
            time_linear(ctx, "many linear", t, 5120, 1280, type, type, none, false);
            time_linear(ctx, "many linear+gelu", t, 5120, 1280, type, type, gelu, false);
            time_linear(ctx, "many linear+gelu_tanh", t, 5120, 1280, type, type,
                        Activation::gelu_tanh, false);
            time_linear(ctx, "many linear+residual", t, 1280, 5120, type, type, none, true);
        }
    time_linear(ctx, "many linear+gelu", 1500, 5120, 1280, Dtype::f16, Dtype::i8, gelu, false);
    time_linear(ctx, "many linear+gelu", 1500, 5120, 1280, Dtype::f32, Dtype::f32, gelu, false);
    for (int64_t t : {1, 4, 8, 16, 32, 64, 128, 256, 512, 1024})
        for (Dtype type : {Dtype::f16, Dtype::i8}) {
            time_linear(ctx, "linear", t, 1280, 1280, Dtype::f16, type, none, false);
            time_linear(ctx, "linear", t, 3840, 1280, Dtype::f16, type, none, false);
            time_linear(ctx, "linear+gelu", t, 5120, 1280, Dtype::f16, type, gelu, false);
            time_linear(ctx, "linear+residual", t, 1280, 5120, Dtype::f16, type, none, true);
            if (t > 256) continue;
            time_linear(ctx, "linear", t, 51866, 1280, Dtype::f16, type, none, false);
            time_linear(ctx, "linear", t, 50257, 768, Dtype::f16, type, none, false);
        }
    // Weights in ggml's blocks, and beside them in f16 and int8.
    for (int64_t t : {1, 8, 64})
        for (Dtype type :
             {Dtype::f16, Dtype::i8, Dtype::q8_0, Dtype::q5_1, Dtype::q5_0, Dtype::q4_1,
              Dtype::q4_0, Dtype::q6_k, Dtype::q5_k, Dtype::q4_k, Dtype::q3_k, Dtype::q2_k}) {
            time_linear(ctx, "quantized linear", t, 1280, 1280, Dtype::f16, type, none, false);
            time_linear(ctx, "quantized linear+gelu", t, 5120, 1280, Dtype::f16, type, gelu, false);
            time_linear(ctx, "quantized linear+residual", t, 1280, 5120, Dtype::f16, type, none,
                        true);
            time_linear(ctx, "quantized linear", t, 51866, 1280, Dtype::f16, type, none, false);
        }
    for (Dtype type : {Dtype::f16, Dtype::bf16})
        time_attention(ctx, "attention", 64, 20, 1500, 1500, 64, type, false);
    for (int64_t queries : {16, 64, 224})
        time_attention(ctx, "attention prompt", 8, 20, queries, 224, 64, Dtype::f16, true);
    for (Dtype type : {Dtype::f16, Dtype::bf16, Dtype::f32}) {
        time_attention(ctx, "attention", 8, 20, 1500, 1500, 64, type, false);
        time_attention(ctx, "attention causal", 8, 12, 1024, 1024, 64, type, true);
        time_attention(ctx, "attention", 8, 16, 1024, 1024, 128, type, false);
    }
    for (int b : {1, 8, 64}) {
        time_attention(ctx, "attention decode", b, 20, 1, 1500, 64, Dtype::f16, false);
        time_attention(ctx, "attention decode", b, 20, 1, 224, 64, Dtype::f16, true);
    }
    for (int b : {1, 2, 8, 16, 32, 64, 128}) time_folded(ctx, b, 20, 1, Dtype::f16, Dtype::f16);
    for (int b : {1, 8, 32}) time_folded(ctx, b, 20, 5, Dtype::f16, Dtype::f16);
    for (int b : {1, 128}) {
        time_folded(ctx, b, 20, 1, Dtype::f16, Dtype::i8);
        time_folded(ctx, b, 6, 1, Dtype::f16, Dtype::f16);
        time_folded(ctx, b, 12, 1, Dtype::f16, Dtype::f16);
    }
    time_self_attention(ctx, 64, 12, 1024, 64, Dtype::bf16);
    time_self_attention(ctx, 4, 12, 1024, 64, Dtype::bf16);
    time_self_attention(ctx, 4, 12, 1024, 64, Dtype::f32);
    time_rows(ctx);
    time_training(ctx);
}

}  // namespace
}  // namespace hark

int main(int argc, char** argv) {
    hark::chosen.assign(argv + 1, argv + argc);
    try {
        hark::run();
    } catch (const std::exception& error) {
        std::cerr << "cuda_ops: " << error.what() << "\n";
        return 1;
    }
}
