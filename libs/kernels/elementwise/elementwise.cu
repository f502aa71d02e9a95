// set_zero, stochastic_round, activate and its gradient on the GPU.
#include "kernels/elementwise/elementwise.cuh"

#include "core/random.h"
#include "kernels/cuda/cuda_common.cuh"
#include "kernels/elementwise/activations.cuh"
#include "kernels/elementwise/rounding.h"

namespace hark::cuda {
namespace {

struct Rounding {
    static constexpr int kValues = 8, kPacks = 1;
    __nv_bfloat16* to;
    const float* x;
    uint64_t start;

    template <int V, int P>
    __device__ void run(int64_t first, int64_t) const {
        const Pack<float, V> values = load_pack<V>(x + first);
        Pack<__nv_bfloat16, V> rounded;
        uint64_t drawn = 0;
        for (int v = 0; v < V; ++v) {
            if (v % 4 == 0) drawn = split_mix(start, static_cast<uint64_t>(first + v) / 4);
            const auto place = static_cast<unsigned>(V == 1 ? first % 4 : v % 4);
            const auto chance = static_cast<uint32_t>(drawn >> (16 * place)) & 0xffff;
            rounded.values[v] =
                __ushort_as_bfloat16(rounded_by(__float_as_uint(values.values[v]), chance));
        }
        store_pack(to + first, rounded);
    }
};

template <class T, Activation f>
struct Forward {
    static constexpr int kValues = kWidth<T>, kPacks = 2;
    T* y;
    const T* x;

    template <int V, int P>
    __device__ void run(int64_t first, int64_t step) const {
        Pack<T, V> in[P];
        for (int p = 0; p < P; ++p) in[p] = load_pack<V>(x + first + p * step);
        for (int p = 0; p < P; ++p) {
            Pack<T, V> out;
            for (int v = 0; v < V; ++v)
                out.values[v] = from_f32<T>(value_of<f>(to_f32(in[p].values[v])));
            store_pack(y + first + p * step, out);
        }
    }
};

template <class T, Activation f>
struct Backward {
    static constexpr int kValues = kWidth<T>, kPacks = 2;
    T* dx;
    const T *dy, *x;

    template <int V, int P>
    __device__ void run(int64_t first, int64_t step) const {
        Pack<T, V> in[P], gradient[P];
        for (int p = 0; p < P; ++p) {
            in[p] = load_pack<V>(x + first + p * step);
            gradient[p] = load_pack<V>(dy + first + p * step);
        }
        for (int p = 0; p < P; ++p) {
            Pack<T, V> out;
            for (int v = 0; v < V; ++v)
                out.values[v] = from_f32<T>(to_f32(gradient[p].values[v]) *
                                            slope_of<f>(to_f32(in[p].values[v])));
            store_pack(dx + first + p * step, out);
        }
    }
};

}  // namespace

void set_zero(Context& ctx, Tensor x) {
    enter(ctx, {&x});
    if (x.bytes() > 0) CUDA_CHECK(cudaMemsetAsync(x.data, 0, x.bytes(), stream_of(ctx)));
}

void stochastic_round(Context& ctx, Tensor to, Tensor x, uint64_t seed) {
    enter(ctx, {&to, &x});
    const Rounding rounding{static_cast<__nv_bfloat16*>(to.data), x.as<float>(),
                            Random(seed).next()};
    for_each(ctx, rounding, x.size(), in_16_bytes({to.data, x.data}));
}

void activate(Context& ctx, Tensor y, Tensor x, Activation f) {
    enter(ctx, {&y, &x});
    const bool aligned = in_16_bytes({y.data, x.data});
    with_activation_type("activate", x, [&](auto value) {
        using T = decltype(value);
        auto *to = static_cast<T*>(y.data), *from = static_cast<T*>(x.data);
        if (f == Activation::gelu)
            return for_each(ctx, Forward<T, Activation::gelu>{to, from}, x.size(), aligned);
        if (f == Activation::silu)
            return for_each(ctx, Forward<T, Activation::silu>{to, from}, x.size(), aligned);
        for_each(ctx, Forward<T, Activation::gelu_tanh>{to, from}, x.size(), aligned);
    });
}

void activate_backward(Context& ctx, Tensor dx, Tensor dy, Tensor x, Activation f) {
    enter(ctx, {&dx, &dy, &x});
    const bool aligned = in_16_bytes({dx.data, dy.data, x.data});
    with_activation_type("activate_backward", x, [&](auto value) {
        using T = decltype(value);
        auto* to = static_cast<T*>(dx.data);
        const auto *gradient = static_cast<T*>(dy.data), *in = static_cast<T*>(x.data);
        if (f == Activation::gelu)
            return for_each(ctx, Backward<T, Activation::gelu>{to, gradient, in}, x.size(),
                            aligned);
        if (f == Activation::silu)
            return for_each(ctx, Backward<T, Activation::silu>{to, gradient, in}, x.size(),
                            aligned);
        for_each(ctx, Backward<T, Activation::gelu_tanh>{to, gradient, in}, x.size(), aligned);
    });
}

}  // namespace hark::cuda
