#include "kernels/checks.h"
#include "kernels/ops_table.h"
#include "kernels/runtime/parallel.h"

namespace hark {

void add_experts(Context& ctx, Tensor x, Tensor y, Tensor weights) {
    constexpr const char* kOp = "add_experts";
    require(x.rank == 2 && is_float(x.dtype) && weights.rank == 2 && y.rank == 2 &&
                y.dtype == x.dtype && y.dim(1) == x.dim(1) && y.dim(0) == x.dim(0) * weights.dim(1),
            kOp, ": expected x (T, C), y (T * k, C) of its type and weights (T, k), found ", x,
            ", ", y, " and ", weights);
    check_tensor(kOp, "weights", weights, Dtype::f32, {x.dim(0), -1});
    if (ctx.on_cuda()) return cuda_ops().add_experts(ctx, x, y, weights);
    const int64_t channels = x.dim(1), k = weights.dim(1);
    const int threads = y.size() < 16384 ? 1 : ctx.threads;
    parallel_for(threads, x.dim(0), [&](int64_t t) {
        const float* by = weights.as<float>() + t * k;
        const float* from = y.as<float>() + t * k * channels;
        float* to = x.as<float>() + t * channels;
        for (int64_t c = 0; c < channels; ++c) {
            float sum = 0;
            for (int64_t j = 0; j < k; ++j) sum += by[j] * from[j * channels + c];
            to[c] += sum;
        }
    });
}

}  // namespace hark
