// Products with packed panels, by every kind of processor's loops that this one can run.
#include <array>
#include <utility>

#include "kernels/cpu/cpu.h"
#include "support/ops.h"

namespace hark::test {
namespace {

class PackedProducts : public testing::TestWithParam<const CpuKernels*> {
  protected:
    const CpuKernels& cpu = *GetParam();
};

// c = a b^T, the first columns of b (n, k) packed apart from the others.
void multiply_in_two_parts(const CpuKernels& cpu, std::vector<float>& c,
                           const std::vector<float>& a, std::vector<float>& packed, const Tensor& b,
                           std::array<int64_t, 3> size) {
    const auto [m, n, k] = size;
    const int64_t wide = (n + cpu.panel - 1) / cpu.panel * cpu.panel;
    for (const auto& [begin, end] : {std::pair{int64_t{0}, k / 2}, std::pair{k / 2, k}}) {
        if (begin == end) continue;
        const auto* from = static_cast<const std::byte*>(b.data) + row_bytes(b.dtype, begin);
        cpu.pack_transposed(packed.data(), from, k, b.dtype, end - begin, n);
        cpu.multiply_packed(c.data(), wide, a.data() + begin, k, packed.data(), m, n, end - begin,
                            end - begin, begin > 0);
    }
}

TEST_P(PackedProducts, OfEverySize) {
    for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16})
        for (const int64_t m : {1, 5, 6, 13})
            for (const int64_t n : {1, 16, 50, 65})
                for (const int64_t k : {1, 7, 64}) {
                    TestDevice device(kCpuCase);
                    const std::vector<float> a = random_values(m * k, 1);
                    const std::vector<float> b =
                        TestDevice::rounded(random_values(n * k, 2), dtype);
                    const int64_t wide = (n + cpu.panel - 1) / cpu.panel * cpu.panel;
                    std::vector<float> packed(wide * k), c(m * wide), turned;
                    for (const bool transposed : {false, true}) {
                        // b as (k, n), and as (n, k)
                        const Tensor stored = device.up(b, dtype, {n * k});
                        if (transposed) {
                            multiply_in_two_parts(cpu, c, a, packed, stored, {m, n, k});
                        } else {
                            cpu.pack(packed.data(), stored.data, dtype, k, n);
                            cpu.multiply_packed(c.data(), wide, a.data(), k, packed.data(), m, n, k,
                                                k, false);
                        }
                        for (int64_t i = 0; i < m; ++i)
                            for (int64_t j = 0; j < n; ++j) {
                                double sum = 0;
                                for (int64_t d = 0; d < k; ++d)
                                    sum += static_cast<double>(a[i * k + d]) *
                                           b[transposed ? j * k + d : d * n + j];
                                ASSERT_NEAR(c[i * wide + j], sum, 1e-4) << i << " " << j;
                            }
                    }
                }
}

// Fewer of b's rows than were packed: a causal block does not see the last keys.
TEST_P(PackedProducts, OfTheFirstRows) {
    const int64_t n = cpu.panel + 3, wide = 2 * cpu.panel;
    const std::vector<float> a = random_values(2 * 4, 1), b = random_values(9 * n, 2);
    std::vector<float> packed(wide * 9), c(2 * wide);
    cpu.pack(packed.data(), b.data(), Dtype::f32, 9, n);
    cpu.multiply_packed(c.data(), wide, a.data(), 4, packed.data(), 2, n, 4, 9, false);
    for (int64_t i = 0; i < 2; ++i)
        for (int64_t j = 0; j < n; ++j) {
            double sum = 0;
            for (int64_t d = 0; d < 4; ++d) sum += static_cast<double>(a[i * 4 + d]) * b[d * n + j];
            ASSERT_NEAR(c[i * wide + j], sum, 1e-5);
        }
}

INSTANTIATE_TEST_SUITE_P(Processors, PackedProducts,
                         testing::ValuesIn(all_cpu_kernels().begin(), all_cpu_kernels().end()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace hark::test
