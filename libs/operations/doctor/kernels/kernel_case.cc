#include "operations/doctor/kernels/kernel_case.h"

#include <cmath>
#include <cstring>

#include "core/error.h"
#include "core/fp8.h"
#include "core/half.h"
#include "kernels/quant/quantize.h"
#include "kernels/runtime/transfer.h"

namespace hark::doctor {
namespace {

template <class T, class Convert>
void store_as(std::vector<std::byte>& bytes, const Numbers& values, const Convert& convert) {
    for (size_t i = 0; i < values.size(); ++i) {
        const T value = convert(values[i]);
        std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
    }
}

template <class T, class Convert>
Numbers load_as(const std::vector<std::byte>& bytes, size_t count, const Convert& convert) {
    Numbers values(count);
    for (size_t i = 0; i < count; ++i) {
        T value;
        std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
        values[i] = static_cast<double>(convert(value));
    }
    return values;
}

// Of one value; a sum of products of rounded values is nearer than its largest term's rounding.
double tolerance_of(Dtype dtype) {
    if (dtype == Dtype::f16) return 4e-3;
    if (dtype == Dtype::bf16) return 3e-2;
    return 3e-6;
}

}  // namespace

KernelCase::KernelCase(Context& ctx, Dtype activations) : ctx_(ctx), activations_(activations) {}

Operand KernelCase::random(Dtype dtype, std::initializer_list<int64_t> shape, double deviation) {
    int64_t count = 1;
    for (const int64_t size : shape) count *= size;
    Numbers values(static_cast<size_t>(count));
    for (double& value : values) {
        double sum = -2;  // of four: near the normal distribution
        for (int i = 0; i < 4; ++i) sum += random_.uniform();
        value = sum * std::sqrt(3.0) * deviation;
    }
    return up(values, dtype, shape);
}

Operand KernelCase::up(const Numbers& values, Dtype dtype, std::initializer_list<int64_t> shape) {
    Operand made{ctx_.arena.tensor(dtype, shape), {}};
    require(made.tensor.size() == std::ssize(values), "internal error: ", values.size(),
            " values for ", made.tensor);
    std::vector<std::byte> bytes(made.tensor.bytes());
    const auto narrow = [](double value) { return static_cast<float>(value); };
    if (is_quantized(dtype)) {
        const std::vector<float> floats(values.begin(), values.end());
        quantize(bytes.data(), floats.data(), dtype, std::ssize(floats));
    } else if (dtype == Dtype::f32) {
        store_as<float>(bytes, values, narrow);
    } else if (dtype == Dtype::f16) {
        store_as<f16_t>(bytes, values, [&](double value) { return to_f16(narrow(value)); });
    } else if (dtype == Dtype::bf16) {
        store_as<bf16_t>(bytes, values, [&](double value) { return to_bf16(narrow(value)); });
    } else if (dtype == Dtype::fp8) {
        store_as<fp8_t>(bytes, values, [&](double value) { return to_fp8(narrow(value)); });
    } else if (dtype == Dtype::i8) {
        store_as<int8_t>(bytes, values, [](double value) { return static_cast<int8_t>(value); });
    } else {
        store_as<int32_t>(bytes, values, [](double value) { return static_cast<int32_t>(value); });
    }
    write_bytes(ctx_, made.tensor.data, bytes.data(), bytes.size());
    made.values = down(made.tensor);
    return made;
}

Tensor KernelCase::ids(const std::vector<int32_t>& ids) {
    return up(Numbers(ids.begin(), ids.end()), Dtype::i32, {std::ssize(ids)}).tensor;
}

Tensor KernelCase::zeros(Dtype dtype, std::initializer_list<int64_t> shape) {
    Tensor tensor = ctx_.arena.tensor(dtype, shape);
    const std::vector<std::byte> bytes(tensor.bytes());
    write_bytes(ctx_, tensor.data, bytes.data(), bytes.size());
    return tensor;
}

Numbers KernelCase::down(const Tensor& tensor) {
    std::vector<std::byte> bytes(tensor.bytes());
    read_bytes(ctx_, bytes.data(), tensor.data, bytes.size());
    const auto count = static_cast<size_t>(tensor.size());
    const auto as_it_is = [](auto value) { return value; };
    const auto widened = [](auto value) { return to_float(value); };
    if (is_quantized(tensor.dtype)) {
        std::vector<float> floats(count);
        dequantize(floats.data(), bytes.data(), tensor.dtype, tensor.size());
        return {floats.begin(), floats.end()};
    }
    switch (tensor.dtype) {
        case Dtype::f16:
            return load_as<f16_t>(bytes, count, widened);
        case Dtype::bf16:
            return load_as<bf16_t>(bytes, count, widened);
        case Dtype::fp8:
            return load_as<fp8_t>(bytes, count, widened);
        case Dtype::i8:
            return load_as<int8_t>(bytes, count, as_it_is);
        case Dtype::i32:
            return load_as<int32_t>(bytes, count, as_it_is);
        default:
            return load_as<float>(bytes, count, as_it_is);
    }
}

void KernelCase::expect(const Tensor& found, const Numbers& expected, double factor) {
    // Inputs of a narrow type are exact here, but a GPU computes with them in their type.
    const bool is_narrow = activations_ != Dtype::f32;
    expect(down(found), expected, factor, is_narrow ? activations_ : Dtype::f32);
}

void KernelCase::expect(const Numbers& found, const Numbers& expected, double factor, Dtype dtype) {
    require(found.size() == expected.size(), "internal error: ", found.size(), " values, expected ",
            expected.size());
    const double allowed = tolerance_of(dtype) * factor;
    for (size_t i = 0; i < found.size(); ++i) {
        const double apart = std::abs(found[i] - expected[i]) / (1 + std::abs(expected[i]));
        if (!(apart / allowed <= worst_)) worst_ = apart / allowed;  // what is not a number too
        if (std::isnan(worst_)) worst_ = HUGE_VAL;
    }
}

double activated(Activation f, double x) {
    switch (f) {
        case Activation::gelu:
            return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
        case Activation::gelu_tanh:
            return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
        case Activation::silu:
            return x / (1 + std::exp(-x));
        default:
            return x;
    }
}

Numbers derivative(const std::function<double(const Numbers&)>& of, Numbers x) {
    constexpr double kStep = 1e-4;
    Numbers slopes(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
        const double at = x[i];
        x[i] = at + kStep;
        const double above = of(x);
        x[i] = at - kStep;
        slopes[i] = (above - of(x)) / (2 * kStep);
        x[i] = at;
    }
    return slopes;
}

double dot(const Numbers& a, const Numbers& b) {
    double sum = 0;
    for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
}

Numbers product_of(const Numbers& x, const Numbers& w, int64_t k) {
    const auto width = static_cast<size_t>(k);
    const size_t rows = x.size() / width, columns = w.size() / width;
    Numbers y(rows * columns);
    for (size_t t = 0; t < rows; ++t)
        for (size_t n = 0; n < columns; ++n)
            for (size_t i = 0; i < width; ++i)
                y[t * columns + n] += x[t * width + i] * w[n * width + i];
    return y;
}

Numbers normalized(const Numbers& x, int64_t c, double eps, bool with_mean) {
    const auto width = static_cast<size_t>(c);
    Numbers y(x.size());
    for (size_t row = 0; row < x.size(); row += width) {
        double mean = 0, squares = 0;
        for (size_t i = row; with_mean && i < row + width; ++i) mean += x[i];
        mean /= static_cast<double>(c);
        for (size_t i = row; i < row + width; ++i) squares += (x[i] - mean) * (x[i] - mean);
        const double scale = 1 / std::sqrt(squares / static_cast<double>(c) + eps);
        for (size_t i = row; i < row + width; ++i) y[i] = (x[i] - mean) * scale;
    }
    return y;
}

}  // namespace hark::doctor
