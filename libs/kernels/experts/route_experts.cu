// route_experts on the GPU: one warp per row.
#include "kernels/cuda/cuda_common.cuh"

namespace hark::cuda {
namespace {

constexpr int kRouteWarps = 4;  // per block

struct Routes {
    int64_t rows;
    int experts, k;
    bool normalized;
};

// The expert with the largest logit among the warp's; NaN is the least, of equal ones the lowest.
__device__ int largest(float value, int expert) {
    for (int step = 16; step > 0; step /= 2) {
        const float other = __shfl_xor_sync(0xffffffff, value, step);
        const int other_expert = __shfl_xor_sync(0xffffffff, expert, step);
        if (other > value || (other == value && other_expert < expert))
            value = other, expert = other_expert;
    }
    return expert;
}

__global__ void __launch_bounds__(32 * kRouteWarps)
    route_kernel(Routes args, int* chosen, float* weights, const float* logits) {
    let_next_start();
    wait_for_previous();
    const int lane = threadIdx.x % 32;
    const int64_t t = int64_t{blockIdx.x} * kRouteWarps + threadIdx.x / 32;
    if (t >= args.rows) return;
    logits += t * args.experts;
    chosen += t * args.k;
    weights += t * args.k;
    uint32_t taken = 0;  // bit i: expert lane + 32 * i
    float top = 0, total = 0;
    for (int j = 0; j < args.k; ++j) {
        float best = -INFINITY;
        int expert = INT_MAX;
        for (int i = 0, e = lane; e < args.experts; ++i, e += 32) {
            const float value = isnan(logits[e]) ? -INFINITY : logits[e];
            if (taken >> i & 1 || value < best || (value == best && expert != INT_MAX)) continue;
            best = value, expert = e;
        }
        expert = largest(best, expert);
        if (expert % 32 == lane) taken |= 1u << expert / 32;
        if (j == 0) top = logits[expert];
        const float weight = expf(logits[expert] - top);
        total += weight;
        if (lane == 0) chosen[j] = expert, weights[j] = weight;
    }
    if (!args.normalized) {
        total = 0;
        for (int e = lane; e < args.experts; e += 32) total += expf(logits[e] - top);
        total = warp_sum(total);
    }
    if (lane == 0)
        for (int j = 0; j < args.k; ++j) weights[j] /= total;
}

}  // namespace

void route_experts(Context& ctx, Tensor chosen, Tensor weights, Tensor logits, const Routing& by) {
    require(!by.sigmoid && by.groups == 1 && by.scale == 1,
            "route_experts: sigmoid, groups of experts and a scale are not computed on a GPU");
    enter(ctx, {&chosen, &weights, &logits});
    const Routes args{logits.dim(0), static_cast<int>(logits.dim(1)),
                      static_cast<int>(chosen.dim(1)), by.normalized};
    if (args.rows == 0) return;
    launch_early(ctx, route_kernel, static_cast<unsigned>(ceil_div(args.rows, kRouteWarps)),
                 32 * kRouteWarps, 0, args, chosen.as<int32_t>(), weights.as<float>(),
                 static_cast<const float*>(logits.as<float>()));
}

}  // namespace hark::cuda
