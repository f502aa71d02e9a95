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

// The likeliest of some tokens, of equal ones the lowest id, and the sum of exp(logit - best logit)
// over all of them.
struct MaxSum {
    float best = -INFINITY;
    int id = INT_MAX;
    float sum = 0;

    __device__ float log_sum() const { return best + logf(sum); }
};

// Integers in the order of floats, and back.
__device__ uint32_t ordered(float x) {
    const uint32_t bits = __float_as_uint(x);
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}
__device__ float from_ordered(uint32_t x) {
    return __uint_as_float(x >> 31 ? x & 0x7fffffffu : ~x);
}

// Its sum relative to a logit that is at least as large. The difference of two infinite ones is
// no number.
__device__ float scaled_sum(const MaxSum& part, float best) {
    return part.best == best ? part.sum : part.sum * expf(part.best - best);
}

// Two sets of tokens together.
__device__ MaxSum both(const MaxSum& a, const MaxSum& b) {
    const bool first = a.best > b.best || (a.best == b.best && a.id < b.id);
    const float best = fmaxf(a.best, b.best);
    return {best, first ? a.id : b.id, scaled_sum(a, best) + scaled_sum(b, best)};
}

// The parts of a warp's lanes together. Each lane gets the result.
__device__ MaxSum over_warp(const MaxSum& part) {
    // -0 becomes 0.
    const uint32_t own = ordered(part.best + 0.0f), largest = __reduce_max_sync(0xffffffff, own);
    MaxSum whole;
    whole.best = from_ordered(largest);
    whole.id = __reduce_min_sync(0xffffffff, own == largest ? part.id : INT_MAX);
    whole.sum = cuda::warp_sum(scaled_sum(part, whole.best));
    return whole;
}

// The same of all threads of a block.
template <int Threads>
__device__ MaxSum over_block(const MaxSum& part, MaxSum* scratch) {
    const MaxSum of_warp = over_warp(part);
    __syncthreads();
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = of_warp;
    __syncthreads();
    const int lane = threadIdx.x % 32;
    return over_warp(lane < Threads / 32 ? scratch[lane] : MaxSum{});
}

// A thread's N logits, of tokens first, first + stride, ... Masked ones are -infinity.
template <int N>
__device__ MaxSum of_logits(const float (&logits)[N], int first, int stride) {
    MaxSum part;
#pragma unroll
    for (int i = N - 1; i >= 0; --i) {
        if (logits[i] < part.best || logits[i] == -INFINITY) continue;
        part.best = logits[i];
        part.id = first + i * stride;
    }
    if (part.best == -INFINITY) return part;
#pragma unroll
    for (const float logit : logits)
        part.sum += logit == part.best ? 1.0f : expf(logit - part.best);
    return part;
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
        const bool after = logit < last_logit || (logit == last_logit && id > last.token);
        if (after && logit > part.best) part.best = logit, part.id = id;
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
    const auto of_ids = [&](bool text) {
        float wanted[kAtOnce];
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
            const bool is_text = first + i * kPartThreads < constraints.timestamp_begin;
            // NaN compares as false.
            wanted[i] = is_text == text && own[i] > -INFINITY ? own[i] : -INFINITY;
        }
        return over_block<kPartThreads>(of_logits(wanted, first, kPartThreads), scratch);
    };
    const int begin = static_cast<int>(blockIdx.x) * kPartLogits;
    PartSums sums;
    if (begin < constraints.timestamp_begin) sums.text = of_ids(true);
    if (begin + kPartLogits > constraints.timestamp_begin) sums.stamps = of_ids(false);
    if (threadIdx.x == 0) parts[int64_t{blockIdx.y} * gridDim.x + blockIdx.x] = sums;
}

// As one word, which the host may wait for.
__device__ void store(Candidate* to, const Candidate& from) {
    *reinterpret_cast<int2*>(to) = make_int2(from.token, __float_as_int(from.logprob));
}

// Makes a step's inputs those of the next one. Without a token, of any text.
__device__ void advance(const NextStep& next, const SamplerConstraints& constraints,
                        const SampleRequest& request, int token) {
    token = max(token, 0);
    *next.request = next_request(constraints, request, *next.token, token);
    *next.token = token;
    *next.position += 1;
    *next.length += 1;
    *next.turn ^= 1;
}

__global__ void __launch_bounds__(kSamplerThreads)
    sample_kernel(Candidate* best, int k, const float* all, const PartSums* parts, int n_parts,
                  const SampleRequest* requests, SamplerConstraints constraints, NextStep next) {
    cuda::pdl_trigger();
    __shared__ MaxSum scratch[kSamplerThreads / 32];
    __shared__ double sums[kSamplerThreads];
    const float* logits = all + int64_t{blockIdx.x} * constraints.n_vocab;
    RowConstraints allowed{constraints, requests[blockIdx.x]};
    const int row = next.turn ? *next.turn : static_cast<int>(blockIdx.x);
    Candidate* out = best + int64_t{row} * k;
    cuda::pdl_wait();
    const int part = threadIdx.x % 32;
    PartSums own;
    if (part < n_parts) own = parts[int64_t{blockIdx.x} * n_parts + part];
    const MaxSum text = over_warp(own.text), stamps = over_warp(own.stamps);
    allowed.no_text = constraints.timestamps && allowed.row.only < 0 && stamps.best > -INFINITY &&
                      stamps.log_sum() > text.best;
    const MaxSum whole = allowed.no_text ? stamps : both(stamps, text);

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
    if (next.turn) __syncthreads();  // all threads have read their request
    if (threadIdx.x == 0) {
        store(out, last);
        if (next.turn) advance(next, constraints, allowed.row, last.token);
    }
    if (allowed.row.only >= 0) last.token = -1;
    for (int i = 1; i < k; ++i) {
        if (last.token >= 0) {
            const MaxSum found = best_after(allowed, logits, last, logit, scratch);
            last.token = found.best > -INFINITY ? found.id : -1;
            logit = found.best;
            last.logprob = logit - total;
        }
        if (threadIdx.x == 0) store(out + i, last);
    }
}

void sample(Context& ctx, Candidate* best, int64_t k, const float* logits,
            const SampleRequest* requests, int64_t n, const SamplerConstraints& constraints,
            const NextStep& next) {
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
                     constraints, next);
}

}  // namespace
}  // namespace hark::whisper

extern "C" __attribute__((visibility("default"))) const hark::whisper::CudaTokenSampler*
hark_cuda_token_sampler() {
    static const hark::whisper::CudaTokenSampler table = {hark::whisper::sample};
    return &table;
}
