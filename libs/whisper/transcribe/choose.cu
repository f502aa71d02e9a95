// The next token of each row: one block a row, which reads the row's logits once for the likeliest
// token and its probability, and again for each further candidate or for a draw.
#include "kernels/cuda/cuda_common.cuh"
#include "whisper/transcribe/choose.h"

namespace hark::whisper {
namespace {

constexpr int kThreads = 1024;

// The likeliest of some tokens, and the sum of all their exp(logit - best logit).
struct Part {
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
    // The lowest id of equal ones, whatever the order.
    __device__ void add(const Part& other) {
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

__device__ Part shuffled(const Part& part, int step) {
    Part other;
    other.best = __shfl_xor_sync(0xffffffff, part.best, step);
    other.id = __shfl_xor_sync(0xffffffff, part.id, step);
    other.sum = __shfl_xor_sync(0xffffffff, part.sum, step);
    return other;
}

// The parts of all threads added up in a tree; every thread gets the whole.
__device__ Part over_block(Part part, Part* scratch) {
    for (int step = 16; step > 0; step /= 2) part.add(shuffled(part, step));
    __syncthreads();
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = part;
    __syncthreads();
    Part whole = scratch[0];
    for (int warp = 1; warp < kThreads / 32; ++warp) whole.add(scratch[warp]);
    return whole;
}

struct RowRules {
    ChooseRules rules;
    RowChoice row;
    bool no_text = false;

    __device__ bool allows(int id) const {
        const uint8_t forbidden = rules.forbidden[id];
        if ((forbidden & 1) || (row.first && (forbidden & 2))) return false;
        if (id < row.text_end || id > row.stamp_last) return false;
        if (id < rules.timestamp_begin) return !no_text;
        return id >= row.stamp_end;
    }
    __device__ float logit(const float* logits, int id) const {
        return row.only >= 0 || allows(id) ? logits[id] : -INFINITY;
    }
};

// The best allowed token behind `last` in the order of falling logits and rising ids.
__device__ Part best_behind(const RowRules& allowed, const float* logits, const Candidate& last,
                            float last_logit, Part* scratch) {
    Part part;
    for (int id = threadIdx.x; id < allowed.rules.n_vocab; id += kThreads) {
        const float logit = allowed.logit(logits, id);
        if (logit < last_logit || (logit == last_logit && id > last.token)) part.add(logit, id);
    }
    return over_block(part, scratch);
}

// The token where the sum of exp((logit - best) / temperature), in the order of ids, passes u of
// the whole: each thread sums a run of ids, then the one whose run passes it walks through.
__device__ int drawn(const RowRules& allowed, const float* logits, float best, double* sums) {
    const int run = (allowed.rules.n_vocab + kThreads - 1) / kThreads;
    const int begin = min(static_cast<int>(threadIdx.x) * run, allowed.rules.n_vocab);
    const int end = min(begin + run, allowed.rules.n_vocab);
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
    for (int thread = 0; thread < kThreads; ++thread) {
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

__global__ void __launch_bounds__(kThreads)
    choose_kernel(Candidate* best, int k, const float* all, const RowChoice* rows,
                  ChooseRules rules) {
    cuda::let_next_start();
    cuda::wait_for_previous();
    __shared__ Part scratch[kThreads / 32];
    __shared__ double sums[kThreads];
    const float* logits = all + int64_t{blockIdx.x} * rules.n_vocab;
    RowRules allowed{rules, rows[blockIdx.x]};
    Candidate* out = best + int64_t{blockIdx.x} * k;

    Part text, stamps;
    for (int id = threadIdx.x; id < rules.n_vocab; id += kThreads)
        (id < rules.timestamp_begin ? text : stamps).add(allowed.logit(logits, id), id);
    text = over_block(text, scratch);
    stamps = over_block(stamps, scratch);
    allowed.no_text = rules.timestamps && allowed.row.only < 0 && stamps.best > -INFINITY &&
                      stamps.log_sum() > text.best;
    Part whole = stamps;
    if (!allowed.no_text) whole.add(text);

    Candidate last{whole.best > -INFINITY ? whole.id : -1, -INFINITY};
    float logit = whole.best;
    const float total = whole.log_sum();
    if (last.token >= 0 && allowed.row.temperature > 0) {
        const int token = drawn(allowed, logits, whole.best, sums);
        if (token >= 0) {  // else rounding kept all sums below the target: the likeliest one
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
            const Part next = best_behind(allowed, logits, last, logit, scratch);
            last.token = next.best > -INFINITY ? next.id : -1;
            logit = next.best;
            last.logprob = logit - total;
        }
        if (threadIdx.x == 0) out[i] = last;
    }
}

void choose(Context& ctx, Candidate* best, int64_t k, const float* logits, const RowChoice* rows,
            int64_t n, const ChooseRules& rules) {
    cuda::enter(ctx, {});
    if (n == 0) return;
    cuda::launch_early(ctx, choose_kernel, static_cast<unsigned>(n), kThreads, 0, best,
                       static_cast<int>(k), logits, rows, rules);
}

}  // namespace
}  // namespace hark::whisper

extern "C" __attribute__((visibility("default"))) const hark::whisper::CudaChoose*
hark_cuda_choose() {
    static const hark::whisper::CudaChoose table = {hark::whisper::choose};
    return &table;
}
