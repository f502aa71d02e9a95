// packed_attention() against append_cache and attention(), on every device.
#include "kernels/batch_layout.h"
#include "kernels/ops.h"
#include "support/ops.h"

namespace hark::test {
namespace {

struct Shape {
    int64_t heads, size, sequences, rows;  // rows: of each sequence
};

class PackedAttention : public testing::TestWithParam<DeviceCase> {
  protected:
    // The result for (T, 3 * heads * size) by packed_attention, or by caches.
    std::vector<float> found(const Shape& shape, const std::vector<float>& q_k_v, bool packed) {
        Context& ctx = device_.ctx();
        const Arena::Scope scope(ctx.arena);
        const Dtype dtype = GetParam().activations;
        const auto& [heads, size, sequences, rows] = shape;
        const int64_t t = sequences * rows, c = heads * size;
        const HostBatchLayout host = HostBatchLayout::equal(sequences, rows);
        const BatchLayout layout = to_device(ctx, host.view());
        const AttentionOptions options = {.scale = 1 / std::sqrt(static_cast<float>(size))};
        Tensor x = device_.up(q_k_v, dtype, {t, 3 * c}), out = device_.empty(dtype, {t, c});
        if (packed) {
            packed_attention(ctx, out, x, heads, layout, options);
        } else {
            Tensor keys = device_.empty(dtype, {sequences, heads, rows, size});
            Tensor values = device_.empty(dtype, {sequences, heads, rows, size});
            append_cache(ctx, keys, values, x, c, layout);
            attention(ctx, out, x, keys, values, layout, options);
        }
        return device_.down(out);
    }

    TestDevice device_{GetParam()};
};

// Heads of 64 and 128 channels, which a GPU reads where they are, and others.
TEST_P(PackedAttention, GivesTheBitsOfCaches) {
    if (!device_) GTEST_SKIP() << device_.why_not();
    const Shape kShapes[] = {{2, 64, 3, 200}, {3, 64, 2, 1500}, {1, 128, 4, 129}, {2, 64, 2, 8},
                             {2, 40, 2, 70},  {6, 64, 1, 64},   {1, 20, 2, 33}};
    for (const Shape& shape : kShapes) {
        SCOPED_TRACE(concat("heads ", shape.heads, " size ", shape.size, " rows ", shape.rows));
        const std::vector<float> x = TestDevice::rounded(
            random_values(shape.sequences * shape.rows * 3 * shape.heads * shape.size, 5),
            GetParam().activations);
        EXPECT_EQ(found(shape, x, true), found(shape, x, false));
    }
}

// The last tile of a sequence's keys goes beyond its rows.
TEST_P(PackedAttention, TheNextSequenceDoesNotMatter) {
    if (!device_) GTEST_SKIP() << device_.why_not();
    const Shape shape = {2, 64, 2, 140};
    const int64_t c = shape.heads * shape.size, own = shape.rows * 3 * c;
    std::vector<float> x = TestDevice::rounded(random_values(2 * own, 6), GetParam().activations);
    const std::vector<float> before = found(shape, x, true);
    std::fill(x.begin() + own, x.end(), NAN);
    const std::vector<float> after = found(shape, x, true);
    const auto end = before.begin() + shape.rows * c;
    EXPECT_EQ(std::vector<float>(before.begin(), end),
              std::vector<float>(after.begin(), after.begin() + shape.rows * c));
}

TEST_P(PackedAttention, WrongShapesAreErrors) {
    if (!device_) GTEST_SKIP() << device_.why_not();
    Context& ctx = device_.ctx();
    const Dtype dtype = GetParam().activations;
    const HostBatchLayout two = HostBatchLayout::equal(2, 10), three = HostBatchLayout::equal(3, 7);
    Tensor out = device_.empty(dtype, {20, 128}), x = device_.empty(dtype, {20, 384});
    const auto call = [&](Tensor to, Tensor from, int64_t heads, const HostBatchLayout& rows) {
        packed_attention(ctx, to, from, heads, to_device(ctx, rows.view()), {.scale = 1});
    };
    EXPECT_THROW(call(out, device_.empty(dtype, {20, 256}), 2, two), Error);
    EXPECT_THROW(call(out, device_.empty(dtype, {19, 384}), 2, two), Error);
    EXPECT_THROW(call(out, x, 3, two), Error);
    EXPECT_THROW(call(out, x, 2, three), Error);
}

const DeviceCase kPackedCases[] = {kCpuCase, kCudaF32Case, kCudaF16Case, kCudaBf16Case};
INSTANTIATE_TEST_SUITE_P(Devices, PackedAttention, testing::ValuesIn(kPackedCases), name_of_case);

}  // namespace
}  // namespace hark::test
