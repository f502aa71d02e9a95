// Samples the next token of each row. One block per row reads the row's logits once for the
// likeliest token and its probability, and once more for each further candidate or for a draw.
#include "kernels/cuda/cuda_common.cuh"
#include "whisper/transcribe/token_sampler.h"

namespace hark::whisper {
namespace {

constexpr int kSamplerThreads = 1024;
constexpr int kAtOnce = 8;  // logits that a thread requests together

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

// Reduces the parts of all threads in a tree. Each thread gets the result.
__device__ MaxSum over_block(MaxSum part, MaxSum* scratch) {
    for (int step = 16; step > 0; step /= 2) part.add(shuffled(part, step));
    __syncthreads();
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = part;
    __syncthreads();
    MaxSum whole = scratch[0];
    for (int warp = 1; warp < kSamplerThreads / 32; ++warp) whole.add(scratch[warp]);
    return whole;
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
    // Calls f(logit, id) for the thread's ids in [begin, end), those with the same rest by
    // kSamplerThreads, in their order. The logits of kAtOnce ids are requested before the first of
    // them is used.
    template <class F>
    __device__ void for_each_logit(const float* logits, int begin, int end, F f) const {
        const int rest = (static_cast<int>(threadIdx.x) - begin) & (kSamplerThreads - 1);
        for (int first = begin + rest; first < end; first += kAtOnce * kSamplerThreads) {
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
    allowed.for_each_logit(logits, 0, allowed.constraints.n_vocab, [&](float logit, int id) {
        if (logit < last_logit || (logit == last_logit && id > last.token)) part.add(logit, id);
    });
    return over_block(part, scratch);
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

__global__ void __launch_bounds__(kSamplerThreads)
    sample_kernel(Candidate* best, int k, const float* all, const SampleRequest* requests,
                  SamplerConstraints constraints) {
    cuda::pdl_trigger();
    cuda::pdl_wait();
    __shared__ MaxSum scratch[kSamplerThreads / 32];
    __shared__ double sums[kSamplerThreads];
    const float* logits = all + int64_t{blockIdx.x} * constraints.n_vocab;
    RowConstraints allowed{constraints, requests[blockIdx.x]};
    Candidate* out = best + int64_t{blockIdx.x} * k;

    MaxSum text, stamps;
    const int texts = min(constraints.timestamp_begin, constraints.n_vocab);
    allowed.for_each_logit(logits, 0, texts, [&](float logit, int id) { text.add(logit, id); });
    allowed.for_each_logit(logits, texts, constraints.n_vocab,
                           [&](float logit, int id) { stamps.add(logit, id); });
    text = over_block(text, scratch);
    stamps = over_block(stamps, scratch);
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
    cuda::pdl_launch(ctx, sample_kernel, static_cast<unsigned>(n), kSamplerThreads, 0, best,
                     static_cast<int>(k), logits, requests, constraints);
}

}  // namespace
}  // namespace hark::whisper

extern "C" __attribute__((visibility("default"))) const hark::whisper::CudaTokenSampler*
hark_cuda_token_sampler() {
    static const hark::whisper::CudaTokenSampler table = {hark::whisper::sample};
    return &table;
}
