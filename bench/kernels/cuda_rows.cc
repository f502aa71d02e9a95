// Times inference's operations except products and attention, at Whisper's sizes: norms,
// convolutions, caches, scores, tables and the choice of a token. cuda_ops_torch.py next to this
// file times PyTorch's.
#include "cuda_timing.h"
#include "whisper/transcribe/token_sampler.h"

namespace hark {
namespace {

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

// Keys and values of `queries` rows per sequence, the last two thirds of the columns of x, as a
// fused product leaves them.
void time_append(Context& ctx, int b, int64_t h, int64_t queries, int64_t capacity, int64_t d,
                 Dtype dtype) {
    if (!is_chosen("append_cache")) return;
    const Arena::Scope scope(ctx.arena);
    const std::vector<Tensor> x = rotated(ctx, dtype, {b * queries, 3 * h * d});
    const std::vector<Tensor> caches = rotated(ctx, dtype, {2 * b, h, capacity, d});
    const BatchLayout rows = ragged(ctx, b, queries, capacity);
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
    const BatchLayout rows = ragged(ctx, b, queries, kFrames);
    const double us = microseconds(ctx, [&](int i) {
        cuda_ops().attention_scores(ctx, scores, q, keys[static_cast<size_t>(i) % keys.size()],
                                    Tensor(heads.data(), Dtype::i32, {n}), rows, 0.125f);
    });
    print("attention_scores", dtype, concat("B", b, " n", n, " T", queries, " S", kFrames), us,
          2.0 * double(scores.size()) * kSize,
          static_cast<double>(scores.bytes()) +
              double(b * n * kSize * (queries + kFrames)) * double(size_of(dtype)));
}

// Tokens of a vocabulary of Whisper's size, and their positions.
void time_embedding(Context& ctx, int64_t t, int64_t c, Dtype dtype) {
    if (!is_chosen("embedding")) return;
    const Arena::Scope scope(ctx.arena);
    constexpr int64_t kVocabulary = 51866, kPlaces = 448;
    const Matrix table = {random_tensor(ctx, dtype, {kVocabulary, c}), {}};
    const Tensor positions = random_tensor(ctx, Dtype::f32, {kPlaces, c});
    std::vector<int32_t> tokens, places;
    for (int64_t i = 0; i < t; ++i) {
        tokens.push_back(static_cast<int32_t>(i * 7919 % kVocabulary));
        places.push_back(static_cast<int32_t>(i % kPlaces));
    }
    const Tensor ids_of = ids(ctx, {t}, tokens), places_of = ids(ctx, {t}, places);
    const Tensor y = random_tensor(ctx, dtype, {t, c});
    const double us = microseconds(
        ctx, [&](int) { cuda_ops().embedding(ctx, y, ids_of, places_of, table, positions, 1.0f); });
    const auto numbers = static_cast<double>(std::min(t, kPlaces) * c);
    print("embedding", dtype, concat(t, "x", c), us, 0, 2 * bytes_of({y}) + 4 * numbers);
}

void time_positions(Context& ctx, int64_t b, int64_t t, int64_t c, Dtype dtype) {
    if (!is_chosen("add_positions")) return;
    const Arena::Scope scope(ctx.arena);
    const std::vector<Tensor> x = rotated(ctx, dtype, {b, t, c});
    const Tensor positions = random_tensor(ctx, Dtype::f32, {t, c});
    const double us = microseconds(ctx, [&](int i) {
        cuda_ops().add_positions(ctx, x[static_cast<size_t>(i) % x.size()], positions);
    });
    print("add_positions", dtype, concat("B", b, " ", t, "x", c), us, 0,
          bytes_of({x[0], x[0], positions}));
}

// Every fourth row, as the prompts' last ones are taken for the logits.
void time_select(Context& ctx, int64_t n, int64_t c, Dtype dtype) {
    if (!is_chosen("select_rows")) return;
    const Arena::Scope scope(ctx.arena);
    const std::vector<Tensor> x = rotated(ctx, dtype, {4 * n, c});
    const Tensor y = random_tensor(ctx, dtype, {n, c});
    std::vector<int32_t> wanted;
    for (int64_t i = 0; i < n; ++i) wanted.push_back(static_cast<int32_t>(4 * i + 3));
    const Tensor rows = ids(ctx, {n}, wanted);
    const double us = microseconds(ctx, [&](int i) {
        cuda_ops().select_rows(ctx, y, x[static_cast<size_t>(i) % x.size()], rows);
    });
    print("select_rows", dtype, concat(n, "x", c), us, 0, 2 * bytes_of({y}));
}

// The likeliest token of n rows of logits, next to the rules on timestamps.
void time_choose(Context& ctx, int64_t n) {
    if (!is_chosen("choose")) return;
    const Arena::Scope scope(ctx.arena);
    constexpr int32_t kVocabulary = 51866, kTimestamps = 50365;
    const std::vector<Tensor> logits = rotated(ctx, Dtype::f32, {n, kVocabulary});
    whisper::LogitConstraints constraints;
    constraints.timestamp_begin = kTimestamps;
    const whisper::TokenSampler choose(ctx, constraints, kVocabulary);
    const std::vector<whisper::SampleRequest> wanted(
        static_cast<size_t>(n), whisper::sample_request(constraints, {}, kVocabulary));
    const auto bytes = static_cast<int64_t>(wanted.size() * sizeof wanted[0]);
    const Tensor rows = ctx.arena.tensor(Dtype::u8, {bytes});
    cuda_runtime().upload(ctx, rows.data, wanted.data(), rows.bytes());
    const auto width = static_cast<int64_t>(sizeof(whisper::Candidate));
    const Tensor best = ctx.arena.tensor(Dtype::u8, {n, width});
    const double us = microseconds(ctx, [&](int i) {
        choose(ctx, reinterpret_cast<whisper::Candidate*>(best.data), 1,
               logits[static_cast<size_t>(i) % logits.size()],
               reinterpret_cast<const whisper::SampleRequest*>(rows.data));
    });
    print("choose", Dtype::f32, concat(n, "x", kVocabulary), us, 0, bytes_of({logits[0]}));
}

}  // namespace

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
    for (int64_t t : {1, 128, 1024}) time_embedding(ctx, t, 1280, half);
    time_positions(ctx, 16, 1500, 1280, half);
    for (int64_t n : {1, 128}) time_select(ctx, n, 1280, half);
    for (int64_t n : {1, 8, 128}) time_choose(ctx, n);
}

}  // namespace hark
