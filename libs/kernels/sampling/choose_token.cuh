// Chooses a row's next token by one block, from the largest logits of groups of its tokens. If
// these show that few tokens can be among the k best, the few are sorted; otherwise the searches of
// gpu_search.cuh cover all tokens.
#pragma once

#include "kernels/cuda/cuda_common.cuh"
#include "kernels/sampling/gpu_sampler.h"
#include "kernels/sampling/gpu_search.cuh"

namespace hark::sampling {

inline constexpr int kMostCandidates = 2048;
inline constexpr int kOfLane = 4, kFew = 32 * kOfLane;  // candidates that one warp handles
inline constexpr float kOne = 2147483648.0f;            // the weight of the largest logit: 2^31
// exp(-kNothing) is less than half a unit of weight.
inline constexpr float kNothing = 23;
static_assert(kSampleGroups <= kThreads);

// Part of a group of logits: the largest and sum(exp(logit - largest)) of the model's logits, and
// the largest of adjusted() logits, with its token.
struct Part {
    float largest, sum, best;
    int id;
};
static_assert(sizeof(Part) * kSampleGroups == kSampleParts);

struct Shared {
    SearchMemory search;
    Part parts[kWarps];
    uint32_t keys[kWarps];
    int groups, candidates;  // counts of the lists below
    int group[kThreads];
    float logit[kMostCandidates];
    int id[kMostCandidates];
    // For few candidates: the candidate at each place in the order of falling logits and rising
    // ids, the candidate at each place in the order of ids, and each candidate's place in the
    // latter.
    int by_logit[kFew], by_id[kFew], place_by_id[kFew];
    uint32_t weight_by_id[kFew];
};

__device__ inline uint32_t weight_of(float logit, float best) {
    return __float2uint_rn(expf(logit - best) * kOne);
}

__device__ inline Part* parts_of(const SamplerArgs& call) {
    return static_cast<Part*>(call.scratch);
}

// The adjusted logits of all tokens; not there if the temperature is 0.
__device__ inline float* logits_of(const SamplerArgs& call) {
    return reinterpret_cast<float*>(static_cast<char*>(call.scratch) + kSampleParts);
}

// A token's logit after the mask, the penalty and, if a token is drawn, the temperature.
__device__ inline float adjusted(const SamplerArgs& call, int id, float logit) {
    if (call.mask && (call.mask[id / 64] >> (id % 64) & 1) == 0) return -INFINITY;
    if (call.seen && call.seen[id]) logit = penalized(logit, call.params.penalty);
    return call.params.temperature > 0 ? apply_temperature(logit, call.params.temperature) : logit;
}

__device__ inline void add(Part& part, const Part& other) {
    const float largest = fmaxf(part.largest, other.largest);
    if (largest > -INFINITY)
        part.sum =
            part.sum * expf(part.largest - largest) + other.sum * expf(other.largest - largest);
    part.largest = largest;
    if (other.best > part.best || (other.best == part.best && other.id < part.id)) {
        part.best = other.best;
        part.id = other.id;
    }
}

// The parts of N neighbouring lanes, combined in a tree; every lane gets the result.
template <int N>
__device__ inline Part over_lanes(Part part) {
    for (int step = N / 2; step > 0; step /= 2) {
        Part other;
        other.largest = __shfl_xor_sync(kAll, part.largest, step);
        other.sum = __shfl_xor_sync(kAll, part.sum, step);
        other.best = __shfl_xor_sync(kAll, part.best, step);
        other.id = __shfl_xor_sync(kAll, part.id, step);
        add(part, other);
    }
    return part;
}

__device__ inline Part over_warp(const Part& part) { return over_lanes<32>(part); }

__device__ inline Part over_block(const Part& own, Shared& s) {
    const Part part = over_warp(own);
    if (lane() == 0) s.parts[warp()] = part;
    __syncthreads();
    return over_warp(s.parts[lane()]);
}

// Tokens by number: those that may be kept, in no order, or the whole vocabulary.
struct Candidates {
    const Shared& s;
    __device__ float logit(int i) const { return s.logit[i]; }
    __device__ int id(int i) const { return s.id[i]; }
};
struct Vocabulary {
    const float* logits;
    __device__ float logit(int i) const { return logits[i]; }
    __device__ int id(int i) const { return i; }
};

struct Drawn {
    int token, kept;
};

// Weight that top-p keeps, from the largest logit down; and the weight at which u is, in the order
// of ids.
__device__ inline uint64_t weight_to_keep(double p, uint64_t total) {
    return max(static_cast<uint64_t>(ceil(p * static_cast<double>(total))), uint64_t{1});
}
__device__ inline uint64_t weight_to_draw(double u, uint64_t total) {
    return max(min(static_cast<uint64_t>(u * static_cast<double>(total)) + 1, total), uint64_t{1});
}

// Filters as in sampler.cc, then the draw by u. The tokens must include all with a logit of at
// least `lowest`.
template <class Tokens>
__device__ Drawn drawn(const Tokens& tokens, int count, const SamplerArgs& call, float best,
                       uint32_t lowest, double u, SearchMemory& s) {
    const SamplingParams& params = call.params;
    const uint32_t top = key_of(best), last_id = key_of_id(call.n - 1);
    const auto key = [&](int i) { return key_of(tokens.logit(i)); };
    const auto id_key = [&](int i) { return key_of_id(tokens.id(i)); };
    const auto weight = [&](int i) { return weight_of(tokens.logit(i), best); };
    uint32_t low = lowest;  // lowest key that is kept
    int last = INT_MAX;     // last token with that key
    if (params.top_k > 0 && params.top_k < call.n)
        low = found(
                  Items{count, key, [](int) { return 1u; }}, Range{lowest, top},
                  [&](uint64_t) { return static_cast<uint64_t>(params.top_k); }, s)
                  .low;
    if (params.top_p < 1) {
        const Range cut = found(
            Items{count, key, weight}, Range{max(low, key_of(best - kNothing)), top},
            [&](uint64_t total) { return weight_to_keep(params.top_p, total); }, s);
        low = cut.low;
        const auto is_last = [&](int i) { return key(i) == low; };
        const int ties = number_of(count, is_last, s);
        const uint64_t one = max(weight_of(float_of(low), best), 1u);
        const uint64_t wanted = (cut.target - cut.above + one - 1) / one;
        if (wanted < static_cast<uint64_t>(ties)) {
            const Range tie = found(
                Items{count, id_key, [&](int i) { return is_last(i) ? 1u : 0u; }},
                Range{last_id, key_of_id(0)}, [&](uint64_t) { return wanted; }, s);
            last = static_cast<int>(~tie.low);
        }
    }
    const auto is_kept = [&](int i) {
        const float logit = tokens.logit(i);
        const uint32_t own = key_of(logit);
        return logit > -INFINITY && (own > low || (own == low && tokens.id(i) <= last)) &&
               (!params.has_min_p || passes_min_p(logit, best, params.log_min_p));
    };
    const int kept = number_of(count, is_kept, s);
    const Range place = found(
        Items{count, id_key, [&](int i) { return is_kept(i) ? weight(i) : 0u; }},
        Range{last_id, key_of_id(0)}, [&](uint64_t total) { return weight_to_draw(u, total); }, s);
    return {static_cast<int>(~place.low), kept};
}

// Puts up to kFew candidates in both orders: a warp counts the candidates before its own.
__device__ inline void sort_few(int count, Shared& s) {
    for (int own = warp(); own < count; own += kWarps) {
        const uint32_t key = key_of(s.logit[own]);
        const int id = s.id[own];
        int larger = 0, lower = 0;
        for (int first = 0; first < count; first += 32) {
            const int i = first + lane();
            const bool there = i < count, has_lower = there && s.id[i] < id;
            const uint32_t other = there ? key_of(s.logit[i]) : 0;
            larger +=
                __popc(__ballot_sync(kAll, there && (other > key || (other == key && has_lower))));
            lower += __popc(__ballot_sync(kAll, has_lower));
        }
        if (lane() > 0) continue;
        s.by_logit[larger] = own;
        s.by_id[lower] = own;
        s.place_by_id[own] = lower;
    }
    __syncthreads();
}

// drawn() by one warp, for candidates that sort_few() has put in order: four places per lane.
__device__ inline Drawn drawn_of_few(int count, const SamplerArgs& call, float best, double u,
                                     Shared& s) {
    const SamplingParams& params = call.params;
    const int first = lane() * kOfLane;
    const float smallest = s.logit[s.by_logit[params.top_k - 1]];
    uint64_t weights[kOfLane] = {}, own = 0;
    for (int i = 0; i < kOfLane && first + i < count; ++i) {
        const float logit = s.logit[s.by_logit[first + i]];
        weights[i] = logit >= smallest ? weight_of(logit, best) : 0;
        own += weights[i];
    }
    uint64_t to_lane = sum_to_lane(own), before = to_lane - own;
    const uint64_t enough = weight_to_keep(params.top_p, __shfl_sync(kAll, to_lane, 31));
    int kept = 0;
    for (int i = 0; i < kOfLane && first + i < count; ++i) {
        const int candidate = s.by_logit[first + i];
        const float logit = s.logit[candidate];
        const bool keeps = logit >= smallest && logit > -INFINITY &&
                           (params.top_p == 1 || before < enough) &&
                           (!params.has_min_p || passes_min_p(logit, best, params.log_min_p));
        before += weights[i];
        kept += keeps;
        s.weight_by_id[s.place_by_id[candidate]] = keeps ? static_cast<uint32_t>(weights[i]) : 0;
    }
    kept = __reduce_add_sync(kAll, kept);
    __syncwarp();
    own = 0;
    for (int i = 0; i < kOfLane; ++i) {
        weights[i] = first + i < count ? s.weight_by_id[first + i] : 0;
        own += weights[i];
    }
    to_lane = sum_to_lane(own);
    before = to_lane - own;
    const uint64_t target = weight_to_draw(u, __shfl_sync(kAll, to_lane, 31));
    int token = -1;
    for (int i = 0; i < kOfLane; ++i) {
        if (before < target && before + weights[i] >= target) token = s.id[s.by_id[first + i]];
        before += weights[i];
    }
    return {__reduce_max_sync(kAll, token), kept};
}

// Gathers a set of tokens that includes the k largest, if few groups can have one of them: the k-th
// largest of the groups' largest logits is at most the k-th largest logit. Returns the lowest key
// of the set. Thread i has the part of group i.
__device__ inline uint32_t gather_candidates(const SamplerArgs& call, const Part& part, int groups,
                                             float best, Shared& s) {
    const bool has_group = static_cast<int>(threadIdx.x) < groups;
    const uint32_t key = has_group ? key_of(part.best) : kAll;
    const uint32_t least = __reduce_min_sync(kAll, key);
    if (lane() == 0) s.keys[warp()] = least;
    if (threadIdx.x == 0) s.groups = s.candidates = 0;
    __syncthreads();
    const Range range{__reduce_min_sync(kAll, s.keys[lane()]), key_of(best)};
    const Items bests{groups, [&](int) { return key; }, [](int) { return 1u; }};
    const uint32_t low =
        narrowed(
            bests, range, [&](uint64_t) { return static_cast<uint64_t>(call.params.top_k); },
            s.search)
            .low;
    if (has_group && key >= low) s.group[atomicAdd(&s.groups, 1)] = static_cast<int>(threadIdx.x);
    __syncthreads();
    const int size = call.group_size, count = s.groups * size;
#pragma unroll 4
    for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) {
        const int id = s.group[i / size] * size + i % size;
        const float logit = id < call.n ? logits_of(call)[id] : NAN;
        if (!(logit > -INFINITY) || key_of(logit) < low) continue;
        const int at = atomicAdd(&s.candidates, 1);
        if (at >= kMostCandidates) continue;
        s.logit[at] = logit;
        s.id[at] = id;
    }
    __syncthreads();
    return low;
}

// The draw by u from the tokens that the filters keep; the result is thread 0's.
__device__ inline Drawn draw_token(const SamplerArgs& call, const Part& part, int groups,
                                   float best, Shared& s) {
    const double u = call.uniform[call.state->draw];
    const int k = call.params.top_k;
    if (k == 0 || k > groups || k >= call.n)
        return drawn(Vocabulary{logits_of(call)}, call.n, call, best, 0, u, s.search);
    const uint32_t lowest = gather_candidates(call, part, groups, best, s);
    const int count = s.candidates;
    if (count > kMostCandidates)
        return drawn(Vocabulary{logits_of(call)}, call.n, call, best, lowest, u, s.search);
    if (count < k || count > kFew)
        return drawn(Candidates{s}, count, call, best, lowest, u, s.search);
    sort_few(count, s);
    return warp() == 0 ? drawn_of_few(count, call, best, u, s) : Drawn{};
}

// One thread: sends the choice to the host and advances the state to the next step.
__device__ inline void give(const SamplerArgs& call, const Part& whole, const Drawn& chosen) {
    DecodeState state = *call.state;
    const float logprob =
        chosen.token < 0 ? NAN : call.logits[chosen.token] - whole.largest - logf(whole.sum);
    const uint64_t serial = uint64_t{state.serial} << 32;
    volatile TokenRingEntry* entry =
        call.ring + state.serial % static_cast<uint32_t>(call.ring_size);
    entry->token = serial | static_cast<uint32_t>(chosen.token);
    entry->logprob = serial | __float_as_uint(logprob);
    entry->kept = serial | static_cast<uint32_t>(chosen.kept);
    if (call.seen && chosen.token >= 0) call.seen[chosen.token] = 1;
    if (call.latest) *call.latest = chosen.token;
    state.token = chosen.token;
    ++state.position;
    ++state.length;
    ++state.draw;
    state.serial = state.serial == UINT32_MAX ? 1 : state.serial + 1;
    *call.state = state;
}

// Draws: whether the temperature may be above 0.
template <bool Draws>
__device__ void choose(const SamplerArgs& call, Shared& s) {
    const int groups = (call.n + call.group_size - 1) / call.group_size;
    Part part{-INFINITY, 0, -INFINITY, INT_MAX};
    if (static_cast<int>(threadIdx.x) < groups) part = parts_of(call)[threadIdx.x];
    const Part whole = over_block(part, s);
    const bool is_excluded = call.mask && whole.best == -INFINITY;
    Drawn chosen{whole.id < call.n && !is_excluded ? whole.id : -1, 1};
    if (Draws && call.params.temperature > 0 && chosen.token >= 0)
        chosen = draw_token(call, part, groups, whole.best, s);
    if (threadIdx.x == 0) give(call, whole, chosen);
}

}  // namespace hark::sampling
