// linear of one row and weights of its 16-bit type: sliced_kernel's sums by kernels that have
// only the code which the call needs. A step of a small model waits for instructions and loads
// rather than for bytes (docs/kernels/decode_step.md).
#include "kernels/linear/small_m_short_row.cuh"

#include "kernels/linear/small_m_row.cuh"
#include "kernels/norm/rms_norm.cuh"

namespace hark::cuda {
namespace {

// Steps of a slice whose weights are in registers before the wait: short slices have no more.
constexpr int kShortSteps = 4, kLongSteps = 8;
// Columns of short slices, of long ones of a row with layer_norm, and of those of more than
// kLongSteps. The rest is row_kernel's, or sliced_kernel's.
constexpr int64_t kMostLongNormed = 1280, kMostLongColumns = 6400;
constexpr int kShortStep = 32;     // columns
constexpr int kShortOutputs = 16;  // of a block

// a / divisor for 0 <= a < 2^16 and divisors below 2^16.
struct Divisor {
    uint32_t factor;

    explicit Divisor(int64_t divisor)
        : factor(static_cast<uint32_t>(((int64_t{1} << 32) + divisor - 1) / divisor)) {}
    __device__ int operator()(int a) const {
        return static_cast<int>(__umulhi(static_cast<uint32_t>(a), factor));
    }
};

struct ShortRowArgs {
    void* y;
    const float* bias;
    const void* residual;
    int n, k, units, slices;
    Divisor by_slices;
    const float *norm_weight, *norm_bias;
    float norm_eps;
    AppendArgs append;
    Divisor by_head;

    explicit ShortRowArgs(const SmallMArgs& args)
        : y(args.y),
          bias(args.bias),
          residual(args.residual),
          n(static_cast<int>(args.n)),
          k(static_cast<int>(args.k)),
          units(args.units),
          slices(args.slices),
          by_slices(std::max(2, args.slices)),  // 2^32 is no factor; one slice begins at 0
          norm_weight(args.norm_weight),
          norm_bias(args.norm_bias),
          norm_eps(args.norm_eps),
          append(args.append),
          by_head(std::max(2, args.append.d)) {}

    // SmallMArgs::slice_begin in steps.
    __device__ int first_step(int slice) const {
        const int unit = slices == 1 ? slice * units : by_slices(slice * units);
        return unit * (kUnit / kShortStep);
    }
    // The place of output n in the cache's keys or values; null if it has none.
    template <class T>
    __device__ T* place(int n) const {
        const int slot = append.slot[0], place = append.length[0] - 1;
        const int width = append.heads * append.d;
        int c = n - static_cast<int>(append.first);
        if (c < 0 || c >= 2 * width || slot < 0 || slot >= append.slots) return nullptr;
        if (place < 0 || place >= append.capacity) return nullptr;
        T* const cache = static_cast<T*>(c < width ? append.keys : append.values);
        if (c >= width) c -= width;
        const int h = by_head(c);
        const int64_t row = (int64_t{slot} * append.heads + h) * append.capacity + place;
        return cache + row * append.d + c - h * append.d;
    }
};

enum class ShortNorm { none, layer, rms };

// Block b: outputs 16 b to 16 b + 15. Warp s sums slice s; the weights of its first `Steps` steps
// are in registers before the wait.
template <class T, ShortNorm Norm, Activation Act, bool Appends, int Steps>
__global__ void __launch_bounds__(32 * kMostSlices)
    short_row_kernel(ShortRowArgs args, const T* x, const T* __restrict__ w) {
    pdl_trigger();
    constexpr bool kNormed = Norm != ShortNorm::none, kRms = Norm == ShortNorm::rms;
    constexpr bool kLoops = Steps > kShortSteps && !kNormed;  // a slice may have more steps
    __shared__ float sums[kMostSlices][kShortOutputs + 4];
    extern __shared__ __align__(16) uint8_t normed[];  // x's norm, if there is one
    const int slice = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int first = args.first_step(slice), steps = args.first_step(slice + 1) - first;
    const int n0 = blockIdx.x * kShortOutputs, at = first * kShortStep + 8 * t;
    uint4 weights[Steps][2];
    const auto load_step = [&](uint4(&to)[2], int s) {
#pragma unroll
        for (int i = 0; i < 2; ++i)  // past the end the last output is computed again
            to[i] = load_once(w + int64_t{min(n0 + 8 * i + g, args.n - 1)} * args.k + at +
                              s * kShortStep);
    };
#pragma unroll
    for (int s = 0; s < Steps; ++s)
        if (s < steps) load_step(weights[s], s);
    const int n = n0 + static_cast<int>(threadIdx.x);
    const bool finishes = threadIdx.x < kShortOutputs && n < args.n;
    float bias = 0, residual = 0;
    T* cached = nullptr;
    if (finishes) {
        if (args.bias) bias = args.bias[n];
        if constexpr (Appends) cached = args.place<T>(n);
    }
    const NormPack norm(args.norm_weight, args.norm_bias, kNormed && !kRms ? args.k : 0);
    const RmsWeights<1> rms_weights(args.norm_weight, kRms ? args.k : 0);
    pdl_wait();
    if constexpr (kNormed) {
        T* const row = reinterpret_cast<T*>(normed);
        if constexpr (kRms)
            rms_norm_row(row, x, args.k, args.norm_eps, rms_weights);
        else
            norm_row(row, x, args.k, args.norm_eps, norm);
        __syncthreads();
        x = row;
    }
    uint4 values[Steps];
    const auto load_values = [&](uint4& to, int s) {
        to = *reinterpret_cast<const uint4*>(x + at + s * kShortStep);
    };
#pragma unroll
    for (int s = 0; s < Steps; ++s)
        if (s < steps) load_values(values[s], s);
    if (finishes && args.residual) residual = to_f32(static_cast<const T*>(args.residual)[n]);
    float of_row[1][1][4] = {};
    int begin = 0;
    do {
#pragma unroll
        for (int s = 0; s < Steps; ++s) {
            if (begin + s >= steps) break;
            const Half of_w[1][2] = {{as_half(weights[s][0]), as_half(weights[s][1])}};
            const Half of_x[1] = {as_half(values[s])};
            multiply_halves<T>(of_row, of_w, of_x);
            const int later = begin + s + Steps;
            if (!kLoops || later >= steps) continue;
            load_step(weights[s], later);
            load_values(values[s], later);
        }
        begin += Steps;
    } while (kLoops && begin < steps);
    if (t == 0) {
        sums[slice][g] = of_row[0][0][0];
        sums[slice][8 + g] = of_row[0][0][2];
    }
    __syncthreads();
    if (!finishes) return;
    float of_slice[kMostSlices], sum = 0;
#pragma unroll
    for (int s = 0; s < kMostSlices; ++s)
        of_slice[s] = s < args.slices ? sums[s][threadIdx.x] : 0.0f;
#pragma unroll
    for (const float value : of_slice) sum = __fadd_rn(sum, value);
    const T value = from_f32<T>(__fadd_rn(activate(__fadd_rn(sum, bias), Act), residual));
    static_cast<T*>(args.y)[n] = value;
    if (Appends && cached) *cached = value;
}

template <class T, ShortNorm Norm>
auto short_kernel_of(const SmallMArgs& args) {
    using enum Activation;
    if (args.append.keys) return short_row_kernel<T, Norm, none, true, kShortSteps>;
    if (args.activation == gelu) return short_row_kernel<T, Norm, gelu, false, kShortSteps>;
    if (args.activation == gelu_tanh)
        return short_row_kernel<T, Norm, gelu_tanh, false, kShortSteps>;
    return short_row_kernel<T, Norm, none, false, kShortSteps>;
}

template <class T>
auto long_kernel_of(const SmallMArgs& args) {
    using enum Activation;
    constexpr ShortNorm kNone = ShortNorm::none, kLayer = ShortNorm::layer;
    if (!args.norm_weight) return short_row_kernel<T, kNone, none, false, kLongSteps>;
    if (args.activation == gelu) return short_row_kernel<T, kLayer, gelu, false, kLongSteps>;
    return short_row_kernel<T, kLayer, gelu_tanh, false, kLongSteps>;
}

// Whether slices of more than kShortSteps are long_kernel_of()'s. With up to kLongSteps row_kernel
// has all weights in registers too. Measured on an H200.
bool takes_long_slices(const SmallMArgs& args, int64_t steps) {
    using enum Activation;
    if (args.append.keys) return false;
    if (args.norm_weight)
        return args.k <= kMostLongNormed && steps <= kLongSteps &&
               (args.activation == gelu || args.activation == gelu_tanh);
    return steps > kLongSteps && args.k <= kMostLongColumns && args.activation == none &&
           ceil_div(args.n, kShortOutputs) <= multiprocessors();
}

}  // namespace

bool short_row_product(Context& ctx, const SmallMArgs& args, const LinearFusion& with,
                       const Tensor& x, const Tensor& w) {
    using enum Activation;
    const bool has_form = args.rows == 1 && w.dtype == x.dtype && args.y_type == x.dtype &&
                          args.up == 0 && !args.scales && args.n < kVocabulary;
    const int64_t steps = ceil_div(args.units, args.slices) * (kUnit / kShortStep);
    const bool is_long = steps > kShortSteps;
    const bool takes_slices = args.k % kUnit == 0 && (is_long ? takes_long_slices(args, steps)
                                                              : args.k <= kMostShortColumns);
    const bool is_rms = with.norm.weight && with.norm.kind == NormKind::rms;
    // Of the kernels with rms_norm one is needed, of a product of queries, keys and values.
    const bool has_norm = !is_rms || (!is_long && args.activation == none && !args.append.keys);
    const bool has_epilogue =
        args.append.keys
            ? args.activation == none && args.append.type == x.dtype && args.append.d > 1
            : args.activation != silu;
    if (!has_form || !takes_slices || !has_norm || !has_epilogue) return false;
    const size_t shared = args.norm_weight ? static_cast<size_t>(args.k) * size_of(x.dtype) : 0;
    const auto launch = [&](auto type) {
        using T = decltype(type);
        const auto kernel = is_long  ? long_kernel_of<T>(args)
                            : is_rms ? short_row_kernel<T, ShortNorm::rms, none, false, kShortSteps>
                            : args.norm_weight ? short_kernel_of<T, ShortNorm::layer>(args)
                                               : short_kernel_of<T, ShortNorm::none>(args);
        pdl_launch(ctx, kernel, static_cast<unsigned>(ceil_div(args.n, kShortOutputs)),
                   static_cast<unsigned>(32 * args.slices), shared, ShortRowArgs(args),
                   static_cast<const T*>(x.data), static_cast<const T*>(w.data));
    };
    x.dtype == Dtype::f16 ? launch(__half{}) : launch(__nv_bfloat16{});
    return true;
}

}  // namespace hark::cuda
