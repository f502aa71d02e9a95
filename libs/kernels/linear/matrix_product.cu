#include "kernels/linear/matrix_product.cuh"

#include "kernels/cuda/hopper.cuh"
#include "kernels/linear/cublaslt.cuh"

namespace hark::cuda {
namespace {

using lt::alignment_of, lt::layout, lt::set;

constexpr int kCandidates = 8, kTrials = 4;
// Shapes that come only once, such as those of a set of questions, are not worth the trials.
constexpr size_t kMostTriedPlans = 64;

struct Work {
    Tensor d;
    Factor a, b;
    Finish finish;

    bool accumulates() const { return finish.added.data == d.data; }
    PlanKey key() const {
        return {-1 - int64_t{a.transposed} - 2 * int64_t{b.transposed},
                a.rows(),
                a.columns(),
                b.columns(),
                int64_t(a.values.dtype),
                int64_t(d.dtype),
                int64_t{bool(finish.bias)} + 2 * int64_t{bool(finish.added)} +
                    4 * int64_t{accumulates()} + 8 * static_cast<int64_t>(finish.gelu),
                alignment_of(a.values.data),
                alignment_of(b.values.data),
                alignment_of(d.data),
                alignment_of(finish.added.data)};
    }
    cublasLtEpilogue_t epilogue() const {
        const bool bias(finish.bias);
        if (finish.gelu == Finish::Gelu::value)
            return bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
        if (finish.gelu == Finish::Gelu::slope) return CUBLASLT_EPILOGUE_DGELU;
        return bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    }
};

cublasStatus_t run(Handles& handles, const ProductPlan& plan, const Work& work,
                   const cublasLtMatmulAlgo_t& algorithm) {
    const Finish& finish = work.finish;
    const float alpha = finish.product_factor, beta = finish.added ? finish.added_factor : 0;
    const void* added = finish.added ? finish.added.data : work.d.data;
    return cublasLtMatmul(handles.lt, plan.operation, &alpha, work.b.values.data, plan.w,
                          work.a.values.data, plan.x, &beta, added, plan.y, work.d.data, plan.y,
                          &algorithm, handles.workspace, kWorkspaceBytes, handles.stream);
}

// On other GPUs than Hopper it is not known that algorithms give the same bits: the first one.
cublasLtMatmulAlgo_t fastest(Handles& handles, const ProductPlan& plan, const Work& work,
                             const lt::Algorithms& found) {
    const bool tries = is_hopper() && work.a.values.dtype == Dtype::bf16 && !work.accumulates() &&
                       handles.plans.size() < kMostTriedPlans;
    if (!tries || lt::is_recording(handles)) return found.all[0];
    return lt::fastest(handles, found, kTrials, [&](const cublasLtMatmulAlgo_t& algorithm) {
        return run(handles, plan, work, algorithm);
    });
}

cublasOperation_t operation_of(const Factor& factor) {
    return factor.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
}

// Sets the operands' addresses that are attributes of a plan's operation.
void set_pointers(const ProductPlan& plan, const Finish& finish) {
    if (finish.bias)
        set(plan.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
            static_cast<const void*>(finish.bias.data));
    if (finish.gelu != Finish::Gelu::none)
        set(plan.operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, finish.gelu_input.data);
}

// cuBLASLt counts by columns and so sees a row-major matrix as its transpose: it computes d^T = b^T
// a^T, with plan.w = b and plan.x = a.
ProductPlan& plan_for(Handles& handles, const Work& work) {
    std::unique_ptr<ProductPlan>& cached = handles.plans[work.key()];
    if (cached) return *cached;
    const Finish& finish = work.finish;
    auto plan = std::make_unique<ProductPlan>();
    CUBLAS_CHECK(cublasLtMatmulDescCreate(&plan->operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    set(plan->operation, CUBLASLT_MATMUL_DESC_TRANSA, operation_of(work.b));
    set(plan->operation, CUBLASLT_MATMUL_DESC_TRANSB, operation_of(work.a));
    set(plan->operation, CUBLASLT_MATMUL_DESC_EPILOGUE, work.epilogue());
    if (finish.bias)
        set(plan->operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, lt::cuda_type(work.d.dtype));
    if (finish.gelu != Finish::Gelu::none)
        set(plan->operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, work.d.dim(1));
    set_pointers(*plan, finish);
    const auto stored = [](const Tensor& t) {
        return layout(t.dtype, t.dim(1), t.dim(0), t.dim(1));
    };
    plan->w = stored(work.b.values);
    plan->x = stored(work.a.values);
    plan->y = stored(work.d);
    const lt::Operands operands = {work.b.values.data, work.a.values.data, work.d.data,
                                   finish.added.data};
    // Partial sums added in bf16 would lose the precision of f32 sums.
    const uint32_t reductions = work.d.dtype == Dtype::f32 ? CUBLASLT_REDUCTION_SCHEME_MASK
                                                           : CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    plan->algorithm = fastest(
        handles, *plan, work,
        lt::algorithms(handles, *plan, operands, reductions, kCandidates, "multiply_matrices"));
    cached = std::move(plan);
    return *cached;
}

}  // namespace

void multiply_matrices(Context& ctx, Tensor d, const Factor& a, const Factor& b,
                       const Finish& finish) {
    require(d.rank == 2 && a.values.rank == 2 && b.values.rank == 2 && a.columns() == b.rows() &&
                d.dim(0) == a.rows() && d.dim(1) == b.columns(),
            "multiply_matrices: the shapes of ", a.values, " and ", b.values, " do not fit ", d);
    Handles& handles = handles_of(ctx);
    const Work work = {d, a, b, finish};
    const ProductPlan& plan = plan_for(handles, work);
    set_pointers(plan, finish);
    CUBLAS_CHECK(run(handles, plan, work, plan.algorithm));
}

}  // namespace hark::cuda
