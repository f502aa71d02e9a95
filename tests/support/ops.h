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
#include "kernels/quant/blocks.h"
#include "kernels/runtime/backend.h"
#include "kernels/runtime/cuda_library.h"
#include "support/recordings.h"

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

// A GPU rounds to its activations' type between the steps; skipped where there is no GPU.
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
        if (is_quantized(dtype)) quantize(bytes.data(), values.data(), dtype, tensor.size());
        for (size_t i = 0; i < values.size(); ++i) {
            if (dtype == Dtype::f32) store(bytes, i, values[i]);
            if (dtype == Dtype::f16) store(bytes, i, to_f16(values[i]));
            if (dtype == Dtype::bf16) store(bytes, i, to_bf16(values[i]));
            if (dtype == Dtype::i8) store(bytes, i, static_cast<int8_t>(values[i]));
            if (dtype == Dtype::fp8) store(bytes, i, to_fp8(values[i]));
        }
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
        for (size_t i = 0; i < values.size(); ++i) {
            if (tensor.dtype == Dtype::f32) values[i] = load<float>(bytes, i);
            if (tensor.dtype == Dtype::f16) values[i] = to_float(load<f16_t>(bytes, i));
            if (tensor.dtype == Dtype::bf16) values[i] = to_float(load<bf16_t>(bytes, i));
        }
        return values;
    }
    // Values on the host as a tensor that sees them.
    static Tensor host(std::vector<float>& values, std::initializer_list<int64_t> shape) {
        return Tensor(values.data(), Dtype::f32, shape);
    }
    // What up() and down() make of the values: they as the dtype can hold them.
    static std::vector<float> rounded(std::vector<float> values, Dtype dtype) {
        if (is_quantized(dtype)) {
            std::vector<std::byte> blocks(row_bytes(dtype, std::ssize(values)));
            quantize(blocks.data(), values.data(), dtype, std::ssize(values));
            dequantize(values.data(), blocks.data(), dtype, std::ssize(values));
        }
        for (float& value : values) {
            if (dtype == Dtype::f16) value = to_float(to_f16(value));
            if (dtype == Dtype::bf16) value = to_float(to_bf16(value));
            if (dtype == Dtype::fp8) value = to_float(to_fp8(value));
        }
        return values;
    }

  private:
    template <class T>
    static void store(std::vector<std::byte>& bytes, size_t i, T value) {
        std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value);
    }
    template <class T>
    static T load(const std::vector<std::byte>& bytes, size_t i) {
        T value;
        std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
        return value;
    }
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

// Values of about the normal distribution (a sum of four uniform ones), the same on all machines.
inline std::vector<float> random_values(int64_t count, uint64_t seed, double deviation = 1) {
    SplitMix64 generator(seed);
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) {
        const uint64_t bits = generator.draw();
        double sum = -2;
        for (int i = 0; i < 4; ++i) sum += static_cast<double>((bits >> (16 * i)) & 0xffff) / 65536;
        value = static_cast<float>(sum * 1.7320508 * deviation);
    }
    return values;
}

// |found - expected| <= tolerance * (scale + |expected|) for every value; says which is worst.
template <class Expected>
void expect_near(const std::vector<float>& found, const std::vector<Expected>& expected,
                 double tolerance, double scale = 1) {
    ASSERT_EQ(found.size(), expected.size());
    double worst = -1;
    size_t place = 0;
    for (size_t i = 0; i < found.size(); ++i) {
        const double wanted = static_cast<double>(expected[i]);
        double error = std::abs(found[i] - wanted) / (scale + std::abs(wanted));
        if (!(error <= 1e30)) error = 1e30;  // not a number either
        if (error > worst) worst = error, place = i;
    }
    if (found.empty()) return;
    EXPECT_LE(worst, tolerance) << "value " << place << ": expected "
                                << static_cast<double>(expected[place]) << ", found "
                                << found[place];
}

}  // namespace hark::test
