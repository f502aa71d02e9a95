// Self-attention and its gradients against the same in double, and against central differences.
#include "support/gradients.h"

namespace hark::test {
namespace {

// The sequences [start[b], start[b + 1]) by their rows.
struct SelfAttentionRows {
    explicit SelfAttentionRows(const std::vector<int32_t>& start) {
        for (size_t b = 0; b + 1 < start.size(); ++b)
            for (int32_t t = start[b]; t < start[b + 1]; ++t)
                first.push_back(start[b]), end.push_back(start[b + 1]);
    }
    std::vector<int32_t> first, end;
};

struct SelfAttentionShape {
    std::vector<int32_t> start;
    int64_t heads, head;
    int64_t group = 1;  // heads that share keys and values

    int64_t rows() const { return start.back(); }
    int64_t channels() const { return heads * head; }
    int64_t width() const { return channels() + 2 * channels() / group; }
};

struct Results {
    Values out, lse, dqkv;
};

double exactly(double x) { return x; }
double as_bf16(double x) { return to_float(to_bf16(static_cast<float>(x))); }

// Row by row, each step's result rounded: in bf16 as PyTorch computes where its tensors are bf16
// and no kernel fuses the steps.
Results attend(const SelfAttentionShape& shape, const Values& qkv, const Values& dout,
               double (*round)(double)) {
    const auto rows = static_cast<size_t>(shape.rows()), heads = static_cast<size_t>(shape.heads);
    const auto d = static_cast<size_t>(shape.head), c = heads * d;
    const double scale = 1 / std::sqrt(static_cast<double>(d));
    const std::vector<int32_t> firsts = SelfAttentionRows(shape.start).first;
    const auto group = static_cast<size_t>(shape.group), width = static_cast<size_t>(shape.width());
    Results results = {Values(rows * c), Values(rows * heads), Values(rows * width)};
    Values p(rows), slopes(rows);
    for (size_t i = 0; i < rows; ++i)
        for (size_t h = 0; h < heads; ++h) {
            const auto first = static_cast<size_t>(firsts[i]);
            // Queries, keys, values (0, 1, 2) of row t in qkv and in its gradient.
            const auto at = [&](size_t which, size_t t) {
                const size_t begin = which == 0 ? 0 : c + (which - 1) * c / group;
                return t * width + begin + (which == 0 ? h : h / group) * d;
            };
            double largest = -1e300, total = 0;
            for (size_t j = first; j <= i; ++j) {
                p[j] = round(scale * round(dot(&qkv[at(0, i)], &qkv[at(1, j)], d)));
                largest = std::max(largest, p[j]);
            }
            for (size_t j = first; j <= i; ++j) total += p[j] = std::exp(p[j] - largest);
            results.lse[i * heads + h] = largest + std::log(total);
            double* out = &results.out[i * c + h * d];
            const double* slope = &dout[i * c + h * d];
            double mean = 0;
            for (size_t j = first; j <= i; ++j) {
                p[j] = round(p[j] / total);
                add_scaled(out, p[j], &qkv[at(2, j)], d);
                slopes[j] = round(dot(slope, &qkv[at(2, j)], d));
                mean += p[j] * slopes[j];
            }
            std::transform(out, out + d, out, round);
            for (size_t j = first; j <= i; ++j) {
                const double of_score = round(scale * round(p[j] * (slopes[j] - mean)));
                add_scaled(&results.dqkv[at(0, i)], of_score, &qkv[at(1, j)], d);
                add_scaled(&results.dqkv[at(1, j)], of_score, &qkv[at(0, i)], d);
                add_scaled(&results.dqkv[at(2, j)], p[j], slope, d);
            }
        }
    std::transform(results.dqkv.begin(), results.dqkv.end(), results.dqkv.begin(), round);
    return results;
}

// The size of the difference over that of what is expected, over the columns [begin, end) of rows
// of `width` values.
double error(const Values& found, const Values& expected, size_t width, size_t begin, size_t end) {
    double difference = 0, size = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
        if (i % width < begin || i % width >= end) continue;
        difference += std::pow(found[i] - expected[i], 2);
        size += std::pow(expected[i], 2);
    }
    return std::sqrt(difference / std::max(size, 1e-30));
}

class SelfAttention : public testing::TestWithParam<DeviceCase> {
  protected:
    struct Inputs {
        std::vector<float> qkv, dout;
    };
    struct Found {
        std::vector<float> out, lse, dqkv;
        bool operator==(const Found&) const = default;
    };

    void SetUp() override {
        device_ = std::make_unique<TestDevice>(GetParam());
        if (!*device_) GTEST_SKIP() << device_->why_not();
    }
    Context& ctx() { return device_->ctx(); }
    Dtype type() const { return GetParam().activations; }
    Tensor filled(Dtype dtype, std::initializer_list<int64_t> shape, float value) {
        const Tensor t = device_->empty(dtype, shape);
        return device_->up(std::vector<float>(static_cast<size_t>(t.size()), value), dtype, shape);
    }
    // As the device holds them.
    Inputs inputs(const SelfAttentionShape& shape, uint64_t seed = 1) const {
        const int64_t rows = shape.rows();
        return {TestDevice::rounded(random_values(rows * shape.width(), seed), type()),
                TestDevice::rounded(random_values(rows * shape.channels(), seed + 1), type())};
    }
    // Forward and backward into memory that holds `before`.
    Found run(const SelfAttentionShape& shape, const Inputs& in, float before = 7) {
        const Arena::Scope scope(ctx().arena);
        const int64_t rows = shape.rows(), channels = shape.channels();
        const Tensor qkv = device_->up(in.qkv, type(), {rows, shape.width()});
        const Tensor dout = device_->up(in.dout, type(), {rows, channels});
        const SelfAttentionRows of(shape.start);
        const Sequences sequences = {device_->up(of.first), device_->up(of.end)};
        const Tensor out = filled(type(), {rows, channels}, before);
        const Tensor lse = filled(Dtype::f32, {rows, shape.heads}, before);
        const Tensor dqkv = filled(type(), {rows, shape.width()}, before);
        self_attention(ctx(), out, lse, qkv, sequences);
        self_attention_backward(ctx(), dqkv, dout, out, lse, qkv, sequences);
        return {device_->down(out), device_->down(lse), device_->down(dqkv)};
    }
    // In f32 every value; in bf16 the whole's error is at most twice that of steps that round.
    void expect_right(const SelfAttentionShape& shape) {
        SCOPED_TRACE(concat(shape.rows(), " rows, ", shape.start.size() - 1, " sequences, ",
                            shape.heads, " heads of ", shape.head, " in groups of ", shape.group));
        const Inputs in = inputs(shape);
        const Found found = run(shape, in);
        const Values qkv = in_double(in.qkv), dout = in_double(in.dout);
        const Results exact = attend(shape, qkv, dout, exactly);
        expect_near(found.lse, exact.lse, 1e-5);
        if (type() == Dtype::f32) {
            expect_near(found.out, exact.out, GetParam().tolerance);
            expect_near(found.dqkv, exact.dqkv, 4 * GetParam().tolerance);
            return;
        }
        const Results rounded = attend(shape, qkv, dout, as_bf16);
        const auto c = static_cast<size_t>(shape.channels()), kv = c / size_t(shape.group);
        const auto width = static_cast<size_t>(shape.width());
        EXPECT_LE(error(in_double(found.out), exact.out, c, 0, c),
                  2 * error(rounded.out, exact.out, c, 0, c));
        const size_t edges[] = {0, c, c + kv, width};  // of queries, keys and values
        for (size_t part = 0; part < 3; ++part) {
            EXPECT_LE(error(in_double(found.dqkv), exact.dqkv, width, edges[part], edges[part + 1]),
                      2 * error(rounded.dqkv, exact.dqkv, width, edges[part], edges[part + 1]))
                << "qkv"[part];
        }
    }
    std::unique_ptr<TestDevice> device_;
};

TEST_P(SelfAttention, HasTheDerivativeAsItsGradient) {
    for (const SelfAttentionShape& shape : {SelfAttentionShape{{0, 1}, 1, 1},
                                            {{0, 3, 3, 10}, 2, 5},
                                            {{0, 4, 9}, 1, 16},
                                            {{0, 5}, 1, 64},
                                            {{0, 3, 9}, 4, 4, 2}}) {
        SCOPED_TRACE(concat(shape.rows(), " rows, ", shape.heads, " heads of ", shape.head));
        const Inputs in = inputs(shape);
        const Found found = run(shape, in);
        const Values dout = in_double(in.dout);
        const auto out = [&](const Values& qkv) { return attend(shape, qkv, dout, exactly).out; };
        expect_near(found.out, out(in_double(in.qkv)), GetParam().tolerance);
        const auto loss = [&](const Values& qkv) {
            return dot(out(qkv).data(), dout.data(), dout.size());
        };
        expect_near(found.dqkv, derivative(loss, in_double(in.qkv)), 4 * GetParam().tolerance);
    }
}

TEST_P(SelfAttention, AgreesWithTheSameInDouble) {
    for (const SelfAttentionShape& shape : {SelfAttentionShape{{0, 290, 300}, 1, 8},
                                            {{0, 63}, 3, 64},
                                            {{0, 64}, 1, 64},
                                            {{0, 65}, 2, 64},
                                            {{0, 31, 65}, 1, 64},
                                            {{0, 129}, 1, 64},
                                            {{0, 37, 38, 165, 300}, 3, 64},
                                            {{0, 1024}, 1, 64},
                                            {{0, 100, 427, 555, 1024}, 2, 64},
                                            {{0, 33, 90}, 2, 80},
                                            {{0, 7, 41}, 1, 256},
                                            {{0, 50}, 3, 33},
                                            {{0, 290, 300}, 4, 8, 4},
                                            {{0, 37, 38, 165}, 6, 64, 3},
                                            {{0, 33, 290}, 4, 128, 2}})
        expect_right(shape);
}

// Every width of the tiles, filled or not, and groups of one, two and three heads. The lengths are
// below, at and above multiples of the tiles' rows; borders of sequences are in them and between.
TEST_P(SelfAttention, AgreesForEveryHeadSizeAndGroup) {
    for (const int64_t head : {24, 64, 80, 96, 104, 128})
        for (const int64_t group : {1, 2, 3})
            for (const std::vector<int32_t>& start :
                 {std::vector<int32_t>{0, 9}, {0, 31}, {0, 96}, {0, 63, 64, 129}, {0, 37, 38, 201}})
                expect_right({start, 2 * group, head, group});
    expect_right({{0, 190, 449}, 4, 80, 1});
    expect_right({{0, 190, 449}, 4, 96, 4});
    expect_right({{0, 190, 449}, 4, 128, 1});
    expect_right({{0, 190, 449}, 8, 128, 4});
}

// A row that sees itself alone: its output is its value, whose gradient is the output's. Backward
// computes the probability again from scores that are rounded, unless their scale is a power of 2.
TEST_P(SelfAttention, OfOneRowIsItsValue) {
    for (const int64_t head : {16, 64, 96, 128}) {
        const SelfAttentionShape shape = {{0, 1, 2}, 2, head};
        const Inputs in = inputs(shape);
        const Found found = run(shape, in);
        const int64_t c = shape.channels();
        for (int64_t t = 0; t < 2; ++t)
            for (int64_t i = 0; i < c; ++i) {
                const auto at = static_cast<size_t>(t * c + i);
                const auto row = static_cast<size_t>(t * 3 * c + i), width = static_cast<size_t>(c);
                EXPECT_EQ(found.out[at], in.qkv[row + 2 * width]);
                const float rounded = head == 16 || head == 64 ? 0 : 1e-5f * std::abs(in.dout[at]);
                EXPECT_NEAR(found.dqkv[row + 2 * width], in.dout[at], rounded);
                // The difference of two sums of C products, of which one is rounded.
                const double small = 4 * GetParam().tolerance * static_cast<double>(c);
                EXPECT_NEAR(found.dqkv[row], 0, small);
                EXPECT_NEAR(found.dqkv[row + width], 0, small);
            }
    }
}

// More tiles than a GPU has multiprocessors.
TEST_P(SelfAttention, AgreesWhereBlocksTakeSeveralTiles) {
    if (!ctx().on_cuda()) GTEST_SKIP() << "the CPU has no blocks";
    expect_right({{0, 37, 38, 165, 300}, 48, 64});
    expect_right({{0, 333, 700}, 30, 64});
    for (const int64_t head : {64, 80, 96, 128}) expect_right({{0, 333, 700}, 32, head, 4});
}

TEST_P(SelfAttention, GivesTheSameBitsAgain) {
    std::vector<SelfAttentionShape> shapes = {{{0, 100, 427, 555, 1024}, 12, 64},
                                              {{0, 33, 90}, 2, 80},
                                              {{0, 100, 427}, 6, 64, 3},
                                              {{0, 33, 290}, 2, 96},
                                              {{0, 33, 290}, 8, 128, 4}};
    // More tiles than multiprocessors, whose blocks wait for one another.
    if (ctx().on_cuda()) {
        shapes.push_back({{0, 1000, 2048, 3000, 4097}, 12, 64});
        shapes.push_back({{0, 1000, 2048, 3000, 4097}, 12, 64, 3});
        shapes.push_back({{0, 1000, 2048, 3000, 4097}, 12, 128, 3});
    }
    for (const SelfAttentionShape& shape : shapes) {
        const Inputs in = inputs(shape);
        const Found found = run(shape, in, 7);
        for (const float before : {-3.0f, 0.5f, 1e30f})
            EXPECT_TRUE(run(shape, in, before) == found) << shape.head;
    }
}

TEST_P(SelfAttention, OfASequenceDoesNotDependOnOthers) {
    constexpr int64_t kBorder = 150;
    for (const int64_t head : {16, 64, 80, 128}) {
        const SelfAttentionShape shape = {{0, kBorder, 437}, 2, head};
        const Inputs in = inputs(shape), others = inputs(shape, 5);
        const Found found = run(shape, in);
        // The rows before the border, then those after it, are other ones.
        for (const bool before : {true, false}) {
            const auto mixed = [&](std::vector<float> values, const std::vector<float>& other) {
                const auto border = static_cast<int64_t>(values.size()) / shape.rows() * kBorder;
                const int64_t from = before ? 0 : border;
                const int64_t to = before ? border : std::ssize(values);
                std::copy(other.begin() + from, other.begin() + to, values.begin() + from);
                return values;
            };
            const Found moved =
                run(shape, {mixed(in.qkv, others.qkv), mixed(in.dout, others.dout)});
            const Found expected = {mixed(found.out, moved.out), mixed(found.lse, moved.lse),
                                    mixed(found.dqkv, moved.dqkv)};
            EXPECT_TRUE(moved == expected) << head << " channels, " << before;
            EXPECT_FALSE(moved == found);
        }
    }
}

TEST_P(SelfAttention, WrongShapesAreErrors) {
    const Tensor out = filled(type(), {3, 4}, 1), lse = filled(Dtype::f32, {3, 2}, 0);
    const Tensor qkv = filled(type(), {3, 12}, 1), dqkv = filled(type(), {3, 12}, 1);
    const auto attend = [&](Tensor lse, const std::vector<int32_t>& first,
                            const std::vector<int32_t>& end) {
        self_attention(ctx(), out, lse, qkv, {device_->up(first), device_->up(end)});
    };
    attend(lse, {0, 0, 2}, {2, 2, 3});
    EXPECT_THROW(attend(lse, {0, 0}, {2, 2}), Error);
    EXPECT_THROW(attend(filled(Dtype::f32, {3, 3}, 0), {0, 0, 0}, {3, 3, 3}), Error);
    const Sequences one = {device_->up(std::vector<int32_t>{0, 0, 0}),
                           device_->up(std::vector<int32_t>{3, 3, 3})};
    EXPECT_THROW(self_attention(ctx(), out, lse, filled(type(), {3, 13}, 1), one), Error);
    EXPECT_THROW(self_attention(ctx(), filled(type(), {2, 4}, 1), lse, qkv, one), Error);
    EXPECT_THROW(self_attention(ctx(), out, lse, filled(Dtype::f16, {3, 12}, 1), one), Error);
    self_attention_backward(ctx(), dqkv, out, out, lse, qkv, one);
    EXPECT_THROW(self_attention_backward(ctx(), out, out, out, lse, qkv, one), Error);
    EXPECT_THROW(self_attention_backward(ctx(), dqkv, qkv, out, lse, qkv, one), Error);
    if (ctx().on_cuda()) return;  // whose values the host does not see
    EXPECT_THROW(attend(lse, {0, 0, 0}, {2, 2, 2}), Error);
    EXPECT_THROW(attend(lse, {0, 0, 0}, {3, 3, 4}), Error);
    EXPECT_THROW(attend(lse, {0, 1, 2}, {2, 2, 3}), Error);
}

INSTANTIATE_TEST_SUITE_P(Devices, SelfAttention,
                         testing::Values(kCpuCase, kOneThreadCase, kCpuBf16Case, kCudaF32Case,
                                         kCudaBf16Case),
                         name_of_case);

}  // namespace
}  // namespace hark::test
