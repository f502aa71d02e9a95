// Times the operations of libhark-cuda.so at the sizes of Whisper's encoder and decoder. Prints
// TSV: what, dtype, shape, microseconds, TFLOP/s, TB/s, fraction of what this card's limits allow,
// which are measured first. cuda_ops_torch.py next to this file times PyTorch's at the same sizes
// in the same way. Words on the command line choose the operations whose names begin with one of
// them; without any all are timed.
#include "cuda_timing.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <optional>
#include <vector>

#include "kernels/ops_table.h"
#include "operations/speed/gpu_speed.h"

namespace hark {
namespace {

constexpr int64_t kPlaces = 448, kHeadSize = 64;  // of a decoder's cache

// A product, and what goes with it: of x (t, k) and w (n, k).
struct Product {
    const char* what;
    int64_t t, n, k;
    Dtype x = Dtype::f16, w = Dtype::f16;
    Activation activation = Activation::none;
    bool residual = false;
    bool norm = false;  // of x, before the product
    // After it keys and values of y's rows, one for each of t sequences, go to caches.
    bool append = false;
};

void time_linear(Context& ctx, const Product& of) {
    if (!is_chosen(of.what)) return;
    const Arena::Scope scope(ctx.arena);
    const int64_t t = of.t, n = of.n, k = of.k;
    const Tensor x = random_tensor(ctx, of.x, {t, k}), y = random_tensor(ctx, of.x, {t, n});
    const Tensor scales = has_row_scales(of.w) ? random_tensor(ctx, Dtype::f32, {n}) : Tensor();
    const std::vector<Tensor> weights = rotated(ctx, of.w, {n, k});
    double moved = bytes_of({x, y, weights[0]});
    Epilogue then{random_tensor(ctx, Dtype::f32, {n}), of.activation, {}};
    if (of.residual) {
        then.residual = random_tensor(ctx, of.x, {t, n});
        moved += bytes_of({then.residual});
    }
    LinearFusion with;
    if (of.norm)
        with.norm = {random_tensor(ctx, Dtype::f32, {k}), random_tensor(ctx, Dtype::f32, {k})};
    const BatchLayout rows = ragged(ctx, static_cast<int>(t), 1, kPlaces);
    std::optional<Append> append;
    if (of.append) {
        const auto cache = [&] {
            return random_tensor(ctx, of.x, {t, n / 3 / kHeadSize, kPlaces, kHeadSize});
        };
        append.emplace(Append{cache(), cache(), n / 3, rows});
        with.append = &*append;
        moved += bytes_of({y}) * 2 / 3;
    }
    const double us = microseconds(ctx, [&](int i) {
        const Tensor& w = weights[static_cast<size_t>(i) % weights.size()];
        cuda_ops().linear(ctx, y, x, {w, scales}, then, with);
    });
    print(of.what, of.w, concat(t, "x", k, "x", n), us, 2.0 * double(t) * double(n) * double(k),
          moved);
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
    const BatchLayout rows = ragged(ctx, b, queries, length);
    const double us = microseconds(ctx, [&](int i) {
        const auto& [keys, values] = caches[static_cast<size_t>(i) % caches.size()];
        cuda_ops().attention(ctx, out, q, keys, values, rows, {.scale = 0.125f, .causal = causal});
    });
    const double pairs = double(queries) * double(length) * (causal && queries == length ? 0.5 : 1);
    print(what, dtype, concat("B", b, " H", h, " T", queries, " S", length, " D", d), us,
          4.0 * b * h * double(d) * pairs,
          static_cast<double>(2 * q.bytes() + 2 * caches[0].first.bytes()));
}

// A token's cross-attention over what was encoder_out: b windows with `queries` rows each. Layers
// share what is encoder_out, each has its own weights, so these rotate alone where a window fits
// the L2 cache.
void time_absorbed(Context& ctx, int b, int64_t h, int64_t queries, Dtype dtype, Dtype weights) {
    if (!is_chosen("absorbed_attention")) return;
    const Arena::Scope scope(ctx.arena);
    constexpr int64_t kFrames = 1500;
    const int64_t c = 64 * h;
    const Tensor q = random_tensor(ctx, dtype, {b * queries, c});
    const Tensor out = random_tensor(ctx, dtype, {b * queries, c});
    const Tensor encoder_out = random_tensor(ctx, dtype, {b, kFrames, c});
    const std::vector<Tensor> kv = rotated(ctx, weights, {2 * c, c});
    const Tensor scales = weights == Dtype::i8 ? random_tensor(ctx, Dtype::f32, {2 * c}) : Tensor();
    const Tensor bias = random_tensor(ctx, Dtype::f32, {2 * c});
    const BatchLayout rows = ragged(ctx, b, queries, kFrames);
    // Weights are of deviation 1 here: this scale makes scores of about that.
    const float scale = 0.125f / std::sqrt(static_cast<float>(c));
    const double us = microseconds(ctx, [&](int i) {
        cuda_ops().absorbed_attention(ctx, out, q, encoder_out,
                                      {kv[static_cast<size_t>(i) % kv.size()], scales}, bias, h,
                                      rows, scale);
    });
    print("absorbed_attention", weights, concat("B", b, " H", h, " T", queries, " S", kFrames), us,
          4.0 * double(b * queries) * double(h) * double(c) * (kFrames + 64),
          static_cast<double>(2 * q.bytes() + encoder_out.bytes() + kv[0].bytes()));
}

// Training's: B sequences of T rows, one after another, forward and backward. H heads, of keys and
// values `kv`.
void time_self_attention(Context& ctx, int b, int64_t h, int64_t kv, int64_t t, int64_t d,
                         Dtype dtype) {
    if (!is_chosen("self_attention")) return;
    const Arena::Scope scope(ctx.arena);
    const int64_t rows = b * t, c = h * d, width = c + 2 * kv * d;
    const Tensor qkv = random_tensor(ctx, dtype, {rows, width});
    const Tensor dout = random_tensor(ctx, dtype, {rows, c});
    const Tensor out = random_tensor(ctx, dtype, {rows, c});
    const Tensor lse = random_tensor(ctx, Dtype::f32, {rows, h});
    const Tensor dqkv = random_tensor(ctx, dtype, {rows, width});
    std::vector<int32_t> first, end;
    for (int64_t row = 0; row < rows; ++row) {
        first.push_back(static_cast<int32_t>(row / t * t));
        end.push_back(first.back() + static_cast<int32_t>(t));
    }
    const Sequences sequences = {ids(ctx, {rows}, first), ids(ctx, {rows}, end)};
    const std::string shape =
        concat("B", b, " H", h, kv == h ? "" : concat("/", kv), " T", t, " D", d);
    const double forward =
        microseconds(ctx, [&](int) { cuda_ops().self_attention(ctx, out, lse, qkv, sequences); });
    const double products = double(b) * double(h) * double(t) * double(t) * double(d);
    print("self_attention", dtype, shape, forward, 2 * products,
          static_cast<double>(qkv.bytes() + out.bytes() + lse.bytes()));
    const double backward = microseconds(ctx, [&](int) {
        cuda_ops().self_attention_backward(ctx, dqkv, dout, out, lse, qkv, sequences);
    });
    print("self_attention_backward", dtype, shape, backward, 5 * products,
          static_cast<double>(2 * qkv.bytes() + 2 * out.bytes() + lse.bytes()));
}

void time_products(Context& ctx) {
    constexpr Dtype f16 = Dtype::f16, f32 = Dtype::f32, i8 = Dtype::i8;
    const Activation none = Activation::none, gelu = Activation::gelu;
    // Whisper's encoder, 1, 8 and 16 windows; without an activation, what exact GELU adds.
    for (Dtype type : {f16, Dtype::bf16})
        for (int64_t t : {1500, 12000, 24000}) {
            time_linear(ctx, {"many linear", t, 1280, 1280, type, type});
            time_linear(ctx, {"many linear+residual", t, 1280, 1280, type, type, none, true});
            time_linear(ctx, {"many linear", t, 3840, 1280, type, type});
            time_linear(ctx, {"many linear", t, 5120, 1280, type, type});
            time_linear(ctx, {"many linear+gelu", t, 5120, 1280, type, type, gelu});
            time_linear(
                ctx, {"many linear+gelu_tanh", t, 5120, 1280, type, type, Activation::gelu_tanh});
            time_linear(ctx, {"many linear+residual", t, 1280, 5120, type, type, none, true});
        }
    time_linear(ctx, {"many linear+gelu", 1500, 5120, 1280, f16, i8, gelu});
    time_linear(ctx, {"many linear+gelu", 1500, 5120, 1280, f32, f32, gelu});
    // A decoder's steps and prompts, and the logits of Whisper and of GPT-2.
    for (const auto& [x, w] :
         {std::pair{f16, f16}, {f16, i8}, {Dtype::bf16, Dtype::bf16}, {f32, f32}})
        for (int64_t t : {1, 4, 8, 16, 32, 64, 128, 256, 512, 1024}) {
            const bool official = x == f16;  // the others at a few sizes alone
            if (!official && t != 1 && t != 8 && t != 64 && t != 512) continue;
            time_linear(ctx, {"linear", t, 1280, 1280, x, w});
            time_linear(ctx, {"linear", t, 3840, 1280, x, w});
            time_linear(ctx, {"linear+gelu", t, 5120, 1280, x, w, gelu});
            time_linear(ctx, {"linear+residual", t, 1280, 5120, x, w, none, true});
            if (t > 256) continue;
            time_linear(ctx, {"linear", t, 51866, 1280, x, w});
            time_linear(ctx, {"linear", t, 50257, 768, x, w});
        }
    // With a fused norm, and with keys and values going to their caches.
    for (int64_t t : {1, 8, 64, 128}) {
        time_linear(ctx, {.what = "norm+linear", .t = t, .n = 1280, .k = 1280, .norm = true});
        time_linear(ctx, {.what = "norm+linear+append",
                          .t = t,
                          .n = 3840,
                          .k = 1280,
                          .norm = true,
                          .append = true});
        time_linear(ctx, {.what = "norm+linear+gelu",
                          .t = t,
                          .n = 5120,
                          .k = 1280,
                          .activation = gelu,
                          .norm = true});
    }
    // Weights in ggml's blocks, and next to them in f16 and int8.
    std::vector<Dtype> types = {f16, i8};
    types.insert(types.end(), std::begin(kQuantizedDtypes), std::end(kQuantizedDtypes));
    for (int64_t t : {1, 8, 64})
        for (const Dtype type : types) {
            time_linear(ctx, {"quantized linear", t, 1280, 1280, f16, type});
            time_linear(ctx, {"quantized linear+gelu", t, 5120, 1280, f16, type, gelu});
            time_linear(ctx, {"quantized linear+residual", t, 1280, 5120, f16, type, none, true});
            time_linear(ctx, {"quantized linear", t, 51866, 1280, f16, type});
        }
}

// e4m3 next to 16 bits: Whisper's encoder and decoder, and one to many rows of Llama 3.1 8B where
// rows may depend on their number.
void time_fp8(Context& ctx) {
    constexpr Dtype f16 = Dtype::f16, bf16 = Dtype::bf16, fp8 = Dtype::fp8;
    const Activation none = Activation::none, gelu = Activation::gelu;
    for (const Dtype type : {f16, fp8}) {
        for (const int64_t t : {1500, 24000}) {
            time_linear(ctx, {"fp8 encoder", t, 3840, 1280, f16, type});
            time_linear(ctx, {"fp8 encoder+residual", t, 1280, 1280, f16, type, none, true});
            time_linear(ctx, {"fp8 encoder+gelu", t, 5120, 1280, f16, type, gelu});
            time_linear(ctx, {"fp8 encoder+residual", t, 1280, 5120, f16, type, none, true});
        }
        for (const int64_t t : {1, 32, 128}) {
            time_linear(ctx, {"fp8 decoder", t, 3840, 1280, f16, type});
            time_linear(ctx, {"fp8 decoder+residual", t, 1280, 1280, f16, type, none, true});
            time_linear(ctx, {"fp8 decoder+gelu", t, 5120, 1280, f16, type, gelu});
            time_linear(ctx, {"fp8 decoder+residual", t, 1280, 5120, f16, type, none, true});
            time_linear(ctx, {"fp8 decoder", t, 51866, 1280, f16, type});
        }
    }
    ctx.batch_invariant = false;
    for (const auto& [x, w] : {std::pair{bf16, bf16}, {bf16, fp8}, {f16, fp8}})
        for (const int64_t t : {1, 8, 32, 128, 2048}) {
            time_linear(ctx, {"fp8 8b", t, 6144, 4096, x, w});
            time_linear(ctx, {"fp8 8b", t, 28672, 4096, x, w});
            time_linear(ctx, {"fp8 8b+residual", t, 4096, 14336, x, w, none, true});
            if (t == 1) time_linear(ctx, {"fp8 8b", t, 128256, 4096, x, w});
        }
    ctx.batch_invariant = true;
}

// Quantised weights and a batch of rows that may depend on their number: Llama 3.1 8B.
void time_blocks(Context& ctx) {
    constexpr Dtype f16 = Dtype::f16;
    ctx.batch_invariant = false;
    for (const Dtype type : {f16, Dtype::q8_0, Dtype::q4_0, Dtype::q4_k, Dtype::q6_k})
        for (const int64_t t : {9, 16, 32, 64, 96, 128, 256, 512}) {
            time_linear(ctx, {"blocks", t, 6144, 4096, f16, type});
            time_linear(ctx, {"blocks", t, 4096, 4096, f16, type});
            time_linear(ctx, {"blocks", t, 28672, 4096, f16, type});
            time_linear(ctx,
                        {"blocks+residual", t, 4096, 14336, f16, type, Activation::none, true});
        }
    ctx.batch_invariant = true;
}

void time_attentions(Context& ctx) {
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
    for (int b : {1, 2, 8, 16, 32, 64, 128}) time_absorbed(ctx, b, 20, 1, Dtype::f16, Dtype::f16);
    for (int b : {1, 8, 32}) time_absorbed(ctx, b, 20, 5, Dtype::f16, Dtype::f16);
    for (int b : {1, 128}) {
        time_absorbed(ctx, b, 20, 1, Dtype::f16, Dtype::i8);
        time_absorbed(ctx, b, 6, 1, Dtype::f16, Dtype::f16);
        time_absorbed(ctx, b, 12, 1, Dtype::f16, Dtype::f16);
    }
    time_self_attention(ctx, 64, 12, 12, 1024, 64, Dtype::bf16);
    time_self_attention(ctx, 4, 12, 12, 1024, 64, Dtype::bf16);
    time_self_attention(ctx, 4, 12, 12, 1024, 64, Dtype::f32);
    // GPT-3 350M, 760M, 1.3B, 2.7B and 6.7B; Llamas of 1B and 8B, whose heads share keys.
    for (const auto& [h, kv, d] : std::initializer_list<std::array<int64_t, 3>>{{16, 16, 64},
                                                                                {16, 16, 96},
                                                                                {16, 16, 128},
                                                                                {32, 32, 80},
                                                                                {32, 32, 128},
                                                                                {32, 8, 64},
                                                                                {32, 8, 128}})
        time_self_attention(ctx, 8, h, kv, 2048, d, Dtype::bf16);
}

void measure_limits(Context& ctx) {
    constexpr int64_t kCopied = int64_t{1} << 30;
    {
        const auto stream = static_cast<cudaStream_t>(ctx.stream);
        const Arena::Scope scope(ctx.arena);
        const Tensor from = random_tensor(ctx, Dtype::f16, {kCopied / 2});
        const Tensor to = ctx.arena.tensor(Dtype::f16, {kCopied / 2});
        const double us = microseconds(ctx, [&](int) {
            check(cudaMemcpyAsync(to.data, from.data, kCopied, cudaMemcpyDeviceToDevice, stream),
                  "copy");
        });
        limits.copy = 2e-6 * static_cast<double>(kCopied) / us;
        print("limit copy", Dtype::f16, "1 GiB", us, 0, 2.0 * kCopied);
    }
    for (const auto& [dtype, limit] : {std::pair{Dtype::f16, &limits.f16},
                                       {Dtype::bf16, &limits.bf16},
                                       {Dtype::f32, &limits.f32}}) {
        *limit = gpu_product_speed(ctx, dtype) * 1e-3;
        std::printf("limit product\t%s\t8192x8192x8192\t\t%.1f\t\t\n", name_of(dtype), *limit);
    }
}

void run() {
    Context ctx = cuda_runtime().make_context(0, 1);
    std::printf("what\tdtype\tshape\tus\tTFLOP/s\tTB/s\tfraction\n");
    measure_limits(ctx);
    time_products(ctx);
    time_fp8(ctx);
    time_blocks(ctx);
    time_attentions(ctx);
    time_rows(ctx);
    time_training(ctx);
    time_decoder(ctx);
    time_experts(ctx);
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
