// An operation on a device next to its definition in double precision.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <vector>

#include "core/context.h"
#include "core/random.h"
#include "kernels/gradients.h"

namespace hark::doctor {

using Numbers = std::vector<double>;

// A tensor of the device, and its values as the type holds them.
struct Operand {
    Tensor tensor;
    Numbers values;
};

// Makes an operation's inputs and compares its outputs. All memory is the context's.
class KernelCase {
  public:
    // `activations`: the type of an operation's inputs and outputs.
    KernelCase(Context& ctx, Dtype activations);

    Context& ctx() { return ctx_; }
    Dtype activations() const { return activations_; }

    // Values of about the normal distribution; the same ones in every run.
    Operand random(std::initializer_list<int64_t> shape, double deviation = 1) {
        return random(activations_, shape, deviation);
    }
    Operand random(Dtype dtype, std::initializer_list<int64_t> shape, double deviation = 1);
    // The values rounded to f32, f16, bf16 or a quantised type; i8 and i32 take whole numbers.
    Operand up(const Numbers& values, Dtype dtype, std::initializer_list<int64_t> shape);
    Tensor ids(const std::vector<int32_t>& ids);
    // Zeros.
    Tensor zeros(Dtype dtype, std::initializer_list<int64_t> shape);
    Tensor zeros(std::initializer_list<int64_t> shape) { return zeros(activations_, shape); }
    Numbers down(const Tensor& tensor);

    // Each value of `found` may be apart from the expected one by `factor` times what the rounding
    // of the activations' type (of f32, if `found` is f32) and of sums of them makes usual,
    // relative above 1.
    void expect(const Tensor& found, const Numbers& expected, double factor = 1);
    void expect(const Numbers& found, const Numbers& expected, double factor, Dtype dtype);
    // The largest distance so far, of what is allowed.
    double worst() const { return worst_; }

  private:
    Context& ctx_;
    Dtype activations_;
    Random random_{1};
    double worst_ = 0;
};

double activated(Activation f, double x);
// The derivative of `of` by each value of x, by differences.
Numbers derivative(const std::function<double(const Numbers&)>& of, Numbers x);
double dot(const Numbers& a, const Numbers& b);
// y (T, N) = x (T, K) W^T (N, K); T and N follow from the sizes.
Numbers product_of(const Numbers& x, const Numbers& w, int64_t k);
// The norm of each row of C values, without weights.
Numbers normalized(const Numbers& x, int64_t c, double eps, bool with_mean);

// An operation's check: compares it in one case or several.
#define HARK_OP(name) void check_##name(KernelCase& on);
#include "kernels/ops.def"
#undef HARK_OP

}  // namespace hark::doctor
