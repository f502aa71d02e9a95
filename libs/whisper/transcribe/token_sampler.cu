// Samples the next token of each row. Several blocks per row read its logits once for the likeliest
// token and its probability. Then one block per row combines what they found, and reads the logits
// once more for each further candidate or for a draw.
#include "kernels/cuda/cuda_common.cuh"
#include "whisper/transcribe/token_sampler.h"

namespace hark::whisper {
namespace {

constexpr int kSamplerThreads = 1024;
constexpr int kAtOnce = 8;  // logits that a thread requests together
constexpr int kPartThreads = 512, kPartLogits = kPartThreads * kAtOnce;
constexpr int kMostParts = 32;  // of a row: each lane of a warp has one

// The likeliest of some tokens, and the sum of exp(logit - best logit) over all of them.
struct MaxSum {
    float best = -INFINITY;
    int id = INT_MAX;
    float sum = 0;

    __device__ void add(float logit, int token) {
        if (logit > best) {
            sum = sum * expf(best - logit) + 1;  // exp(-infinity) is 0 for the first one
            best = logit;
            id = token;
        } else if (logit > -INFINITY) {
            sum += expf(logit - best);
        }
    }
    // Of equal logits the lowest id wins, in any order of calls.
    __device__ void add(const MaxSum& other) {
        if (other.best == -INFINITY) return;
        if (other.best > best || (other.best == best && other.id < id)) {
            sum = sum * (best == -INFINITY ? 0 : expf(best - other.best)) + other.sum;
            best = other.best;
            id = other.id;
        } else {
            sum += other.sum * expf(other.best - best);
        }
    }
    __device__ float log_sum() const { return best + logf(sum); }
};

__device__ MaxSum shuffled(const MaxSum& part, int step) {
    MaxSum other;
    other.best = __shfl_xor_sync(0xffffffff, part.best, step);
    other.id = __shfl_xor_sync(0xffffffff, part.id, step);
    other.sum = __shfl_xor_sync(0xffffffff, part.sum, step);
    return other;
}

// Reduces the parts of a warp's lanes in a tree. Each lane gets the result.
__device__ MaxSum over_warp(MaxSum part) {
#pragma unroll 1
    for (int step = 16; step > 0; step /= 2) part.add(shuffled(part, step));
    return part;
}

// The same of all threads of a block.
template <int Threads>
__device__ MaxSum over_block(MaxSum part, MaxSum* scratch) {
    part = over_warp(part);
    __syncthreads();
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = part;
    __syncthreads();
    const int lane = threadIdx.x % 32;
    return over_warp(lane < Threads / 32 ? scratch[lane] : MaxSum{});
}

struct RowConstraints {
    SamplerConstraints constraints;
    SampleRequest row;
    bool no_text = false;

    __device__ bool allows(int id, uint8_t masked) const {
        if ((masked & 1) || (row.first && (masked & 2))) return false;
        if (id < row.text_end || id > row.timestamp_last) return false;
        if (id < constraints.timestamp_begin) return !no_text;
        return id >= row.timestamp_end;
    }
    __device__ float logit(const float* logits, int id) const {
        return row.only >= 0 || allows(id, constraints.masked[id]) ? logits[id] : -INFINITY;
    }
    // Calls f(logit, id) for each kSamplerThreads-th id from the thread's on, in their order. The
    // logits of kAtOnce ids are requested before the first of them is used.
    template <class F>
    __device__ void for_each_logit(const float* logits, F f) const {
        const int end = constraints.n_vocab;
        for (int first = threadIdx.x; first < end; first += kAtOnce * kSamplerThreads) {
            float loaded[kAtOnce];
            uint8_t masked[kAtOnce];
#pragma unroll
            for (int i = 0; i < kAtOnce; ++i) {
                const int id = min(first + i * kSamplerThreads, end - 1);
                loaded[i] = logits[id];
                masked[i] = constraints.masked[id];
            }
#pragma unroll
            for (int i = 0; i < kAtOnce; ++i) {
                const int id = first + i * kSamplerThreads;
                if (id >= end) return;
                f(row.only >= 0 || allows(id, masked[i]) ? loaded[i] : -INFINITY, id);
            }
        }
    }
};

// The next allowed token after `last`, ordered by falling logits, then rising ids.
__device__ MaxSum best_after(const RowConstraints& allowed, const float* logits,
                             const Candidate& last, float last_logit, MaxSum* scratch) {
    MaxSum part;
    allowed.for_each_logit(logits, [&](float logit, int id) {
        if (logit < last_logit || (logit == last_logit && id > last.token)) part.add(logit, id);
    });
    return over_block<kSamplerThreads>(part, scratch);
}

// The first token at which the running sum of exp((logit - best) / temperature), in the order of
// ids, exceeds u * total. Each thread sums a run of ids; the thread whose run crosses the target
// searches it.
__device__ int drawn(const RowConstraints& allowed, const float* logits, float best, double* sums) {
    const int run = (allowed.constraints.n_vocab + kSamplerThreads - 1) / kSamplerThreads;
    const int begin = min(static_cast<int>(threadIdx.x) * run, allowed.constraints.n_vocab);
    const int end = min(begin + run, allowed.constraints.n_vocab);
    const auto weight = [&](int id) {
        return expf((allowed.logit(logits, id) - best) / allowed.row.temperature);
    };
    double own = 0;
    for (int id = begin; id < end; ++id) own += weight(id);
    __shared__ int chosen;
    __syncthreads();
    sums[threadIdx.x] = own;
    if (threadIdx.x == 0) chosen = -1;
    __syncthreads();
    double before = 0, total = 0;
    for (int thread = 0; thread < kSamplerThreads; ++thread) {
        if (thread == static_cast<int>(threadIdx.x)) before = total;
        total += sums[thread];
    }
    const double target = allowed.row.u * total;
    if (before <= target && before + own > target) {
        double reached = before;
        int last = -1;
        for (int id = begin; id < end && reached <= target; ++id) {
            const float w = weight(id);
            if (w == 0) continue;
            reached += w;
            last = id;
        }
        chosen = last;
    }
    __syncthreads();
    return chosen;
}

// The likeliest text token and timestamp of a part of a row.
struct PartSums {
    MaxSum text, stamps;
};

// Block (part, row): kPartLogits logits of a row.
__global__ void __launch_bounds__(kPartThreads)
    part_kernel(PartSums* parts, const float* all, const SampleRequest* requests,
                SamplerConstraints constraints) {
    cuda::pdl_trigger();
    __shared__ MaxSum scratch[kPartThreads / 32];
    const RowConstraints allowed{constraints, requests[blockIdx.y]};
    const float* logits = all + int64_t{blockIdx.y} * constraints.n_vocab;
    const int first = static_cast<int>(blockIdx.x) * kPartLogits + static_cast<int>(threadIdx.x);
    bool counts[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
        const int id = first + i * kPartThreads;
        counts[i] = id < constraints.n_vocab &&
                    (allowed.row.only >= 0 || allowed.allows(id, constraints.masked[id]));
    }
    cuda::pdl_wait();
    float own[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
        own[i] = counts[i] ? logits[first + i * kPartThreads] : -INFINITY;
    MaxSum text, stamps;
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
        const int id = first + i * kPartThreads;
        (id < constraints.timestamp_begin ? text : stamps).add(own[i], id);
    }
    text = over_block<kPartThreads>(text, scratch);
    stamps = over_block<kPartThreads>(stamps, scratch);
    if (threadIdx.x == 0) parts[int64_t{blockIdx.y} * gridDim.x + blockIdx.x] = {text, stamps};
}

__global__ void __launch_bounds__(kSamplerThreads)
    sample_kernel(Candidate* best, int k, const float* all, const PartSums* parts, int n_parts,
                  const SampleRequest* requests, SamplerConstraints constraints) {
    cuda::pdl_trigger();
    __shared__ MaxSum scratch[kSamplerThreads / 32];
    __shared__ double sums[kSamplerThreads];
    const float* logits = all + int64_t{blockIdx.x} * constraints.n_vocab;
    RowConstraints allowed{constraints, requests[blockIdx.x]};
    Candidate* out = best + int64_t{blockIdx.x} * k;
    cuda::pdl_wait();
    const int part = threadIdx.x % 32;
    PartSums own;
    if (part < n_parts) own = parts[int64_t{blockIdx.x} * n_parts + part];
    const MaxSum text = over_warp(own.text), stamps = over_warp(own.stamps);
    allowed.no_text = constraints.timestamps && allowed.row.only < 0 && stamps.best > -INFINITY &&
                      stamps.log_sum() > text.best;
    MaxSum whole = stamps;
    if (!allowed.no_text) whole.add(text);

    Candidate last{whole.best > -INFINITY ? whole.id : -1, -INFINITY};
    float logit = whole.best;
    const float total = whole.log_sum();
    if (last.token >= 0 && allowed.row.temperature > 0) {
        const int token = drawn(allowed, logits, whole.best, sums);
        if (token >= 0) {  // -1: rounding kept all sums below the target; take the likeliest
            last.token = token;
            logit = logits[token];
        }
    }
    if (allowed.row.only >= 0) {
        last.token = allowed.row.only;
        logit = logits[last.token];
    }
    last.logprob = logit - total;
    if (threadIdx.x == 0) out[0] = last;
    if (allowed.row.only >= 0) last.token = -1;
    for (int i = 1; i < k; ++i) {
        if (last.token >= 0) {
            const MaxSum next = best_after(allowed, logits, last, logit, scratch);
            last.token = next.best > -INFINITY ? next.id : -1;
            logit = next.best;
            last.logprob = logit - total;
        }
        if (threadIdx.x == 0) out[i] = last;
    }
}

void sample(Context& ctx, Candidate* best, int64_t k, const float* logits,
            const SampleRequest* requests, int64_t n, const SamplerConstraints& constraints) {
    cuda::enter(ctx, {});
    if (n == 0) return;
    const int64_t parts = cuda::ceil_div(constraints.n_vocab, kPartLogits);
    require(parts <= kMostParts, "the GPU samples among ", kMostParts * kPartLogits,
            " tokens at most, found ", constraints.n_vocab);
    const Arena::Scope scope(ctx.arena);
    auto* of_parts = reinterpret_cast<PartSums*>(
        ctx.arena.tensor(Dtype::u8, {n * parts * static_cast<int64_t>(sizeof(PartSums))})
            .as<uint8_t>());
    const dim3 blocks(static_cast<unsigned>(parts), static_cast<unsigned>(n));
    cuda::pdl_launch(ctx, part_kernel, blocks, kPartThreads, 0, of_parts, logits, requests,
                     constraints);
    cuda::pdl_launch(ctx, sample_kernel, static_cast<unsigned>(n), kSamplerThreads, 0, best,
                     static_cast<int>(k), logits, of_parts, static_cast<int>(parts), requests,
                     constraints);
}

}  // namespace
}  // namespace hark::whisper

extern "C" __attribute__((visibility("default"))) const hark::whisper::CudaTokenSampler*
hark_cuda_token_sampler() {
    static const hark::whisper::CudaTokenSampler table = {hark::whisper::sample};
    return &table;
}
