// The GPU's side of gradients.h at sizes where work is cut into many pieces: against the CPU's or
// plain sums, and twice with the same bits.
#include <limits>

#include "support/gradients.h"

namespace hark::test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class GradientsOnGpu : public GradientTest {
  protected:
    TestDevice cpu_{kCpuCase};

    Tensor on_cpu(const std::vector<float>& values, std::initializer_list<int64_t> shape) {
        return cpu_.up(values, Dtype::f32, shape);
    }
    Tensor zeros_on_cpu(std::initializer_list<int64_t> shape) {
        const int64_t size = Tensor(nullptr, Dtype::f32, shape).size();
        return on_cpu(std::vector<float>(static_cast<size_t>(size)), shape);
    }
    Values expected(const Tensor& t) { return in_double(cpu_.down(t)); }
};

TEST_P(GradientsOnGpu, OfActivationsAsOnTheCpu) {
    // The last begins at no whole 16 bytes.
    for (const auto& [rows, columns, skipped] :
         {std::array<int64_t, 3>{4096, 768, 0}, {1, 100003, 0}, {37, 1001, 1}}) {
        SCOPED_TRACE(concat(rows, " x ", columns));
        const int64_t count = (rows + skipped) * columns;
        const auto x = random(count, 1, 2), dy = random(count, 2);
        const auto part = [&](const Tensor& t) { return t.slice(skipped, rows + skipped); };
        const auto shape = {rows + skipped, columns};
        for (const Activation f : {Activation::gelu, Activation::gelu_tanh}) {
            const Tensor y = filled_active(shape, 0), dx = filled_active(shape, 0);
            const Tensor in = up_active(x, shape);
            activate(ctx(), part(y), part(in), f);
            activate_backward(ctx(), part(dx), part(up_active(dy, shape)), part(in), f);
            const Tensor y_there = zeros_on_cpu(shape), dx_there = zeros_on_cpu(shape);
            activate(cpu_.ctx(), y_there, on_cpu(x, shape), f);
            activate_backward(cpu_.ctx(), dx_there, on_cpu(dy, shape), on_cpu(x, shape), f);
            expect_values(part(y), expected(part(y_there)));
            expect_values(part(dx), expected(part(dx_there)));
        }
    }
}

// Many rows, and shapes that are no whole tiles; the gradient is from the h that forward has left.
TEST_P(GradientsOnGpu, OfActivatedLinearAsOnTheCpu) {
    const double second = activations() == Dtype::f32 ? 0 : 0x1p-8;  // rounded twice, not fused
    for (const auto& [rows, k, n, next] : {std::array<int64_t, 4>{20001, 72, 712, 200},
                                           {12800, 256, 1024, 64},
                                           {1, 64, 128, 8},
                                           {700, 40, 136, 328}}) {
        SCOPED_TRACE(concat(rows, " x ", k, " x ", n, ", ", next));
        const auto x = random(rows * k, 1), w = random(n * k, 2, 0.1);
        const auto b = random(n, 3), dy = random(rows * next, 4);
        const auto w_next = random(next * n, 5, 0.1);
        std::vector<std::vector<float>> first;
        for (int time = 0; time < 2; ++time) {
            const Tensor y = filled_active({rows, n}, 9), h = filled_active({rows, n}, 9);
            const Tensor dh = filled_active({rows, n}, 9), dw = filled({next, n}, 0);
            linear_activation(ctx(), y, h, up_active(x, {rows, k}), up_active(w, {n, k}),
                              up(b, {n}), Activation::gelu_tanh);
            linear_backward(ctx(), dh, dw, {}, up_active(dy, {rows, next}), y,
                            up_active(w_next, {next, n}), {h, Activation::gelu_tanh});
            const std::vector<std::vector<float>> found = {down(y), down(h), down(dh), down(dw)};
            EXPECT_TRUE(time == 0 || found == first);
            first = found;
            if (time == 1) continue;
            const Tensor y_there = zeros_on_cpu({rows, n}), h_there = zeros_on_cpu({rows, n});
            linear_activation(cpu_.ctx(), y_there, h_there, on_cpu(x, {rows, k}), on_cpu(w, {n, k}),
                              on_cpu(b, {n}), Activation::gelu_tanh);
            expect_values(h, expected(h_there), 2e-5);
            expect_values(y, expected(y_there), 2e-5 + second);
            const Tensor dh_there = zeros_on_cpu({rows, n}), dw_there = zeros_on_cpu({next, n});
            linear_backward(cpu_.ctx(), dh_there, dw_there, {}, on_cpu(dy, {rows, next}),
                            on_cpu(down(y), {rows, n}), on_cpu(w_next, {next, n}),
                            {on_cpu(down(h), {rows, n}), Activation::gelu_tanh});
            expect_values(dh, expected(dh_there), 2e-5 + 2 * second);
            const double root = std::sqrt(static_cast<double>(rows));
            expect_near(down(dw), expected(dw_there), 2e-5 * root);
        }
    }
}

TEST_P(GradientsOnGpu, OfLayerNormAsOnTheCpu) {
    for (const auto& [rows, n] : {std::pair<int64_t, int64_t>{4096, 768},
                                  {2500, 1280},
                                  {1100, 1600},
                                  {900, 256},
                                  {37, 12288},
                                  {600, 1001},
                                  {3, 20000}}) {
        SCOPED_TRACE(concat(rows, " x ", n));
        // A mean far from zero, which must cost no digits.
        auto x = random(rows * n, 1);
        for (float& value : x) value += 16;
        x = TestDevice::rounded(x, activations());
        const auto w = random_values(n, 2), dy = random(rows * n, 4), start = random(rows * n, 5);
        std::vector<std::vector<float>> first;
        for (int time = 0; time < 2; ++time) {
            const Tensor dx = up_active(start, {rows, n}), dw = filled({n}, 2), db = filled({n}, 3);
            layer_norm_backward(ctx(), dx, dw, db, up_active(dy, {rows, n}),
                                up_active(x, {rows, n}), up(w, {n}));
            const std::vector<std::vector<float>> found = {down(dx), down(dw), down(db)};
            EXPECT_TRUE(time == 0 || found == first);
            first = found;
            if (time == 1) continue;
            const Tensor dx_there = on_cpu(start, {rows, n});
            const Tensor dw_there = zeros_on_cpu({n}), db_there = zeros_on_cpu({n});
            layer_norm_backward(cpu_.ctx(), dx_there, dw_there, db_there, on_cpu(dy, {rows, n}),
                                on_cpu(x, {rows, n}), on_cpu(w, {n}));
            expect_values(dx, expected(dx_there), 4e-5);
            Values dw_expected = expected(dw_there), db_expected = expected(db_there);
            for (double& value : dw_expected) value += 2;
            for (double& value : db_expected) value += 3;
            // Sums of `rows` terms about 1 in size: their roundings are of the sum's size.
            const double tolerance = 2e-5 * std::sqrt(static_cast<double>(rows));
            expect_near(down(dw), dw_expected, tolerance);
            expect_near(down(db), db_expected, tolerance);
        }
    }
}

// A token in half of all rows, many tokens once, runs that end where pieces do; ids outside of the
// tables, which are left out.
TEST_P(GradientsOnGpu, OfEmbeddingWithATokenThatIsEverywhere) {
    constexpr int64_t kVocab = 50257, kPlaces = 1024;
    for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{4096, 768}, {1111, 35}}) {
        SCOPED_TRACE(concat(rows, " x ", columns));
        SplitMix64 generator(7);
        std::vector<int32_t> tokens, places;
        for (int64_t t = 0; t < rows; ++t) {
            const uint64_t drawn = generator.draw();
            const auto any = static_cast<int32_t>(drawn % (drawn & 256 ? kVocab : 100));
            tokens.push_back(t % 2 ? 50256 : t % 64 == 0 ? 5 : any);
            places.push_back(static_cast<int32_t>(t % kPlaces));
        }
        tokens[10] = -1, tokens[20] = kVocab, tokens[30] = std::numeric_limits<int32_t>::min();
        places[40] = kPlaces, places[50] = -7;
        const auto dy = random(rows * columns, 1);
        std::vector<double> by_token(kVocab * columns, 1), by_place(kPlaces * columns, -1);
        for (int64_t t = 0; t < rows; ++t)
            for (int64_t c = 0; c < columns; ++c) {
                const double value = dy[static_cast<size_t>(t * columns + c)];
                const int32_t token = tokens[static_cast<size_t>(t)];
                const int32_t place = places[static_cast<size_t>(t)];
                if (0 <= token && token < kVocab)
                    by_token[static_cast<size_t>(token * columns + c)] += value;
                if (0 <= place && place < kPlaces)
                    by_place[static_cast<size_t>(place * columns + c)] += value;
            }
        std::vector<float> first;
        for (int time = 0; time < 2; ++time) {
            const Tensor table = filled({kVocab, columns}, 1);
            const Tensor positions = filled({kPlaces, columns}, -1);
            embedding_backward(ctx(), table, positions, up_active(dy, {rows, columns}), up(tokens),
                               up(places));
            const std::vector<float> found = down(table);
            EXPECT_TRUE(time == 0 || found == first);
            first = found;
            expect_near(found, by_token, 1e-4);
            expect_near(down(positions), by_place, 1e-5);
        }
    }
}

TEST_P(GradientsOnGpu, OfCrossEntropyAsOnTheCpu) {
    // The last has several rows per block, the third not the same number of values per thread.
    for (const auto& [rows, columns, vocab] : {std::array<int64_t, 3>{40, 50264, 50257},
                                               {5, 50257, 50257},
                                               {7, 61440, 61433},
                                               {3000, 1024, 1009}}) {
        SCOPED_TRACE(concat(rows, " x ", columns));
        const auto logits = random(rows * columns, 1, 4);
        std::vector<int32_t> targets;
        for (int32_t t = 0; t < rows; ++t)
            targets.push_back(t % 37 == 3 ? -1 : static_cast<int32_t>(t * 997 % vocab));
        targets[0] = static_cast<int32_t>(vocab) - 1;
        const Tensor there = on_cpu(logits, {rows, columns}), losses_there = zeros_on_cpu({rows});
        const float scale = 1024;  // a power of two, so that gradients are seen next to 1
        cross_entropy(cpu_.ctx(), losses_there, there, cpu_.up(targets), vocab, scale);
        const Tensor x = up_active(logits, {rows, columns}), losses = filled({rows}, 5);
        cross_entropy(ctx(), losses, x, up(targets), vocab, 0);
        expect_values(losses, expected(losses_there), 2e-5);
        EXPECT_EQ(down(x), logits);
        cross_entropy(ctx(), losses, x, up(targets), vocab, scale);
        expect_values(losses, expected(losses_there), 2e-5);
        expect_values(x, expected(there), 2e-5);
        const std::vector<float> found = down(x);
        for (int64_t t = 0; t < rows; ++t)
            for (int64_t c = vocab; c < columns; ++c)
                EXPECT_EQ(found[static_cast<size_t>(t * columns + c)], 0);
    }
}

TEST_P(GradientsOnGpu, ATargetOutsideOfTheVocabularyIsSeen) {
    const auto logits = random(4 * 24, 1, 3);
    const Tensor x = up_active(logits, {4, 24}), losses = filled({4}, 5);
    cross_entropy(ctx(), losses, x, up(std::vector<int32_t>{-2, 19, 20, -1}), 20, 1);
    const std::vector<float> found = down(losses);
    EXPECT_TRUE(std::isnan(found[0]) && std::isnan(found[2]));
    EXPECT_TRUE(std::isfinite(found[1]) && found[3] == 0);
    // So that the step is left out.
    const std::vector<float> gradient = down(x);
    EXPECT_TRUE(std::isnan(gradient[0]) && std::isfinite(gradient[24]));
}

TEST_P(GradientsOnGpu, SetZero) {
    const Tensor x = filled_active({3, 1001}, 7);
    set_zero(ctx(), x.slice(1, 3));
    std::vector<float> expected(3 * 1001);
    std::fill_n(expected.begin(), 1001, 7.0f);
    EXPECT_EQ(down(x), expected);
}

INSTANTIATE_TEST_SUITE_P(Devices, GradientsOnGpu, testing::Values(kCudaF32Case, kCudaBf16Case),
                         name_of_case);

class OptimizerOnGpu : public GradientsOnGpu {};

// A generator by counters: the same bits wherever it runs, infinities and NaN too.
TEST_P(OptimizerOnGpu, RoundsAtRandomAsTheCpuDoes) {
    std::vector<float> x = random_values(40001, 1);
    const float infinity = std::numeric_limits<float>::infinity();
    x[7] = infinity, x[8] = -infinity, x[9] = kNan;
    const auto rounded = [&](TestDevice& on, int64_t first) {
        const int64_t end = std::ssize(x);
        const Tensor from = on.up(x, Dtype::f32, {end}).slice(first, end);
        const Tensor to = on.empty(Dtype::bf16, {end - first});
        stochastic_round(on.ctx(), to, from, 3);
        return on.down(to);
    };
    for (const int64_t first : {0, 1}) {  // 1: at no whole 16 bytes
        const std::vector<float> here = rounded(*device_, first), there = rounded(cpu_, first);
        ASSERT_EQ(here.size(), there.size());
        EXPECT_EQ(0, std::memcmp(here.data(), there.data(), here.size() * sizeof(float)));
    }
}

TEST_P(OptimizerOnGpu, NormsAndStepsOfManyAsOnTheCpu) {
    constexpr int64_t kCount = 3000007, kDecayed = 2000003;
    const auto start = random_values(kCount, 1), g = random_values(kCount, 2);
    for (const int64_t first : {0, 1}) {  // 1: at no whole 16 bytes
        const int64_t n = kCount - first;
        const auto part = [&](const Tensor& t) { return t.slice(first, kCount); };
        const AdamW with = {.rate = 1e-2f, .step = 3};
        std::vector<std::vector<float>> found;
        const auto step = [&](TestDevice& on) {
            const auto up = [&](const std::vector<float>& values) {
                return part(on.up(values, Dtype::f32, {kCount}));
            };
            const Tensor p = up(start), m = up(start), gradient = up(g);
            std::vector<float> squares = start;
            for (float& value : squares) value *= value;
            const Tensor v = up(squares), clip = on.empty(Dtype::f32, {2});
            clip_by_norm(on.ctx(), clip, gradient, 1);
            adamw(on.ctx(), p, m, v, gradient, clip, kDecayed, with);
            return std::vector{on.down(p), on.down(m), on.down(v), on.down(clip)};
        };
        const auto here = step(*device_), again = step(*device_), there = step(cpu_);
        EXPECT_TRUE(here == again);
        for (size_t i = 0; i < 3; ++i) expect_near(here[i], there[i], 1e-6);
        EXPECT_NEAR(here[3][0], std::sqrt(static_cast<double>(n)), 5);
        EXPECT_NEAR(here[3][0], there[3][0], 1e-6 * there[3][0]);
        EXPECT_NEAR(here[3][1], there[3][1], 1e-6 * there[3][1]);
    }
}

TEST_P(OptimizerOnGpu, AStepWithoutANormChangesNothing) {
    const auto start = random_values(1003, 1);
    const auto values = [&] { return up(start, {1003}); };
    const Tensor p = values(), m = values(), v = values();
    for (const float norm : {kNan, std::numeric_limits<float>::infinity()})
        adamw(ctx(), p, m, v, values(), up(std::vector<float>{norm, 1}, {2}), 7, {.rate = 1});
    for (const Tensor& t : {p, m, v}) EXPECT_EQ(down(t), start);
}

INSTANTIATE_TEST_SUITE_P(Devices, OptimizerOnGpu, testing::Values(kCudaF32Case), name_of_case);

}  // namespace
}  // namespace hark::test
