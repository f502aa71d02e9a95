#include "kernels/linear/gemm.cuh"

#include <algorithm>
#include <bit>

#include "kernels/cuda/hopper.cuh"
#include "kernels/elementwise/rows.cuh"
#include "kernels/linear/cublaslt.cuh"
#include "kernels/linear/fp8_rows.cuh"
#include "kernels/quant/quantized.cuh"

namespace hark::cuda {
namespace {

using lt::alignment_of, lt::cuda_type, lt::layout, lt::set;

constexpr int kGemmThreads = 256;

// Number of rows for which an algorithm is chosen and then used for any number, so a row is always
// computed in one way. 1500 rows are one window of Whisper's encoder. The fastest algorithm for one
// window is nearly so for 8, but not vice versa (docs/kernels/linear.md).
constexpr int64_t kNominalRows = 1500;

// The same for eight windows and more in 16 bits on Hopper: the algorithm for as many rows if y is
// narrow. If y is wider, sums are long and the rows are 16 windows or more, the one for 18 windows.
// All algorithms of whole sums give the same bits there, so a row is still computed in one way
// (docs/kernels/log/encoder.md).
constexpr int64_t kLongRows = 12000, kLongestRows = 24000, kNominalLongestRows = 27000;
constexpr int64_t kNarrowColumns = 1024;  // columns of y

// Without batch invariance: the most rows that have an algorithm of their own, the fewest that
// algorithms are tried for, how many algorithms and how often. A trial loads eight kernels of
// cuBLASLt, 4 to 5 ms each, and gains about a twentieth of the time: it pays for shapes that have
// taken 0.7 s, in operations of an H200.
constexpr int64_t kMostNominalRows = 2048, kLeastTriedRows = 512;
constexpr double kOperationsBeforeTrial = 5e14;
constexpr int kPromptCandidates = 7, kPromptTrials = 2;
constexpr size_t kMostPromptPlans = 64;

// The rows whose algorithm is taken: x (rows, K), w (N, K). Without batch invariance about as many.
int64_t nominal_rows(const Context& ctx, const Tensor& x, const Tensor& w) {
    const int64_t rows = x.rows(), n = w.dim(0);
    if (ctx.batch_invariant) {
        if (rows < kLongRows || !is_16_bit(x.dtype) || !is_hopper()) return kNominalRows;
        if (n <= kNarrowColumns) return kLongRows;
        return rows >= kLongestRows && w.dim(1) > n ? kNominalLongestRows : kNominalRows;
    }
    const auto power = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(rows)));
    return std::min(power, kMostNominalRows);
}

unsigned blocks_for(int64_t items) {
    return static_cast<unsigned>(std::min<int64_t>(ceil_div(items, kGemmThreads), 132 * 16));
}

// to (rows, K) = from * scale of the row
template <int V, class From, class To>
__global__ void convert_kernel(To* to, const From* from, const float* scales, int64_t rows,
                               int64_t k) {
    pdl_trigger();
    pdl_wait();
    const int64_t packs = rows * k / V;
    for (int64_t i = int64_t{blockIdx.x} * kGemmThreads + threadIdx.x; i < packs;
         i += int64_t{gridDim.x} * kGemmThreads) {
        const float scale = scales ? scales[i * V / k] : 1.0f;
        const Pack<From, V> in = load_pack<V>(from + i * V);
        Pack<To, V> out;
        for (int v = 0; v < V; ++v) out.values[v] = from_f32<To>(to_f32(in.values[v]) * scale);
        *reinterpret_cast<Pack<To, V>*>(to + i * V) = out;
    }
}

}  // namespace

void convert(Context& ctx, Tensor to, Tensor from, const float* scales) {
    if (is_quantized(from.dtype)) {
        check_half("linear", to);
        return dequantize(ctx, to, from);
    }
    const int64_t rows = from.dim(0), k = from.dim(1);
    const bool wide = in_packs(k, {to.data, from.data});
    const auto launch = [&](auto to_value, auto from_value) {
        using To = decltype(to_value);
        using From = decltype(from_value);
        const auto kernel = wide ? convert_kernel<8, From, To> : convert_kernel<1, From, To>;
        pdl_launch(ctx, kernel, blocks_for(rows * k / (wide ? 8 : 1)), kGemmThreads, 0,
                   static_cast<To*>(to.data), static_cast<const From*>(from.data), scales, rows, k);
    };
    with_float_type(to.dtype, [&](auto to_value) {
        if (from.dtype == Dtype::i8) return launch(to_value, int8_t{});
        if (from.dtype == Dtype::fp8) return launch(to_value, fp8_t{});
        with_float_type(from.dtype, [&](auto from_value) { launch(to_value, from_value); });
    });
}

namespace {

// y = residual + activation(product + bias); y may be the product or the residual.
template <int V, class P, class Y>
__global__ void epilogue_kernel(Y* y, const P* product, const float* bias, const Y* residual,
                                Activation activation, int64_t rows, int64_t n) {
    const int64_t packs = rows * n / V;
    for (int64_t i = int64_t{blockIdx.x} * kGemmThreads + threadIdx.x; i < packs;
         i += int64_t{gridDim.x} * kGemmThreads) {
        const Pack<P, V> in = load_pack<V>(product + i * V);
        Pack<float, V> biases{};
        if (bias)
            for (int v = 0; v < V; ++v) biases.values[v] = bias[i * V % n + v];
        Pack<Y, V> out;
        for (int v = 0; v < V; ++v) {
            float value = activate(to_f32(in.values[v]) + biases.values[v], activation);
            if (residual) value += to_f32(residual[i * V + v]);
            out.values[v] = from_f32<Y>(value);
        }
        *reinterpret_cast<Pack<Y, V>*>(y + i * V) = out;
    }
}

void apply_epilogue(Context& ctx, Tensor y, Tensor product, const Epilogue& then) {
    const int64_t rows = y.rows(), n = y.dim(-1);
    const bool wide = in_packs(n, {y.data, product.data, then.residual.data});
    const float* bias = then.bias ? then.bias.as<float>() : nullptr;
    const auto launch = [&](auto product_value, auto y_value) {
        using P = decltype(product_value);
        using Y = decltype(y_value);
        const auto kernel = wide ? epilogue_kernel<8, P, Y> : epilogue_kernel<1, P, Y>;
        kernel<<<blocks_for(rows * n / (wide ? 8 : 1)), kGemmThreads, 0, stream_of(ctx)>>>(
            static_cast<Y*>(y.data), static_cast<const P*>(product.data), bias,
            static_cast<const Y*>(then.residual.data), then.activation, rows, n);
    };
    with_float_type(y.dtype, [&](auto y_value) {
        if (product.dtype == Dtype::f32) return launch(float{}, y_value);
        launch(y_value, y_value);
    });
    CUDA_CHECK(cudaGetLastError());
}

// Scales of the rows of both factors, which cuBLASLt has since CUDA 12.9.
#if CUDART_VERSION >= 12090
constexpr bool kHasRowScales = true;
void set_row_scales(const ProductPlan& plan, const float* w, const float* x) {
    constexpr int32_t kOuter = CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F;
    set(plan.operation, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, kOuter);
    set(plan.operation, CUBLASLT_MATMUL_DESC_B_SCALE_MODE, kOuter);
    set(plan.operation, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, w);
    set(plan.operation, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, x);
}
#else
constexpr bool kHasRowScales = false;
void set_row_scales(const ProductPlan&, const float*, const float*) {}
#endif

// A product for cuBLASLt: d (T, N with `stride` columns) = act(x W^T + bias) [+ residual].
struct Product {
    Tensor d, x, w;                  // w (N, K) in x's type; d.data is the block's first column
    int64_t stride;                  // columns of the whole of y
    const void* bias = nullptr;      // (N) in d's type
    const void* residual = nullptr;  // of d's type and stride
    bool gelu_tanh = false;
    const float *x_scales = nullptr, *w_scales = nullptr;  // of the rows of e4m3

    cublasLtEpilogue_t epilogue() const {
        if (gelu_tanh) return bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
        return bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    }
};

PlanKey key_of(const Product& product, int64_t rows) {
    const Tensor &d = product.d, &x = product.x, &w = product.w;
    return {w.dim(0),
            w.dim(1),
            product.stride,
            int64_t(x.dtype),
            int64_t(d.dtype),
            product.epilogue(),
            product.residual != nullptr,
            alignment_of(w.data),
            alignment_of(x.data),
            alignment_of(d.data),
            alignment_of(product.residual),
            rows};
}

// Sets what a plan's calls do not have in common.
void prepare(const ProductPlan& plan, const Product& product, int64_t rows) {
    if (product.bias) set(plan.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, product.bias);
    if (product.x_scales) set_row_scales(plan, product.w_scales, product.x_scales);
    for (cublasLtMatrixLayout_t of_rows : {plan.x, plan.y})
        set(of_rows, CUBLASLT_MATRIX_LAYOUT_COLS, static_cast<uint64_t>(rows));
}

cublasStatus_t run(Handles& handles, const ProductPlan& plan, const Product& product,
                   const cublasLtMatmulAlgo_t& algorithm) {
    const float alpha = 1, beta = product.residual ? 1 : 0;
    const void* c = product.residual ? product.residual : product.d.data;
    return cublasLtMatmul(handles.lt, plan.operation, &alpha, product.w.data, plan.w,
                          product.x.data, plan.x, &beta, c, plan.y, product.d.data, plan.y,
                          &algorithm, handles.workspace, kWorkspaceBytes, handles.stream);
}

// No split sums for any number of rows: the number of parts would depend on it.
uint32_t reductions(int64_t rows) {
    return rows >= kNominalRows ? CUBLASLT_REDUCTION_SCHEME_NONE : CUBLASLT_REDUCTION_SCHEME_MASK;
}

lt::Operands operands_of(const Product& product) {
    return {product.w.data, product.x.data, product.d.data, product.residual};
}

// Whether algorithms are tried in this call: of many rows of a language model's prompts.
bool tries(const Context& ctx, const ProductPlan& plan, const Product& product) {
    const Handles& handles = handles_of(ctx);
    return plan.operations > kOperationsBeforeTrial && !plan.was_tried && !ctx.batch_invariant &&
           product.x.rows() >= kLeastTriedRows && product.x.dtype == Dtype::bf16 && is_hopper() &&
           handles.plans.size() < kMostPromptPlans && !lt::is_recording(handles);
}

cublasLtMatmulAlgo_t fastest_algorithm(Context& ctx, const ProductPlan& plan, Product product,
                                       int64_t rows) {
    Handles& handles = handles_of(ctx);
    const lt::Operands operands = operands_of(product);
    prepare(plan, product, rows);
    lt::Algorithms found =
        lt::algorithms(handles, plan, operands, reductions(rows), kPromptCandidates, "linear");
    found.all[0] = plan.algorithm;  // its order of sums stays
    // What is expected to be the fastest of fewer rows often is of these.
    prepare(plan, product, kNominalRows);
    found.all[found.count++] =
        lt::algorithms(handles, plan, operands, CUBLASLT_REDUCTION_SCHEME_NONE, 1, "linear").all[0];
    const Arena::Scope scope(ctx.arena);
    if (product.residual == product.d.data)  // must be added once
        product.d = ctx.arena.tensor(product.d.dtype, {product.x.rows(), product.stride});
    prepare(plan, product, product.x.rows());
    return lt::fastest(handles, found, kPromptTrials, [&](const cublasLtMatmulAlgo_t& algorithm) {
        return run(handles, plan, product, algorithm);
    });
}

std::unique_ptr<ProductPlan> make_plan(Handles& handles, const Product& product, int64_t rows) {
    const Tensor &d = product.d, &x = product.x, &w = product.w;
    auto plan = std::make_unique<ProductPlan>();
    CUBLAS_CHECK(cublasLtMatmulDescCreate(&plan->operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    set(plan->operation, CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
    set(plan->operation, CUBLASLT_MATMUL_DESC_EPILOGUE, product.epilogue());
    if (product.bias) set(plan->operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, cuda_type(d.dtype));
    // cuBLASLt sees W as (K, N), to be transposed, x as (K, T) and y as (N, T).
    plan->w = layout(w.dtype, w.dim(1), w.dim(0), w.dim(1));
    plan->x = layout(x.dtype, w.dim(1), rows, w.dim(1));
    plan->y = layout(d.dtype, w.dim(0), rows, product.stride);
    if (product.x_scales) set_row_scales(*plan, product.w_scales, product.x_scales);
    plan->algorithm =
        lt::algorithms(handles, *plan, operands_of(product), reductions(rows), 1, "linear").all[0];
    return plan;
}

void multiply(Context& ctx, const Product& product) {
    Handles& handles = handles_of(ctx);
    const int64_t rows = nominal_rows(ctx, product.x, product.w);
    std::unique_ptr<ProductPlan>& plan = handles.plans[key_of(product, rows)];
    if (!plan) plan = make_plan(handles, product, rows);
    plan->operations += 2.0 * static_cast<double>(product.x.size() * product.w.dim(0));
    if (tries(ctx, *plan, product)) {
        plan->was_tried = true;
        try {
            plan->algorithm = fastest_algorithm(ctx, *plan, product, rows);
        } catch (const OutOfMemory&) {  // for a second y: the first algorithm stays
        }
    }
    prepare(*plan, product, product.x.rows());
    CUBLAS_CHECK(run(handles, *plan, product, plan->algorithm));
}

std::byte* column(const Tensor& tensor, int64_t n) {
    if (!tensor) return nullptr;
    return static_cast<std::byte*>(tensor.data) + n * static_cast<int64_t>(size_of(tensor.dtype));
}

// Calls multiply(block) for all rows of W, or for blocks of rows that are converted one after
// another.
template <class F>
void with_blocks(Context& ctx, Dtype dtype, const Matrix& w, F&& multiply) {
    const int64_t n = w.values.dim(0), k = w.values.dim(1);
    if (w.values.dtype == dtype) return multiply(Block{w.values, 0, true});
    // A multiple of 64 keeps every block's columns aligned like the whole.
    const int64_t step = std::min(n, ceil_div(kConvertedElements / k, 64) * 64);
    const Tensor converted = ctx.arena.tensor(dtype, {step, k});
    for (int64_t begin = 0; begin < n; begin += step) {
        const int64_t end = std::min(n, begin + step);
        const Tensor block = converted.slice(0, end - begin);
        convert(ctx, block, w.values.slice(begin, end),
                w.scales ? w.scales.as<float>() + begin : nullptr);
        multiply(Block{block, begin, false});
    }
}

// d = x W^T with the epilogue that cuBLASLt fuses; norm: of gemm().
void multiply_blocks(Context& ctx, Tensor d, Tensor x, const Matrix& w, const Epilogue& fused,
                     const Norm& norm) {
    const int64_t n = w.values.dim(0);
    Tensor bias = fused.bias;
    if (bias && d.dtype != Dtype::f32) {  // cuBLASLt needs a bias of y's type
        bias = ctx.arena.tensor(d.dtype, {1, n});
        convert(ctx, bias, fused.bias.reshaped({1, n}), nullptr);
    }
    const bool gelu_tanh = fused.activation == Activation::gelu_tanh;
    if (multiplies_fp8(x, w)) {
        const Fp8Rows rows = to_fp8_rows(ctx, x, norm);
        return multiply(ctx, {d, rows.values, w.values, n, bias.data, fused.residual.data,
                              gelu_tanh, rows.scales.as<float>(), w.scales.as<float>()});
    }
    with_blocks(ctx, x.dtype, w, [&](const Block& block) {
        Tensor columns = d;
        columns.data = column(d, block.first);
        multiply(ctx, {columns, x, block.values, n, column(bias, block.first),
                       column(fused.residual, block.first), gelu_tanh});
    });
}

}  // namespace

ProductPlan::~ProductPlan() {
    for (cublasLtMatrixLayout_t made : {w, x, y})
        if (made) cublasLtMatrixLayoutDestroy(made);
    if (operation) cublasLtMatmulDescDestroy(operation);
}

bool multiplies_fp8(const Tensor& x, const Matrix& w) {
    return kHasRowScales && takes_fp8_rows(x, w) && w.values.dim(0) % 16 == 0;
}

namespace {

bool is_fp8_wgmma_product(const Tensor& x, const Matrix& w, const Epilogue& then) {
    return x.rows() >= kManyRowsOnGpu && has_fp8_wgmma_product(x, w, then);
}

}  // namespace

bool rounds_x(const Tensor& x, const Matrix& w, const Epilogue& then) {
    return multiplies_fp8(x, w) || is_fp8_wgmma_product(x, w, then);
}

void gemm(Context& ctx, Tensor y, Tensor x, const Matrix& w, const Epilogue& then,
          const Norm& norm) {
    const Arena::Scope scope(ctx.arena);
    if (is_fp8_wgmma_product(x, w, then)) return fp8_wgmma_product(ctx, y, x, w, then, norm);
    if (!multiplies_fp8(x, w) && has_wgmma_product(y, x, w, then)) {
        return with_blocks(ctx, x.dtype, w,
                           [&](const Block& block) { wgmma_product(ctx, y, x, block, then.bias); });
    }
    const bool direct = y.dtype == x.dtype || (y.dtype == Dtype::f32 && is_16_bit(x.dtype));
    // Of e4m3 it knows no GELU, and of an f32 y no f32 bias.
    const bool fusible =
        multiplies_fp8(x, w)
            ? then.activation == Activation::none && (is_16_bit(y.dtype) || !then.bias)
            : then.activation == Activation::none ||
                  (then.activation == Activation::gelu_tanh && !then.residual);
    if (direct && fusible) return multiply_blocks(ctx, y, x, w, then, norm);
    // The product is written to y, unless y is still needed as the residual.
    const bool in_place = direct && then.residual.data != y.data;
    const Tensor product =
        in_place ? y : ctx.arena.tensor(direct ? y.dtype : Dtype::f32, {y.rows(), y.dim(-1)});
    multiply_blocks(ctx, product, x, w, {}, norm);
    apply_epilogue(ctx, y, product, then);
}

}  // namespace hark::cuda
