#include <algorithm>
#include <numeric>

#include "support/ops.h"

namespace hark::test {
namespace {

constexpr int64_t kSize = 64;  // of a head

// One call: sequences with numbers of queries and keys, on slots in reverse order.
struct AbsorbedCase {
    int64_t heads, frames;
    std::vector<int32_t> queries, lengths;
    double largest = 1;  // deviation of q
    int64_t width() const { return heads * kSize; }
};

std::vector<int32_t> absorbed_starts_of(const std::vector<int32_t>& queries) {
    std::vector<int32_t> starts(queries.size() + 1);
    std::partial_sum(queries.begin(), queries.end(), starts.begin() + 1);
    return starts;
}

// Values as the tensors hold them. encoder_out is NaN in the rows of no sequence.
struct AbsorbedInputs {
    std::vector<float> q, encoder_out, kv, scales, bias;
    std::vector<int32_t> slots;
    Dtype weights;

    AbsorbedInputs(const AbsorbedCase& c, Dtype activations, Dtype weights, uint64_t seed)
        : weights(weights) {
        const int64_t width = c.width(), count = std::ssize(c.queries);
        const double deviation = 1 / std::sqrt(static_cast<double>(width));
        q = TestDevice::rounded(
            random_values(absorbed_starts_of(c.queries).back() * width, seed, c.largest),
            activations);
        encoder_out =
            TestDevice::rounded(random_values(count * c.frames * width, seed + 1), activations);
        kv = random_values(2 * width * width, seed + 2, has_row_scales(weights) ? 40 : deviation);
        for (float& value : kv)
            if (weights == Dtype::i8) value = std::clamp(std::round(value), -127.0f, 127.0f);
        kv = TestDevice::rounded(std::move(kv), weights);
        scales = random_values(2 * width, seed + 3, 0.1);
        for (float& value : scales) value = static_cast<float>(deviation / 40 * std::exp(value));
        if (!has_row_scales(weights)) std::fill(scales.begin(), scales.end(), 1.0f);
        bias = random_values(2 * width, seed + 4);
        std::fill_n(bias.begin(), width, 0.0f);
        for (int64_t b = 0; b < count; ++b) {
            slots.push_back(static_cast<int32_t>(count - 1 - b));
            const int64_t first = slots.back() * c.frames;
            std::fill(encoder_out.begin() + (first + c.lengths[b]) * width,
                      encoder_out.begin() + (first + c.frames) * width, NAN);
        }
    }
};

// One row of one head, in double, absorbed: keys and values of all frames would take longer.
void expect_row(double* out, const AbsorbedCase& c, const AbsorbedInputs& in, int64_t b,
                int64_t row, int64_t h) {
    const int64_t width = c.width();
    const float* encoder_out = in.encoder_out.data() + in.slots[b] * c.frames * width;
    std::vector<double> query(width), mixed(width), scores(c.lengths[b]);
    const auto columns = static_cast<size_t>(width);
    for (int64_t d = 0; d < kSize; ++d) {
        const int64_t n = h * kSize + d;
        add_scaled(query.data(), double{in.q[row * width + n]} * in.scales[n] / 8,
                   &in.kv[n * width], columns);
    }
    for (size_t key = 0; key < scores.size(); ++key)
        scores[key] = dot(query.data(), encoder_out + key * columns, columns);
    const double top = *std::max_element(scores.begin(), scores.end());
    double total = 0;
    for (double& score : scores) total += score = std::exp(score - top);
    for (size_t key = 0; key < scores.size(); ++key)
        add_scaled(mixed.data(), scores[key] / total, encoder_out + key * columns, columns);
    for (int64_t d = 0; d < kSize; ++d) {
        const int64_t n = width + h * kSize + d;
        out[row * width + h * kSize + d] =
            in.bias[n] + in.scales[n] * dot(mixed.data(), &in.kv[n * width], columns);
    }
}

std::vector<double> absorbed_expected(const AbsorbedCase& c, const AbsorbedInputs& in) {
    const std::vector<int32_t> starts = absorbed_starts_of(c.queries);
    std::vector<double> out(starts.back() * c.width());
    for (int64_t b = 0; b < std::ssize(c.queries); ++b)
        for (int64_t row = starts[b]; row < starts[b + 1]; ++row)
            for (int64_t h = 0; h < c.heads; ++h) expect_row(out.data(), c, in, b, row, h);
    return out;
}

// The weights and what is encoder_out, on the device.
struct Model {
    Tensor encoder_out, bias;
    Matrix kv;

    Model(TestDevice& device, const AbsorbedCase& c, const AbsorbedInputs& in, Dtype activations) {
        const int64_t width = c.width(), slots = std::ssize(c.queries);
        encoder_out = device.up(in.encoder_out, activations, {slots, c.frames, width});
        kv.values = device.up(in.kv, in.weights, {2 * width, width});
        if (has_row_scales(in.weights)) kv.scales = device.up(in.scales, Dtype::f32, {2 * width});
        bias = device.up(in.bias, Dtype::f32, {2 * width});
    }
};

BatchLayout ragged_of(TestDevice& device, const std::vector<int32_t>& queries,
                      const std::vector<int32_t>& slots, const std::vector<int32_t>& lengths) {
    return {device.up(absorbed_starts_of(queries)), device.up(slots), device.up(lengths),
            *std::max_element(queries.begin(), queries.end()),
            *std::max_element(lengths.begin(), lengths.end())};
}

std::vector<float> absorbed_run(TestDevice& device, const AbsorbedCase& c, const AbsorbedInputs& in,
                                Dtype activations) {
    const Arena::Scope scope(device.ctx().arena);
    const Model model(device, c, in, activations);
    Tensor q = device.up(in.q, activations, {absorbed_starts_of(c.queries).back(), c.width()});
    Tensor out = device.empty(activations, {q.dim(0), c.width()});
    absorbed_attention(device.ctx(), out, q, model.encoder_out, model.kv, model.bias, c.heads,
                       ragged_of(device, c.queries, in.slots, c.lengths), 0.125f);
    return device.down(out);
}

class AbsorbedAttention : public testing::TestWithParam<DeviceCase> {};

// Splits and tiles of keys that are full, one over and one short, for few and for many rows.
TEST_P(AbsorbedAttention, AgreesWithTheSumInDouble) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    const Dtype activations = GetParam().activations;
    const Dtype own = activations == Dtype::f32 ? Dtype::f16 : activations;
    const AbsorbedCase kCases[] = {
        {2, 1, {1}, {1}},
        {2, 600, {1, 1, 1, 1}, {600, 512, 385, 31}, 4},
        {6, 300, {3, 0, 1}, {300, 5, 33}},
        {10, 70, {2, 40}, {70, 17}},
        {4, 100, {1, 30, 2}, {49, 100, 16}, 2},
        {8, 1500, {1, 1, 2}, {1500, 769, 20}},
        {12, 513, {1, 20}, {384, 513}},
        {6, 800, {1, 1, 9}, {768, 769, 767}},
        {20, 1500, {1}, {1500}},
        {20, 290, {15, 1}, {97, 290}, 3},
    };
    for (const AbsorbedCase& c : kCases)
        for (const Dtype weights : {own, Dtype::i8, Dtype::fp8}) {
            // The CPU may round what int8 weights multiply (ops.h: linear).
            if (activations == Dtype::f32 && weights == Dtype::i8) continue;
            SCOPED_TRACE(
                concat("heads ", c.heads, " frames ", c.frames, " weights ", name_of(weights)));
            AbsorbedInputs in(c, activations, weights, 5 + c.frames);
            const std::vector<double> expected = absorbed_expected(c, in);
            if (activations == Dtype::f32)  // the CPU multiplies every frame
                for (float& value : in.encoder_out)
                    if (std::isnan(value)) value = 9;
            // What 16 bits lose of a score grows with it.
            expect_near(absorbed_run(device, c, in, activations), expected,
                        GetParam().tolerance * (c.largest > 1 ? 2 : 1));
        }
}

TEST_P(AbsorbedAttention, WrongShapesAreErrors) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    const Dtype dtype = GetParam().activations;
    const AbsorbedCase c = {2, 8, {2, 1}, {5, 8}};
    const AbsorbedInputs in(c, dtype, dtype, 3);
    const Model model(device, c, in, dtype);
    const BatchLayout rows = ragged_of(device, c.queries, in.slots, c.lengths);
    const auto call = [&](Tensor out, Tensor q, Tensor encoder_out, Tensor kv, Tensor bias,
                          int64_t heads) {
        absorbed_attention(device.ctx(), out, q, encoder_out, {kv, {}}, bias, heads, rows, 1);
    };
    Tensor q = device.up(in.q, dtype, {3, 128}), out = device.empty(dtype, {3, 128});
    const Tensor &encoder_out = model.encoder_out, &kv = model.kv.values, &bias = model.bias;
    EXPECT_NO_THROW(call(out, q, encoder_out, kv, bias, 2));
    EXPECT_THROW(call(device.empty(dtype, {2, 128}), q, encoder_out, kv, bias, 2), Error);
    EXPECT_THROW(call(out, device.empty(dtype, {3, 64}), encoder_out, kv, bias, 2), Error);
    EXPECT_THROW(call(out, q, device.empty(dtype, {2, 8, 64}), kv, bias, 2), Error);
    EXPECT_THROW(call(out, q, device.empty(dtype, {2, 7, 128}), kv, bias, 2), Error);
    EXPECT_THROW(call(out, q, encoder_out, device.empty(dtype, {128, 128}), bias, 2), Error);
    EXPECT_THROW(call(out, q, encoder_out, device.empty(Dtype::i8, {256, 128}), bias, 2), Error);
    EXPECT_THROW(call(out, q, encoder_out, kv, device.empty(Dtype::f32, {128}), 2), Error);
    EXPECT_THROW(call(out, q, encoder_out, kv, bias, 3), Error);
}

INSTANTIATE_TEST_SUITE_P(Devices, AbsorbedAttention,
                         testing::Values(kCpuCase, kOneThreadCase, kCudaF16Case, kCudaBf16Case),
                         name_of_case);

TEST(AbsorbedAttentionOnCuda, SlotsAndLengthsOutsideGiveNaN) {
    TestDevice device(kCudaF16Case);
    if (!device) GTEST_SKIP() << device.why_not();
    const AbsorbedCase c = {2, 40, {1, 1, 1, 1, 1}, {40, 40, 40, 40, 40}};
    const AbsorbedInputs in(c, Dtype::f16, Dtype::f16, 3);
    const Model model(device, c, in, Dtype::f16);
    Tensor q = device.up(in.q, Dtype::f16, {5, 128}), out = device.empty(Dtype::f16, {5, 128});
    BatchLayout rows = ragged_of(device, c.queries, {0, -1, 5, 4, 1}, {40, 40, 40, 41, -1});
    rows.max_length = 40;
    absorbed_attention(device.ctx(), out, q, model.encoder_out, model.kv, model.bias, 2, rows,
                       0.125f);
    const std::vector<float> found = device.down(out);
    for (size_t i = 0; i < found.size(); ++i)
        EXPECT_EQ(i >= 128, std::isnan(found[i])) << "row " << i / 128;
}

TEST(AbsorbedAttentionOnCpu, SlotsAndLengthsOutsideAreErrors) {
    TestDevice device(kCpuCase);
    const AbsorbedCase c = {2, 8, {1, 1}, {8, 8}};
    const AbsorbedInputs in(c, Dtype::f32, Dtype::f32, 3);
    const Model model(device, c, in, Dtype::f32);
    Tensor q = device.up(in.q, Dtype::f32, {2, 128}), out = device.empty(Dtype::f32, {2, 128});
    const auto call = [&](std::vector<int32_t> slots, std::vector<int32_t> lengths) {
        absorbed_attention(device.ctx(), out, q, model.encoder_out, model.kv, model.bias, 2,
                           ragged_of(device, c.queries, slots, lengths), 0.125f);
    };
    EXPECT_NO_THROW(call({1, 1}, {8, 3}));
    EXPECT_THROW(call({0, 2}, {8, 8}), Error);
    EXPECT_THROW(call({0, 1}, {8, 9}), Error);
    EXPECT_THROW(call({0, 1}, {8, 0}), Error);  // a row without keys
}

// Each row alone against batches in another order, next to rows of the same sequence and of others,
// few enough for many blocks per row and too many for one launch.
void expect_same_bits(int64_t heads, Dtype type, Dtype weights) {
    TestDevice device({"", Device::cuda, type});
    if (!device) GTEST_SKIP() << device.why_not();
    constexpr int32_t kRows = 280;
    AbsorbedCase c = {
        heads, 1500, std::vector<int32_t>(9, 1), {1500, 1, 383, 384, 767, 300, 768, 769, 33}};
    const int64_t width = c.width();
    AbsorbedInputs in(c, type, weights, 77);
    const Model model(device, c, in, type);
    const Tensor q = device.up(TestDevice::rounded(random_values(kRows * width, 5, 2), type), type,
                               {kRows, width});
    const auto sequence_of = [](int32_t row) { return row / 3 % 9; };
    // Runs of rows, as one sequence each where `joined` and they share one.
    const auto attend = [&](const std::vector<int32_t>& rows, bool joined, bool kv_ready) {
        const Arena::Scope scope(device.ctx().arena);
        const auto count = static_cast<int64_t>(rows.size());
        Tensor x = device.empty(type, {count, width}), out = device.empty(type, {count, width});
        select_rows(device.ctx(), x, q, device.up(rows));
        std::vector<int32_t> queries, slots, lengths;
        for (size_t i = 0; i < rows.size(); ++i) {
            const int32_t b = sequence_of(rows[i]);
            if (joined && i > 0 && b == sequence_of(rows[i - 1])) {
                ++queries.back();
                continue;
            }
            queries.push_back(1);
            slots.push_back(in.slots[b]);
            lengths.push_back(c.lengths[b]);
        }
        BatchLayout ragged = ragged_of(device, queries, slots, lengths);
        ragged.kv_ready = kv_ready;  // it is: uploads alone have written what is encoder_out
        absorbed_attention(device.ctx(), out, x, model.encoder_out, model.kv, model.bias, heads,
                           ragged, 0.125f);
        return device.down(out);
    };
    std::vector<std::vector<float>> alone;
    for (int32_t row = 0; row < 64; ++row) alone.push_back(attend({row}, false, false));
    for (const int32_t batch : {2, 7, 24, 64, kRows})
        for (const bool joined : {false, true}) {
            std::vector<int32_t> rows(batch);
            std::iota(rows.begin(), rows.end(), 0);
            if (!joined)  // shuffled: 11 has no factor in common with any of the sizes
                for (int32_t i = 0; i < batch; ++i) rows[i] = i * 11 % batch;
            const std::vector<float> together = attend(rows, joined, true);
            for (int32_t i = 0; i < batch; ++i) {
                if (rows[i] >= 64) continue;
                EXPECT_EQ(0, std::memcmp(alone[rows[i]].data(), together.data() + i * width,
                                         width * sizeof(float)))
                    << "row " << rows[i] << " of " << batch << (joined ? " joined" : "");
            }
        }
}

TEST(AbsorbedAttentionOnCuda, RowsAreTheSameBitsWhateverIsBesideThem) {
    expect_same_bits(20, Dtype::f16, Dtype::f16);
    expect_same_bits(20, Dtype::bf16, Dtype::i8);
    expect_same_bits(12, Dtype::f16, Dtype::i8);
    expect_same_bits(8, Dtype::f16, Dtype::i8);
    expect_same_bits(6, Dtype::bf16, Dtype::bf16);
    expect_same_bits(4, Dtype::f16, Dtype::f16);
}

}  // namespace
}  // namespace hark::test
