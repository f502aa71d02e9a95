// A decoder's step of one row: the operations of a layer of Llama 3.1 8B, Llama 3.2 1B and Qwen2.5
// 0.5B, in bf16 and in f16 with quantised weights.
#include "cuda_timing.h"

namespace hark {
namespace {

struct Shape {
    const char* name;
    int64_t c, inner, heads, kv_heads, d, vocabulary;
};
constexpr Shape kShapes[] = {{"8b", 4096, 14336, 32, 8, 128, 128256},
                             {"1b", 2048, 8192, 32, 8, 64, 128256},
                             {"0.5b", 896, 4864, 14, 2, 64, 151936}};

// y (1, N) or (1, N / 2) of x (1, K).
void time_product(Context& ctx, const std::string& what, int64_t n, int64_t k, Dtype w, bool normed,
                  bool gated) {
    if (!is_chosen(what)) return;
    const Arena::Scope scope(ctx.arena);
    const Dtype on = w == Dtype::bf16 ? w : Dtype::f16;
    const Tensor x = random_tensor(ctx, on, {1, k});
    const Tensor y = random_tensor(ctx, on, {1, gated ? n / 2 : n});
    const std::vector<Tensor> weights = rotated(ctx, w, {n, k});
    LinearFusion with{.gated = gated};
    if (normed) with.norm = {.weight = random_tensor(ctx, Dtype::f32, {k}), .kind = NormKind::rms};
    const Epilogue then{.activation = gated ? Activation::silu : Activation::none,
                        .residual = normed || gated ? Tensor() : y};
    const double us = microseconds(ctx, [&](int i) {
        cuda_ops().linear(ctx, y, x, {weights[static_cast<size_t>(i) % weights.size()]}, then,
                          with);
    });
    print(what.c_str(), w, concat("1x", k, "x", n), us, 2.0 * double(n) * double(k),
          bytes_of({x, y, weights[0]}));
}

void time_small(Context& ctx, const Shape& of) {
    const Arena::Scope scope(ctx.arena);
    const Dtype on = Dtype::bf16;
    const int64_t width = (of.heads + 2 * of.kv_heads) * of.d;
    const auto time = [&](const char* what, auto&& call) {
        const std::string name = concat("decoder ", of.name, " ", what);
        if (is_chosen(name)) print(name.c_str(), on, "", microseconds(ctx, call), 0, 0);
    };
    const Tensor x = random_tensor(ctx, on, {1, of.c}), y = random_tensor(ctx, on, {1, of.c});
    const Tensor weight = random_tensor(ctx, Dtype::f32, {of.c});
    time("rms_norm", [&](int) { cuda_ops().rms_norm(ctx, y, x, weight, 1e-5f); });
    const Tensor halves = random_tensor(ctx, on, {1, 2 * of.inner});
    const Tensor h = random_tensor(ctx, on, {1, of.inner});
    time("gated_activation", [&](int) {
        cuda_ops().gated_activation(ctx, h, {halves, 0}, {halves, of.inner}, Activation::silu);
    });
    const Tensor qkv = random_tensor(ctx, on, {1, width});
    const Tensor out = random_tensor(ctx, on, {1, of.heads * of.d});
    const Tensor frequencies = random_tensor(ctx, Dtype::f32, {of.d / 2});
    for (const int64_t keys : {128, 256, 1024}) {
        std::vector<std::pair<Tensor, Tensor>> caches;
        const auto cache = [&] { return random_tensor(ctx, on, {1, of.kv_heads, keys, of.d}); };
        for (int i = 0; i < kCallsInGraph; ++i) caches.emplace_back(cache(), cache());
        BatchLayout rows = ragged(ctx, 1, 1, keys);
        rows.kv_ready = true;
        const Tensor position = ids(ctx, {1}, {static_cast<int32_t>(keys) - 1});
        const Columns q{qkv, 0}, k{qkv, of.heads * of.d}, v{qkv, (of.heads + of.kv_heads) * of.d};
        time(concat("rope_append ", keys).c_str(), [&](int i) {
            const auto& [cached_keys, cached_values] = caches[static_cast<size_t>(i)];
            cuda_ops().rope_append(ctx, cached_keys, cached_values, q, k, v, of.heads, position,
                                   {frequencies, 1.0f}, {}, {}, rows);
        });
        time(concat("attention ", keys).c_str(), [&](int i) {
            const auto& [cached_keys, cached_values] = caches[static_cast<size_t>(i)];
            cuda_ops().attention(ctx, out, qkv, cached_keys, cached_values, rows,
                                 {.scale = 0.125f, .causal = true});
        });
    }
}

}  // namespace

void time_decoder(Context& ctx) {
    ctx.batch_invariant = false;  // as a language model's steps
    for (const Shape& of : kShapes) {
        for (const Dtype type : {Dtype::bf16, Dtype::q8_0, Dtype::q4_0, Dtype::q4_k, Dtype::q6_k}) {
            if (of.c % 256 != 0 && type > Dtype::q8_0) continue;
            const auto product = [&](const char* what, int64_t n, int64_t k, bool normed = false,
                                     bool gated = false) {
                time_product(ctx, concat("decoder ", of.name, " ", what), n, k, type, normed,
                             gated);
            };
            product("norm+qkv", (of.heads + 2 * of.kv_heads) * of.d, of.c, true);
            product("out", of.c, of.heads * of.d);
            product("norm+gate_up", 2 * of.inner, of.c, true, true);
            product("down", of.c, of.inner);
            product("head", of.vocabulary, of.c);
        }
        time_small(ctx, of);
    }
    ctx.batch_invariant = true;
}

}  // namespace hark
