// route_experts on the GPU: one warp per row.
#include "kernels/cuda/cuda_common.cuh"

namespace hark::cuda {
namespace {

constexpr int kRouteWarps = 4;  // per block
constexpr int kMostExperts = 1024;

struct Routes {
    int64_t rows;
    int experts, k, groups, kept_groups;
    bool normalized, sigmoid;
    float scale;
    const float* bias;  // or null
};

// Bits in the order of the scores, never 0. NaN is the least.
__device__ uint32_t order_of(float score) {
    const uint32_t bits = __float_as_uint(isnan(score) ? -INFINITY : score + 0.0f);  // -0 is 0
    return bits >> 31 ? ~bits : bits | 0x80000000;
}

// The place of the warp's largest of n scores that `is_left` has; of equal ones the lowest place.
// Each lane looks at every 32nd.
template <class IsLeft>
__device__ int largest(const float* scores, int n, const IsLeft& is_left) {
    uint32_t best = 0;
    int place = INT_MAX;
    for (int e = threadIdx.x % 32; e < n; e += 32) {
        const uint32_t score = order_of(scores[e]);
        if (is_left(e) && score > best) best = score, place = e;
    }
    const uint32_t top = __reduce_max_sync(0xffffffff, best);
    return __reduce_min_sync(0xffffffff, best == top ? place : INT_MAX);
}

// Places that a warp has taken: lane l has those of every 32nd, as bits.
struct Taken {
    uint32_t bits = 0;

    __device__ void add(int place) {
        if (place % 32 == static_cast<int>(threadIdx.x % 32)) bits |= 1u << place / 32;
    }
    __device__ bool has(int place) const { return bits >> place / 32 & 1; }  // of the lane's own
};

__device__ float sigmoid_of(float x) { return 1 / (1 + expf(-x)); }

// Scores of experts in groups that are not kept become `left_out`. A group's score is its largest
// one, with sigmoid the sum of its two largest.
__device__ void keep_groups(const Routes& args, float* scores, float* of_group, float left_out) {
    const int size = args.experts / args.groups, lane = threadIdx.x % 32;
    for (int g = 0; g < args.groups; ++g) {
        const float* group = scores + g * size;
        const int first = largest(group, size, [](int) { return true; });
        float score = group[first];
        if (args.sigmoid) score += group[largest(group, size, [&](int e) { return e != first; })];
        if (lane == 0) of_group[g] = score;
    }
    __syncwarp();
    Taken kept;
    for (int i = 0; i < args.kept_groups; ++i)
        kept.add(largest(of_group, args.groups, [&](int g) { return !kept.has(g); }));
    for (int g = 0; g < args.groups; ++g) {
        if (__shfl_sync(0xffffffff, kept.bits, g % 32) >> g / 32 & 1) continue;
        for (int e = lane; e < size; e += 32) scores[g * size + e] = left_out;
    }
    __syncwarp();
}

__global__ void __launch_bounds__(32 * kRouteWarps)
    route_kernel(Routes args, int* chosen, float* weights, const float* logits) {
    __shared__ float all_scores[kRouteWarps][kMostExperts], all_groups[kRouteWarps][kMostExperts];
    pdl_trigger();
    pdl_wait();
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int64_t t = int64_t{blockIdx.x} * kRouteWarps + warp;
    if (t >= args.rows) return;
    logits += t * args.experts;
    chosen += t * args.k;
    weights += t * args.k;
    float* scores = all_scores[warp];
    for (int e = lane; e < args.experts; e += 32)
        scores[e] =
            args.sigmoid ? sigmoid_of(logits[e]) + (args.bias ? args.bias[e] : 0) : logits[e];
    __syncwarp();
    // Softmax keeps the order of the logits, and the best group has the largest one.
    if (args.groups > 1)
        keep_groups(args, scores, all_groups[warp], args.sigmoid ? 0.0f : -INFINITY);
    float* own_weights = all_groups[warp];  // no longer read
    Taken taken;
    float top = 0, total = args.sigmoid ? 1e-20f : 0.0f;
    for (int j = 0; j < args.k; ++j) {
        const int expert = largest(scores, args.experts, [&](int e) { return !taken.has(e); });
        taken.add(expert);
        if (j == 0) top = logits[expert];
        const float weight = args.sigmoid ? sigmoid_of(logits[expert]) : expf(logits[expert] - top);
        total += weight;
        if (lane == 0) chosen[j] = expert, own_weights[j] = weight;
    }
    __syncwarp();
    if (!args.normalized && args.sigmoid) total = 1;
    if (!args.normalized && !args.sigmoid) {
        total = 0;
        for (int e = lane; e < args.experts; e += 32) total += expf(logits[e] - top);
        total = warp_sum(total);
    }
    for (int j = lane; j < args.k; j += 32) weights[j] = own_weights[j] / total * args.scale;
}

// The same with softmax and without groups, up to 32 N experts of which up to 32 are chosen: lane l
// keeps every 32nd logit in registers, and what it becomes of the l-th choice.
template <int N>
__global__ void __launch_bounds__(32 * kRouteWarps)
    route_softmax_kernel(Routes args, int* chosen, float* weights, const float* logits) {
    pdl_trigger();
    pdl_wait();
    const int lane = threadIdx.x % 32;
    const int64_t t = int64_t{blockIdx.x} * kRouteWarps + threadIdx.x / 32;
    if (t >= args.rows) return;
    logits += t * args.experts;
    float own[N];
    uint32_t orders[N];  // 0: taken
#pragma unroll
    for (int i = 0; i < N; ++i) {
        const bool there = 32 * i + lane < args.experts;
        own[i] = there ? logits[32 * i + lane] : 0.0f;
        orders[i] = there ? order_of(own[i]) : 0;
    }
    float top = 0, total = 0, weight = 0;
    int choice = 0;
#pragma unroll 1
    for (int j = 0; j < args.k; ++j) {
        uint32_t best = 0;
        int place = INT_MAX;
#pragma unroll
        for (int i = 0; i < N; ++i)
            if (orders[i] > best) best = orders[i], place = 32 * i + lane;
        const uint32_t largest = __reduce_max_sync(0xffffffff, best);
        const int expert = __reduce_min_sync(0xffffffff, best == largest ? place : INT_MAX);
        float logit = 0;
#pragma unroll
        for (int i = 0; i < N; ++i) {
            if (expert / 32 == i) logit = own[i];
            if (expert == 32 * i + lane) orders[i] = 0;
        }
        logit = __shfl_sync(0xffffffff, logit, expert % 32);
        if (j == 0) top = logit;
        const float of_expert = expf(logit - top);
        total += of_expert;
        if (j == lane) choice = expert, weight = of_expert;
    }
    if (!args.normalized) {
        total = 0;
#pragma unroll
        for (int i = 0; i < N; ++i)
            if (32 * i + lane < args.experts) total += expf(own[i] - top);
        total = warp_sum(total);
    }
    if (lane >= args.k) return;
    chosen[t * args.k + lane] = choice;
    weights[t * args.k + lane] = weight / total * args.scale;
}

}  // namespace

void route_experts(Context& ctx, Tensor chosen, Tensor weights, Tensor logits, const Routing& by) {
    enter(ctx, {&chosen, &weights, &logits, &by.bias});
    const Routes args{logits.dim(0),
                      static_cast<int>(logits.dim(1)),
                      static_cast<int>(chosen.dim(1)),
                      static_cast<int>(by.groups),
                      static_cast<int>(by.kept_groups),
                      by.normalized,
                      by.sigmoid,
                      by.scale,
                      by.bias ? by.bias.as<float>() : nullptr};
    if (args.rows == 0) return;
    const bool is_plain = !args.sigmoid && args.groups <= 1 && args.k <= 32;
    const auto kernel = is_plain && args.experts <= 32    ? route_softmax_kernel<1>
                        : is_plain && args.experts <= 128 ? route_softmax_kernel<4>
                                                          : route_kernel;
    pdl_launch(ctx, kernel, static_cast<unsigned>(ceil_div(args.rows, kRouteWarps)),
               32 * kRouteWarps, 0, args, chosen.as<int32_t>(), weights.as<float>(),
               static_cast<const float*>(logits.as<float>()));
}

}  // namespace hark::cuda
