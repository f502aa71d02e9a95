// Times training's operations except products and attention, at the sizes of GPT-2 124M with 64
// sequences of 1024 tokens. gradients_torch.py next to this file times PyTorch's.
#include "cuda_timing.h"
#include "kernels/ops_table.h"

namespace hark {
namespace {

constexpr int64_t kRows = 65536, kChannels = 768, kParameters = 124439808;

void time_activation(Context& ctx, Activation f, const char* name, Dtype dtype) {
    const Arena::Scope scope(ctx.arena);
    const auto any = [&] { return random_tensor(ctx, dtype, {kRows, 4 * kChannels}); };
    const Tensor x = any(), y = any(), dy = any();
    const std::string shape = concat(kRows, "x", 4 * kChannels);
    const double forward = microseconds(ctx, [&](int) { cuda_ops().activate(ctx, y, x, f); });
    print(concat("training ", name).c_str(), dtype, shape, forward, 0, bytes_of({x, y}));
    const double backward =
        microseconds(ctx, [&](int) { cuda_ops().activate_backward(ctx, y, dy, x, f); });
    print(concat("training ", name, "_backward").c_str(), dtype, shape, backward, 0,
          bytes_of({x, y, dy}));
}

void time_norm(Context& ctx, int64_t channels, Dtype dtype) {
    const Arena::Scope scope(ctx.arena);
    const auto any = [&] { return random_tensor(ctx, dtype, {kRows, channels}); };
    const Tensor dx = any(), dy = any(), x = any();
    const Tensor w = random_tensor(ctx, Dtype::f32, {channels});
    const Tensor dw = random_tensor(ctx, Dtype::f32, {channels});
    const Tensor db = random_tensor(ctx, Dtype::f32, {channels});
    const double us = microseconds(
        ctx, [&](int) { cuda_ops().layer_norm_backward(ctx, dx, dw, db, dy, x, w, 1e-5f, {}); });
    print("training layer_norm_backward", dtype, concat(kRows, "x", channels), us, 0,
          bytes_of({dx, dx, dy, x}));
}

// What a Llama of 1B parameters has next to products: 2048 channels, 8192 of the MLP, 32 heads of
// 64 channels and 8 of keys and values.
void time_llama(Context& ctx, Dtype dtype) {
    const Arena::Scope scope(ctx.arena);
    constexpr int64_t kFewRows = 8192, kWidth = 2048, kInner = 8192, kHeads = 32, kKvHeads = 8;
    const auto show = [&](const char* what, int64_t columns, double bytes, const auto& call) {
        print(what, dtype, concat(kFewRows, "x", columns), microseconds(ctx, call), 0, bytes);
    };
    const auto any = [&](int64_t columns) {
        return random_tensor(ctx, dtype, {kFewRows, columns});
    };
    const CudaOps& cuda = cuda_ops();
    const Tensor dx = any(kWidth), dy = any(kWidth), x = any(kWidth);
    const Tensor w = random_tensor(ctx, Dtype::f32, {kWidth});
    const Tensor dw = random_tensor(ctx, Dtype::f32, {kWidth});
    show("training rms_norm_backward", kWidth, bytes_of({dx, dx, dy, x}),
         [&](int) { cuda.rms_norm_backward(ctx, dx, dw, dy, x, w, 1e-5f, {}); });
    const Tensor d_both = any(2 * kInner), both = any(2 * kInner), d_act = any(kInner);
    show("training gated_activation_backward", kInner, bytes_of({d_both, both, d_act}), [&](int) {
        cuda.gated_activation_backward(ctx, {d_both}, {d_both, kInner}, d_act, {both},
                                       {both, kInner}, Activation::silu);
    });
    std::vector<int32_t> places;
    for (int64_t t = 0; t < kFewRows; ++t) places.push_back(static_cast<int32_t>(t % 2048));
    const Tensor position = ids(ctx, {kFewRows}, places);
    const Rope by{random_tensor(ctx, Dtype::f32, {32})};
    const Tensor heads = any((kHeads + kKvHeads) * 64);
    show("training rope", heads.dim(1), bytes_of({heads, heads}),
         [&](int) { cuda.rope(ctx, {heads}, kHeads + kKvHeads, 64, position, by, false); });
}

// Tokens of which a few are frequent, as in text: the n-th about as often as 1 / n; or one alone.
void time_embedding(Context& ctx, Dtype dtype, bool one_token) {
    const Arena::Scope scope(ctx.arena);
    constexpr int64_t kVocabulary = 50264, kPlaces = 1024;
    std::mt19937 generator(3);
    std::uniform_real_distribution<double> uniform;
    std::vector<int32_t> tokens, places;
    std::vector<char> seen(kVocabulary);
    for (int64_t t = 0; t < kRows; ++t) {
        tokens.push_back(one_token ? 50256
                                   : static_cast<int32_t>(std::pow(50257, uniform(generator))) - 1);
        places.push_back(static_cast<int32_t>(t % kPlaces));
        seen[static_cast<size_t>(tokens.back())] = 1;
    }
    const Tensor ids_of = ids(ctx, {kRows}, tokens), places_of = ids(ctx, {kRows}, places);
    const Tensor dy = random_tensor(ctx, dtype, {kRows, kChannels});
    const Tensor table = random_tensor(ctx, Dtype::f32, {kVocabulary, kChannels});
    const Tensor positions = random_tensor(ctx, Dtype::f32, {kPlaces, kChannels});
    const double us = microseconds(ctx, [&](int) {
        cuda_ops().embedding_backward(ctx, table, positions, dy, ids_of, places_of);
    });
    const auto touched = std::count(seen.begin(), seen.end(), 1) + kPlaces;
    print(one_token ? "training embedding_backward one token" : "training embedding_backward",
          dtype, concat(kRows, "x", kChannels), us, 0,
          bytes_of({dy, dy}) + 2.0 * double(touched) * kChannels * sizeof(float));
}

void time_loss(Context& ctx, Dtype dtype) {
    const Arena::Scope scope(ctx.arena);
    constexpr int64_t kAtOnce = 16384, kColumns = 50264, kVocabulary = 50257;
    const Tensor given = random_tensor(ctx, dtype, {kAtOnce, kColumns});
    const Tensor logits = random_tensor(ctx, dtype, {kAtOnce, kColumns});
    const Tensor losses = random_tensor(ctx, Dtype::f32, {kAtOnce});
    std::vector<int32_t> wanted;
    for (int64_t t = 0; t < kAtOnce; ++t)
        wanted.push_back(static_cast<int32_t>(t * 7919 % kVocabulary));
    const Tensor targets = ids(ctx, {kAtOnce}, wanted);
    for (const float scale : {1.0f, 0.0f}) {
        const double us = microseconds_in_place(
            ctx,
            [&] {
                check(cudaMemcpyAsync(logits.data, given.data, given.bytes(),
                                      cudaMemcpyDeviceToDevice,
                                      static_cast<cudaStream_t>(ctx.stream)),
                      "copy");
            },
            [&] { cuda_ops().cross_entropy(ctx, losses, logits, targets, kVocabulary, scale); });
        print(scale == 0 ? "training cross_entropy, losses alone" : "training cross_entropy", dtype,
              concat(kAtOnce, "x", kColumns), us, 0, bytes_of({logits}) * (scale == 0 ? 1 : 2));
    }
}

void time_optimizer(Context& ctx) {
    const Arena::Scope scope(ctx.arena);
    const auto any = [&] { return random_tensor(ctx, Dtype::f32, {kParameters}); };
    const Tensor p = any(), m = any(), v = any(), g = any(),
                 clip = ctx.arena.tensor(Dtype::f32, {2});
    const Tensor halves = ctx.arena.tensor(Dtype::bf16, {kParameters});
    const auto show = [&](const char* what, double bytes, const std::function<void(int)>& call) {
        print(what, Dtype::f32, concat(kParameters), microseconds(ctx, call), 0, bytes);
    };
    const CudaOps& cuda = cuda_ops();
    cuda.set_zero(ctx, v);  // of which roots are taken
    show("training clip_by_norm", bytes_of({g}), [&](int) { cuda.clip_by_norm(ctx, clip, g, 1); });
    show("training adamw", bytes_of({p, m, v, g, p, m, v}), [&](int i) {
        cuda.adamw(ctx, p, m, v, g, clip, kParameters - 100000, {.rate = 1e-3f, .step = i + 1});
    });
    show("training stochastic_round", bytes_of({p, halves}),
         [&](int i) { cuda.stochastic_round(ctx, halves, p, static_cast<uint64_t>(i)); });
    show("training set_zero", bytes_of({g}), [&](int) { cuda.set_zero(ctx, g); });
}

}  // namespace

void time_training(Context& ctx) {
    if (!is_chosen("training")) return;
    for (const Dtype dtype : {Dtype::bf16, Dtype::f32}) {
        time_activation(ctx, Activation::gelu_tanh, "gelu_tanh", dtype);
        time_activation(ctx, Activation::gelu, "gelu", dtype);
    }
    for (const int64_t channels : {768, 1280, 1600}) time_norm(ctx, channels, Dtype::bf16);
    time_norm(ctx, 768, Dtype::f32);
    time_llama(ctx, Dtype::bf16);
    for (const bool one_token : {false, true}) time_embedding(ctx, Dtype::bf16, one_token);
    for (const Dtype dtype : {Dtype::bf16, Dtype::f32}) time_loss(ctx, dtype);
    time_optimizer(ctx);
}

}  // namespace hark
