// A decoding step that is captured and replayed gives the bits that its operations give one by one:
// steps like GPT-2's and Whisper's, of two layers with random weights.
#include "nn/blocks.h"
#include "support/ops.h"

namespace hark::test {
namespace {

// As random_values, of which it repeats many: a step has millions of weights.
std::vector<float> many_values(int64_t count, uint64_t seed, double deviation) {
    static const std::vector<float> some = random_values(1000003, 1);
    std::vector<float> values(static_cast<size_t>(count));
    size_t at = seed * 7919 % some.size();
    for (float& value : values) {
        value = some[at] * static_cast<float>(deviation);
        if (++at == some.size()) at = 0;
    }
    return values;
}

struct RecordedStepShape {
    const char* name;
    int64_t channels, heads, vocabulary, capacity;
    int64_t window;  // its keys, or 0 for a model without cross-attention
    bool int8 = false;
    Activation activation = Activation::gelu;
};

class Step {
  public:
    static constexpr int64_t kLayers = 2, kSlots = 9;

    Step(TestDevice& device, const RecordedStepShape& shape, Dtype dtype)
        : device_(device), shape_(shape), dtype_(dtype) {
        const int64_t c = shape.channels, d = c / shape.heads;
        table_ = matrix(shape.vocabulary, c);
        positions_ =
            device.up(random_values(shape.capacity * c, 5, 0.1), Dtype::f32, {shape.capacity, c});
        ln_ = norm();
        for (int64_t i = 0; i < kLayers; ++i) {
            Layer layer{norm(), norm(), norm(), {}, {}, {}, {}, {}, {}, {}, {}};
            layer.attn = {linear_of(3 * c, c), linear_of(c, c)};
            layer.query = linear_of(c, c);
            layer.out = linear_of(c, c);
            layer.mlp = {linear_of(4 * c, c), linear_of(c, 4 * c), shape.activation};
            for (Tensor* cache : {&layer.keys, &layer.values})
                *cache = values({kSlots, shape.heads, shape.capacity, d}, 1);
            if (shape.window > 0)
                for (Tensor* cache : {&layer.window_keys, &layer.window_values})
                    *cache = values({kSlots, shape.heads, shape.window, d}, 1);
            layers_.push_back(layer);
        }
    }

    // Rows of one token each, whose sequences have `lengths` keys with theirs.
    void start(const std::vector<int32_t>& lengths) {
        lengths_ = lengths;
        const auto rows = static_cast<int32_t>(lengths.size());
        std::vector<int32_t> tokens, places, starts, slots, windows;
        for (int32_t i = 0; i < rows; ++i) {
            tokens.push_back(static_cast<int32_t>((31 * i + 5) % shape_.vocabulary));
            places.push_back(lengths[static_cast<size_t>(i)] - 1);
            starts.push_back(i);
            slots.push_back(rows - 1 - i);
            windows.push_back(static_cast<int32_t>(shape_.window));
        }
        starts.push_back(rows);
        tokens_ = device_.up(tokens);
        places_ = device_.up(places);
        const Tensor start = device_.up(starts), slot = device_.up(slots);
        own_ = {start, slot, device_.up(lengths), 1, shape_.capacity};
        window_rows_ = {start, slot, device_.up(windows), 1, shape_.window};
        wanted_ = start.slice(0, rows);
        logits_ = device_.empty(Dtype::f32, {rows, shape_.vocabulary});
    }

    // Whether its attention may read what the caches hold before the previous kernels have ended.
    void set_kv_ready(bool kv_ready) { own_.kv_ready = window_rows_.kv_ready = kv_ready; }

    void run() {
        Context& ctx = device_.ctx();
        const Arena::Scope scope(ctx.arena);
        const int64_t rows = tokens_.dim(0), c = shape_.channels;
        const float scale = 0.125f;
        Tensor x = ctx.arena.tensor(dtype_, {rows, c});
        embedding(ctx, x, tokens_, places_, table_, positions_);
        for (Layer& layer : layers_) {
            const Arena::Scope of_layer(ctx.arena);
            layer.attn.add_to(ctx, x, layer.attn_ln, layer.keys, layer.values, own_);
            if (shape_.window > 0) {
                Tensor q = layer.query(ctx, layer.window_ln(ctx, x));
                Tensor attn_out = ctx.arena.tensor(dtype_, {rows, c});
                attention(ctx, attn_out, q, layer.window_keys, layer.window_values, window_rows_,
                          {.scale = scale, .causal = false});
                layer.out.add_to(ctx, x, attn_out);
            }
            layer.mlp.add_to(ctx, x, layer.mlp_ln);
        }
        Tensor last = ctx.arena.tensor(dtype_, {rows, c});
        select_rows(ctx, last, x, wanted_);
        linear(ctx, logits_, ln_(ctx, last), table_);
    }

    // Logits, then the caches.
    std::vector<float> results() {
        std::vector<float> all = device_.down(logits_);
        for (const Layer& layer : layers_)
            for (const Tensor& cache : {layer.keys, layer.values}) {
                const std::vector<float> more = device_.down(cache);
                all.insert(all.end(), more.begin(), more.end());
            }
        return all;
    }
    // Overwrites what a run writes: the logits, and each row's newest keys and values.
    void forget() {
        Context& ctx = device_.ctx();
        const std::vector<float> nothing(static_cast<size_t>(logits_.size()), -7);
        cuda_runtime().upload(ctx, logits_.data, nothing.data(), logits_.bytes());
        const auto rows = static_cast<int64_t>(lengths_.size());
        for (const Layer& layer : layers_)
            for (const Tensor& cache : {layer.keys, layer.values})
                for (int64_t row = 0; row < rows; ++row)
                    for (int64_t head = 0; head < shape_.heads; ++head) {
                        const int64_t slot = rows - 1 - row;
                        const int64_t place = lengths_[static_cast<size_t>(row)] - 1;
                        Tensor newest =
                            cache.slice(slot, slot + 1)
                                .reshaped({shape_.heads * shape_.capacity, cache.dim(3)})
                                .slice(head * shape_.capacity + place,
                                       head * shape_.capacity + place + 1);
                        cuda_runtime().upload(ctx, newest.data, nothing.data(), newest.bytes());
                    }
        cuda_runtime().synchronize(ctx);
    }

  private:
    struct Layer {
        LayerNorm attn_ln, window_ln, mlp_ln;
        SelfAttention attn;
        Linear query, out;
        Mlp mlp;
        Tensor keys, values, window_keys, window_values;
    };

    Tensor values(std::initializer_list<int64_t> shape, double deviation) {
        int64_t count = 1;
        for (const int64_t size : shape) count *= size;
        return device_.up(many_values(count, ++seed_, deviation), dtype_, shape);
    }
    Matrix matrix(int64_t n, int64_t k) {
        const double deviation = 1 / std::sqrt(static_cast<double>(k));
        if (!shape_.int8) return {values({n, k}, deviation), {}};
        std::vector<float> whole = many_values(n * k, ++seed_, 40);
        for (float& value : whole) value = std::round(std::clamp(value, -127.0f, 127.0f));
        const std::vector<float> scales(static_cast<size_t>(n), static_cast<float>(deviation / 40));
        return {device_.up(whole, Dtype::i8, {n, k}), device_.up(scales, Dtype::f32, {n})};
    }
    Linear linear_of(int64_t n, int64_t k) {
        return {matrix(n, k), device_.up(random_values(n, ++seed_, 0.1), Dtype::f32, {n})};
    }
    LayerNorm norm() {
        const int64_t c = shape_.channels;
        std::vector<float> weight = random_values(c, ++seed_, 0.1);
        for (float& value : weight) value += 1;
        return {device_.up(weight, Dtype::f32, {c}),
                device_.up(random_values(c, ++seed_, 0.1), Dtype::f32, {c})};
    }

    TestDevice& device_;
    RecordedStepShape shape_;
    Dtype dtype_;
    uint64_t seed_ = 100;
    Matrix table_;
    std::vector<int32_t> lengths_;
    Tensor positions_, tokens_, places_, wanted_, logits_;
    BatchLayout own_, window_rows_;
    LayerNorm ln_;
    std::vector<Layer> layers_;
};

class CapturedStep : public testing::TestWithParam<DeviceCase> {};

void expect_same_step(TestDevice& device, const RecordedStepShape& shape, Dtype dtype,
                      const std::vector<std::vector<int32_t>>& batches) {
    Step step(device, shape, dtype);
    for (const std::vector<int32_t>& lengths : batches) {
        step.start(lengths);
        step.set_kv_ready(false);  // the reference reads no cache early
        step.run();
        const std::vector<float> expected = step.results();
        step.set_kv_ready(true);
        EXPECT_LT(std::abs(expected.front()), 1e3f);
        const std::shared_ptr<void> graph =
            cuda_runtime().capture(device.ctx(), [&] { step.run(); });
        for (int replay = 0; replay < 2; ++replay) {
            step.forget();
            cuda_runtime().replay(device.ctx(), graph.get());
            const std::vector<float> found = step.results();
            size_t differ = 0, first = 0;
            for (size_t i = found.size(); i-- > 0;)
                if (std::memcmp(&found[i], &expected[i], sizeof(float)) != 0) ++differ, first = i;
            EXPECT_EQ(differ, 0u) << shape.name << ", " << lengths.size() << " rows, replay "
                                  << replay << ": of " << found.size() << " values, the first at "
                                  << first << ": expected " << expected[first] << ", found "
                                  << found[first];
        }
    }
}

TEST_P(CapturedStep, StepsLikeGpt2sHaveTheSameBits) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    const Dtype dtype = GetParam().activations;
    const std::vector<std::vector<int32_t>> batches = {{1},
                                                       {520},
                                                       {256, 257},
                                                       {3, 400, 1},
                                                       {5, 6, 255, 512, 513, 500, 520, 2},
                                                       {1, 2, 3, 4, 5, 6, 7, 8, 9}};
    constexpr Activation kTanh = Activation::gelu_tanh;
    for (const RecordedStepShape& shape :
         {RecordedStepShape{"gpt 768", 768, 12, 1031, 520, 0, false, kTanh},
          RecordedStepShape{"gpt 1600", 1600, 25, 500, 520, 0, false, kTanh},
          RecordedStepShape{"gpt 128", 128, 2, 77, 520, 0, false, kTanh},
          RecordedStepShape{"gpt 768 int8", 768, 12, 1031, 520, 0, true, kTanh}})
        expect_same_step(device, shape, dtype, batches);
}

TEST_P(CapturedStep, StepsLikeWhispersHaveTheSameBits) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    const Dtype dtype = GetParam().activations;
    const std::vector<std::vector<int32_t>> batches = {
        {1}, {447}, {448, 1}, {9, 256, 257, 30}, {5, 6, 255, 448, 20, 100, 300, 2}};
    for (const RecordedStepShape& shape :
         {RecordedStepShape{"whisper 1280", 1280, 20, 5187, 448, 1500},
          RecordedStepShape{"whisper 384", 384, 6, 1031, 448, 1500},
          RecordedStepShape{"whisper 384 int8", 384, 6, 1031, 448, 1500, true}})
        expect_same_step(device, shape, dtype, batches);
}

// Heads and rows that only the kernels for any shape take.
TEST_P(CapturedStep, StepsOfOddShapesHaveTheSameBits) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    const Dtype dtype = GetParam().activations;
    expect_same_step(device, {"72 channels a head", 720, 10, 101, 64, 0}, dtype, {{1}, {64, 3}});
    expect_same_step(device, {"36 channels", 36, 1, 101, 64, 0}, dtype, {{2}});
}

INSTANTIATE_TEST_SUITE_P(Devices, CapturedStep,
                         testing::Values(kCudaF32Case, kCudaF16Case, kCudaBf16Case), name_of_case);

}  // namespace
}  // namespace hark::test
