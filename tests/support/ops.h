// One test body for every device: inputs go up, the kernel runs, results come down.
//
//     class Linear : public testing::TestWithParam<DeviceCase> {};
//     TEST_P(Linear, AgreesWithTheSum) {
//         TestDevice device(GetParam());
//         if (!device) GTEST_SKIP() << device.why_not();
//         Tensor x = device.up(values, GetParam().activations, {rows, columns});
//         ...
//         linear(device.ctx(), y, x, w);
//         expect_near(device.down(y), expected, GetParam().tolerance);
//     }
//     INSTANTIATE_TEST_SUITE_P(Devices, Linear, testing::Values(kCpuCase, ...), name_of_case);
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/fp8.h"
#include "core/half.h"
#include "kernels/ops.h"
#include "kernels/quant/quantize.h"
#include "kernels/runtime/backend.h"
#include "kernels/runtime/cuda_library.h"
#include "support/recordings.h"
#include "support/values.h"

namespace hark::test {

// Where a kernel is tested and in what; `tolerance` is that of one value of the result, as
// expect_near takes it.
struct DeviceCase {
    const char* name;
    Device device = Device::cpu;
    Dtype activations = Dtype::f32;  // of x and y
    double tolerance = 1e-5;
    int threads = 2;  // CPU
};

inline const DeviceCase kCpuCase = {"cpu"};
inline const DeviceCase kOneThreadCase = {"cpu_one_thread", Device::cpu, Dtype::f32, 1e-5, 1};
// Computed in f32 from what is stored in bf16: training's ops alone.
inline const DeviceCase kCpuBf16Case = {"cpu_bf16", Device::cpu, Dtype::bf16, 8e-3};

// A GPU rounds to its activations' type between the steps; skipped if there is no GPU.
inline const DeviceCase kCudaF32Case = {"cuda_f32", Device::cuda, Dtype::f32, 1e-5};
inline const DeviceCase kCudaF16Case = {"cuda_f16", Device::cuda, Dtype::f16, 1e-3};
inline const DeviceCase kCudaBf16Case = {"cuda_bf16", Device::cuda, Dtype::bf16, 8e-3};

inline std::ostream& operator<<(std::ostream& out, const DeviceCase& on) { return out << on.name; }

inline std::string name_of_case(const testing::TestParamInfo<DeviceCase>& info) {
    return info.param.name;
}

class TestDevice {
  public:
    explicit TestDevice(const DeviceCase& wanted, int gpu = 0) {
        if (wanted.device == Device::cpu) {
            context_ = std::make_unique<Context>(wanted.threads);
            return;
        }
        try {
            context_.reset(new Context(make_cuda_context(gpu)));
        } catch (const Error& error) {
            why_not_ = error.what();
        }
    }

    explicit operator bool() const { return context_ != nullptr; }
    const std::string& why_not() const { return why_not_; }
    Context& ctx() { return *context_; }

    // Memory lives as long as this does.
    Tensor empty(Dtype dtype, std::initializer_list<int64_t> shape) {
        return ctx().arena.tensor(dtype, shape);
    }
    Tensor up(const std::vector<float>& values, Dtype dtype, std::initializer_list<int64_t> shape) {
        Tensor tensor = empty(dtype, shape);
        EXPECT_EQ(tensor.size(), std::ssize(values));
        std::vector<std::byte> bytes(tensor.bytes());
        if (is_quantized(dtype))
            quantize(bytes.data(), values.data(), dtype, tensor.size());
        else
            to_bytes(bytes.data(), values.data(), dtype, values.size());
        upload(tensor.data, bytes.data(), bytes.size());
        return tensor;
    }
    Tensor up(const std::vector<int32_t>& values) {
        Tensor tensor = empty(Dtype::i32, {std::ssize(values)});
        upload(tensor.data, values.data(), tensor.bytes());
        return tensor;
    }
    // A tensor of f32, f16, bf16 or blocks.
    std::vector<float> down(const Tensor& tensor) {
        std::vector<std::byte> bytes(tensor.bytes());
        download(bytes.data(), tensor.data, bytes.size());
        std::vector<float> values(static_cast<size_t>(tensor.size()));
        if (is_quantized(tensor.dtype))
            dequantize(values.data(), bytes.data(), tensor.dtype, tensor.size());
        else
            to_floats(values.data(), bytes.data(), tensor.dtype, values.size());
        return values;
    }
    // Values on the host as a tensor that sees them.
    static Tensor host(std::vector<float>& values, std::initializer_list<int64_t> shape) {
        return Tensor(values.data(), Dtype::f32, shape);
    }
    // What up() and down() make of the values: they as the dtype can hold them.
    static std::vector<float> rounded(std::vector<float> values, Dtype dtype) {
        if (dtype == Dtype::f32 || dtype == Dtype::i8) return values;
        std::vector<std::byte> bytes(row_bytes(dtype, std::ssize(values)));
        if (is_quantized(dtype)) {
            quantize(bytes.data(), values.data(), dtype, std::ssize(values));
            dequantize(values.data(), bytes.data(), dtype, std::ssize(values));
        } else {
            to_bytes(bytes.data(), values.data(), dtype, values.size());
            to_floats(values.data(), bytes.data(), dtype, values.size());
        }
        return values;
    }

  private:
    void upload(void* to, const void* from, size_t bytes) {
        if (ctx().on_cuda() && bytes > 0)
            cuda_runtime().upload(ctx(), to, from, bytes);
        else if (bytes > 0)
            std::memcpy(to, from, bytes);
    }
    void download(void* to, const void* from, size_t bytes) {
        if (ctx().on_cuda() && bytes > 0)
            cuda_runtime().download(ctx(), to, from, bytes);
        else if (bytes > 0)
            std::memcpy(to, from, bytes);
    }

    std::unique_ptr<Context> context_;
    std::string why_not_;
};

// |found - expected| <= tolerance * (scale + |expected|) for every value; says which is worst.
template <class Expected>
void expect_near(const std::vector<float>& found, const std::vector<Expected>& expected,
                 double tolerance, double scale = 1) {
    ASSERT_EQ(found.size(), expected.size());
    const auto [worst, place] = worst_error(found.data(), expected.data(), found.size(), scale);
    if (found.empty()) return;
    EXPECT_LE(worst, tolerance) << "value " << place << ": expected "
                                << static_cast<double>(expected[place]) << ", found "
                                << found[place];
}

}  // namespace hark::test
