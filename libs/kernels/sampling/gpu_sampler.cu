// The next token of each row: some lanes per group of logits find their largest, then one block
// finds the tokens that the filters keep and draws one.
#include "kernels/cuda/cuda_common.cuh"
#include "kernels/sampling/choose_token.cuh"
#include "kernels/sampling/gpu_sampler.h"

namespace hark {
namespace {

using namespace sampling;

constexpr int kPartThreads = 256;
// Lanes that find the part of a group: of one row, which leaves most of a GPU idle, and of many.
constexpr int kRowLanes = 16, kRowsLanes = 8;

__device__ SamplerArgs call_of(const SampleRows& all, int row) {
    SampleRow& own = all.rows[row];
    SamplerArgs call;
    call.logits = all.logits + row * all.stride;
    call.uniform = &own.u;
    call.state = &own.state;
    call.ring = all.ring + own.entry;
    call.ring_size = 1;
    call.scratch = static_cast<char*>(all.scratch) + row * all.scratch_bytes;
    call.n = all.n;
    call.group_size = all.group_size;
    call.params = own.params;
    call.latest = all.latest + own.slot;
    if (own.params.penalty != 1) call.seen = all.seen + int64_t{own.slot} * all.n;
    if (own.mask >= 0) call.mask = all.masks + own.mask * all.mask_size;
    return call;
}

// Four neighbouring logits from `first` on; -infinity from `end` on.
__device__ inline float4 four_logits(const float* logits, int first, int end) {
    if (first + 4 <= end && reinterpret_cast<uintptr_t>(logits + first) % 16 == 0)
        return *reinterpret_cast<const float4*>(logits + first);
    const auto at = [&](int i) { return i < end ? logits[i] : -INFINITY; };
    return {at(first), at(first + 1), at(first + 2), at(first + 3)};
}

// Whether the choice is not of the largest logit as the model gave it.
__host__ __device__ bool changes_logits(const SamplerArgs& call) {
    return call.mask || call.seen || call.params.temperature > 0;
}

// Some lanes: their group's part, and the adjusted logits if a token is drawn from them. MayChange:
// whether changes_logits() may be true.
template <int Lanes, bool MayChange>
__device__ void find_part(const SamplerArgs& call) {
    constexpr int kAtATime = 4 * Lanes, kLoads = 3;  // in flight at once
    const int group = static_cast<int>(blockIdx.x * kPartThreads + threadIdx.x) / Lanes;
    const int begin = group * call.group_size, end = min(begin + call.group_size, call.n);
    const bool changes = MayChange && changes_logits(call);
    Part part{-INFINITY, 0, -INFINITY, INT_MAX};
    for (int from = begin + threadIdx.x % Lanes * 4; from < end; from += kLoads * kAtATime) {
        float4 logits[kLoads];
        float largest = part.largest;
#pragma unroll
        for (int i = 0; i < kLoads; ++i) {
            logits[i] = four_logits(call.logits, from + i * kAtATime, end);
            largest = fmaxf(fmaxf(fmaxf(logits[i].x, logits[i].y), fmaxf(logits[i].z, logits[i].w)),
                            largest);
        }
        if (largest > part.largest) part.sum *= expf(part.largest - largest);
        part.largest = largest;
#pragma unroll
        for (int i = 0; i < kLoads; ++i) {
            const float four[4] = {logits[i].x, logits[i].y, logits[i].z, logits[i].w};
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const int id = from + i * kAtATime + j;
                if (id >= end) break;
                if (four[j] > -INFINITY) part.sum += expf(four[j] - largest);
                const float changed = changes ? adjusted(call, id, four[j]) : four[j];
                if (MayChange && call.params.temperature > 0) logits_of(call)[id] = changed;
                if (changed > part.best || (changed == part.best && id < part.id))
                    part.best = changed, part.id = id;
            }
        }
    }
    part = over_lanes<Lanes>(part);
    if (threadIdx.x % Lanes == 0 && begin < end) parts_of(call)[group] = part;
}

template <bool MayChange>
__global__ void __launch_bounds__(kPartThreads) parts_kernel(SamplerArgs call) {
    cuda::pdl_trigger();
    cuda::pdl_wait();
    find_part<kRowLanes, MayChange>(call);
}

// Block (groups, row).
__global__ void __launch_bounds__(kPartThreads) row_parts_kernel(SampleRows all) {
    cuda::pdl_trigger();
    cuda::pdl_wait();
    if (all.rows[blockIdx.y].slot >= 0) find_part<kRowsLanes, true>(call_of(all, blockIdx.y));
}

// Draws: at a temperature above 0. The other kernel lacks the code of the searches.
template <bool Draws>
__global__ void __launch_bounds__(kThreads) sample_kernel(SamplerArgs call) {
    cuda::pdl_trigger();
    cuda::pdl_wait();
    __shared__ Shared s;
    choose<Draws>(call, s);
}

// Block (row).
__global__ void __launch_bounds__(kThreads) sample_rows_kernel(SampleRows all) {
    cuda::pdl_trigger();
    cuda::pdl_wait();
    __shared__ Shared s;
    if (all.rows[blockIdx.x].slot >= 0) choose<true>(call_of(all, blockIdx.x), s);
}

__global__ void take_kernel(int32_t* tokens, const int32_t* from, const int32_t* latest,
                            int64_t n) {
    cuda::pdl_trigger();
    cuda::pdl_wait();
    const int64_t i = int64_t{blockIdx.x} * kPartThreads + threadIdx.x;
    if (i < n) tokens[i] = from[i] >= 0 ? from[i] : latest[-1 - from[i]];
}

void check_count(int64_t n) {
    require(n > 0 && n <= kMostGpuTokens, "expected 1 to ", kMostGpuTokens,
            " logits on the GPU, found ", n);
}

// Blocks of parts for the groups of a row, of which each has `lanes` lanes.
unsigned part_blocks(int64_t n, int lanes) {
    const int64_t groups = cuda::ceil_div(n, sample_group(n));
    return static_cast<unsigned>(cuda::ceil_div(groups, kPartThreads / lanes));
}

void sample(Context& ctx, SamplerArgs call) {
    cuda::enter(ctx, {});
    check_count(call.n);
    call.group_size = static_cast<int32_t>(sample_group(call.n));
    cuda::pdl_launch(ctx, changes_logits(call) ? parts_kernel<true> : parts_kernel<false>,
                     part_blocks(call.n, kRowLanes), kPartThreads, 0, call);
    cuda::pdl_launch(ctx, call.params.temperature > 0 ? sample_kernel<true> : sample_kernel<false>,
                     1, kThreads, 0, call);
}

void sample_rows(Context& ctx, SampleRows rows, int64_t count) {
    cuda::enter(ctx, {});
    check_count(rows.n);
    if (count == 0) return;
    rows.group_size = static_cast<int32_t>(sample_group(rows.n));
    rows.scratch_bytes = sample_scratch(rows.n);
    rows.mask_size = mask_words(rows.n);
    const auto blocks = static_cast<unsigned>(count);
    cuda::pdl_launch(ctx, row_parts_kernel, dim3(part_blocks(rows.n, kRowsLanes), blocks),
                     kPartThreads, 0, rows);
    cuda::pdl_launch(ctx, sample_rows_kernel, blocks, kThreads, 0, rows);
}

void take_tokens(Context& ctx, int32_t* tokens, const int32_t* from, const int32_t* latest,
                 int64_t n) {
    cuda::enter(ctx, {});
    if (n == 0) return;
    const auto blocks = static_cast<unsigned>(cuda::ceil_div(n, kPartThreads));
    cuda::pdl_launch(ctx, take_kernel, blocks, kPartThreads, 0, tokens, from, latest, n);
}

}  // namespace
}  // namespace hark

extern "C" __attribute__((visibility("default"))) const hark::CudaSampler* hark_cuda_sampler() {
    static const hark::CudaSampler table = {hark::sample, hark::sample_rows, hark::take_tokens};
    return &table;
}
