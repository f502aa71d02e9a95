#include "kernels/matrix_product.cuh"

#include "kernels/lt.cuh"

namespace hark::cuda {
namespace {

using lt::alignment_of, lt::layout, lt::set;

cublasOperation_t operation_of(const Factor& factor) {
    return factor.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
}

// A matrix of rows is to cuBLASLt, which counts by columns, its transpose: it computes d^T = b^T
// a^T, where plan.w is b and plan.x is a.
ProductPlan& plan_for(Handles& handles, const Tensor& d, const Factor& a, const Factor& b,
                      const Addends& with) {
    const PlanKey key = {-1 - int64_t{a.transposed} - 2 * int64_t{b.transposed},
                         a.rows(),
                         a.columns(),
                         b.columns(),
                         int64_t(a.values.dtype),
                         int64_t(d.dtype),
                         int64_t{bool(with.bias)} + 2 * int64_t{bool(with.added)},
                         alignment_of(a.values.data),
                         alignment_of(b.values.data),
                         alignment_of(d.data),
                         alignment_of(with.added.data)};
    std::unique_ptr<ProductPlan>& cached = handles.plans[key];
    if (cached) return *cached;
    auto plan = std::make_unique<ProductPlan>();
    CUBLAS_CHECK(cublasLtMatmulDescCreate(&plan->operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    set(plan->operation, CUBLASLT_MATMUL_DESC_TRANSA, operation_of(b));
    set(plan->operation, CUBLASLT_MATMUL_DESC_TRANSB, operation_of(a));
    if (with.bias) {
        set(plan->operation, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
        set(plan->operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, lt::cuda_type(d.dtype));
    }
    const auto stored = [](const Tensor& t) {
        return layout(t.dtype, t.dim(1), t.dim(0), t.dim(1));
    };
    plan->w = stored(b.values);
    plan->x = stored(a.values);
    plan->y = stored(d);
    constexpr uint32_t kAny = CUBLASLT_REDUCTION_SCHEME_MASK;
    lt::choose_algorithm(handles, *plan, {b.values.data, a.values.data, d.data, with.added.data},
                         kAny, "multiply_matrices");
    cached = std::move(plan);
    return *cached;
}

}  // namespace

void multiply_matrices(Context& ctx, Tensor d, const Factor& a, const Factor& b,
                       const Addends& with) {
    require(d.rank == 2 && a.values.rank == 2 && b.values.rank == 2 && a.columns() == b.rows() &&
                d.dim(0) == a.rows() && d.dim(1) == b.columns(),
            "multiply_matrices: the shapes of ", a.values, " and ", b.values, " do not fit ", d);
    Handles& handles = handles_of(ctx);
    ProductPlan& plan = plan_for(handles, d, a, b, with);
    const void* bias = with.bias.data;
    if (bias) set(plan.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    const float alpha = with.product_factor, beta = with.added ? with.added_factor : 0;
    const void* added = with.added ? with.added.data : d.data;
    CUBLAS_CHECK(cublasLtMatmul(handles.lt, plan.operation, &alpha, b.values.data, plan.w,
                                a.values.data, plan.x, &beta, added, plan.y, d.data, plan.y,
                                &plan.algorithm, handles.workspace, kWorkspaceBytes,
                                handles.stream));
}

}  // namespace hark::cuda
