// Passes on a GPU that samples its tokens itself. A pass of single rows is a CUDA graph; its tokens
// stay where the next pass reads them, so that no pass waits for the host. Where answers are
// constrained the host makes the masks while the GPU computes the logits: from the tokens of the
// pass before.
#include <algorithm>
#include <deque>
#include <numeric>

#include "core/error.h"
#include "core/random.h"
#include "gpt/decoder/model.h"
#include "gpt/engine/gpu_decode_stream.h"
#include "gpt/engine/gpu_pass.h"
#include "gpt/engine/model_runner.h"
#include "kernels/runtime/cuda_library.h"
#include "kernels/runtime/gpu_span.h"
#include "kernels/runtime/transfer.h"
#include "kernels/sampling/gpu_sampler.h"
#include "nn/graph_runner.h"

namespace hark::gpt {
namespace {

constexpr int64_t kMostPasses = 2;
constexpr int64_t kRings = kMostPasses + 1;  // of results and of inputs on the host

// A GPU counts the tokens of a history, and the host makes masks, when it has tokens that are not
// drafts.
bool is_on_host(const BatchSequence& sequence) {
    return sequence.on_host || (!sequence.drafts.empty() &&
                                (sampling_params_of(sequence.request.sampler).penalty != 1 ||
                                 sequence.is_constrained()));
}

bool has_mask(const BatchSequence& sequence) {
    return sequence.is_constrained() && !is_on_host(sequence);
}

class GpuRunner : public ModelRunner {
  public:
    GpuRunner(Context& ctx, const Model& model, KvCache& cache, int64_t vocabulary,
              const RunnerLimits& limits);
    ~GpuRunner() override { wait_for(ctx_); }

    void launch(std::span<const PassPiece> pass) override;
    std::vector<PassResult> take_results() override;
    void drop_passes() override;
    int64_t most_passes() const override { return kMostPasses; }

  private:
    // A result that is awaited: its `samples` in the ring from `first` on, after drafts.
    struct Awaited {
        PassResult result;
        int64_t first = 0, samples = 0;
        std::vector<int32_t> drafts;
        bool on_host = false;  // it has its tokens
        bool masked = false;
    };
    struct Launched {
        uint32_t serial = 0;
        std::vector<Awaited> results;
        SampleRows rows;      // to be sampled with masks:
        int64_t samples = 0;  // their number; 0 once they are sampled
    };
    PassInputs::Sizes sizes_of(std::span<const PassPiece> pass, int64_t most_keys) const;
    void fill(PassInputs& to, std::span<const PassPiece> pass, const Launched& launched);
    SampleRow sample_row(const PassPiece& piece, int64_t place, uint32_t serial, int64_t sample);
    void pad(PassInputs& to, int64_t sequences) const;
    void set_history(const BatchSequence& sequence);
    SampleRows run(Context& ctx, const PassInputs& inputs, const PassShape& shape,
                   bool masked) const;
    void sample_on_host(Launched& launched);
    void sample_with_masks(Launched& launched);
    void take_samples(Awaited& awaited, uint32_t serial);

    Context& ctx_;
    const Model& model_;
    KvCache& cache_;
    int64_t vocabulary_;
    RunnerLimits limits_;
    Arena memory_, host_memory_;
    int32_t* latest_;                // (sequences): their last tokens
    uint8_t* seen_;                  // (sequences, vocabulary)
    std::vector<uint64_t> history_;  // per slot: whose tokens seen_ has, as its number + 1
    TokenRingEntry* ring_;
    std::vector<void*> staging_;  // inputs, in turn
    uint64_t *masks_ = nullptr, *masks_on_host_ = nullptr;  // (samples, mask_words(vocabulary))
    struct Io {
        PassInputs inputs;
        SampleRows rows;
    };
    GraphRunner<Io> graphs_;  // by rows, the largest number of keys, and whether masks are to come
    std::deque<Launched> launched_;
    uint32_t serial_ = 0;
};

GpuRunner::GpuRunner(Context& ctx, const Model& model, KvCache& cache, int64_t vocabulary,
                     const RunnerLimits& limits)
    : ctx_(ctx),
      model_(model),
      cache_(cache),
      vocabulary_(vocabulary),
      limits_(limits),
      memory_(ctx.arena.source()),
      host_memory_(ctx.host_arena.source()),
      history_(static_cast<size_t>(limits.sequences)),
      graphs_(ctx) {
    const auto bytes = [](Arena& arena, int64_t n) {
        return arena.tensor(Dtype::u8, {n}).as<uint8_t>();
    };
    latest_ = memory_.tensor(Dtype::i32, {limits.sequences}).as<int32_t>();
    seen_ = bytes(memory_, limits.sequences * vocabulary);
    const int64_t entries = kRings * limits.samples;
    ring_ = reinterpret_cast<TokenRingEntry*>(
        bytes(host_memory_, entries * int64_t{sizeof(TokenRingEntry)}));
    std::fill_n(ring_, entries, TokenRingEntry{});
    const int64_t blocks = cache.blocks_for(cache.capacity());
    const int64_t most =
        PassInputs::bytes({std::max(limits.rows, limits.samples), limits.sequences, blocks,
                           static_cast<int64_t>(cache.groups()), limits.samples});
    for (int64_t i = 0; i < kRings; ++i) staging_.push_back(bytes(host_memory_, most));
    require(cache.make_room(limits.sequences, 0, 1), "the key/value cache has no block to spare");
}

PassInputs::Sizes GpuRunner::sizes_of(std::span<const PassPiece> pass, int64_t most_keys) const {
    PassInputs::Sizes sizes{0, std::ssize(pass), cache_.blocks_for(most_keys),
                            static_cast<int64_t>(cache_.groups()), 0};
    for (const PassPiece& piece : pass) {
        sizes.rows += piece.rows();
        sizes.samples += piece.samples;
    }
    sizes.samples = std::max<int64_t>(sizes.samples, 1);  // a pass has an output
    return sizes;
}

// The history of a sequence that is new in its slot.
void GpuRunner::set_history(const BatchSequence& sequence) {
    const uint64_t own = sequence.id + 1;
    uint64_t& owner = history_[static_cast<size_t>(sequence.slot)];
    if (owner == own) return;
    // A slot that the sequence had before a preemption lacks the tokens since.
    std::replace(history_.begin(), history_.end(), own, uint64_t{0});
    owner = own;
    std::vector<uint8_t> seen(static_cast<size_t>(vocabulary_));
    for (const int32_t token : sequence.tokens())
        if (token >= 0 && token < vocabulary_) seen[static_cast<size_t>(token)] = 1;
    cuda_runtime().upload(ctx_, seen_ + sequence.slot * vocabulary_, seen.data(), seen.size());
}

// The row that gives the token at a place of the sequence.
SampleRow GpuRunner::sample_row(const PassPiece& piece, int64_t place, uint32_t serial,
                                int64_t sample) {
    const BatchSequence& sequence = *piece.sequence;
    SampleRow row;
    row.state.serial = serial;
    row.entry = static_cast<int32_t>(serial % kRings * limits_.samples + sample);
    if (is_on_host(sequence)) return row;
    row.slot = static_cast<int32_t>(sequence.slot);
    row.params = sampling_params_of(sequence.request.sampler);
    if (row.params.penalty != 1) set_history(sequence);
    row.u = uniform_at(sequence.request.seed, static_cast<uint64_t>(place));
    return row;
}

void GpuRunner::fill(PassInputs& to, std::span<const PassPiece> pass, const Launched& launched) {
    int64_t row = 0, sample = 0, b = 0;
    int32_t masks = 0;
    to.start[0] = 0;
    to.samples[0] = SampleRow{};
    to.wanted[0] = 0;
    for (const PassPiece& piece : pass) {
        const BatchSequence& sequence = *piece.sequence;
        for (int64_t p = piece.begin; p < piece.end; ++p, ++row) {
            const int64_t after = p - std::ssize(sequence.tokens());
            if (after < 0)
                to.from[row] = sequence.tokens()[static_cast<size_t>(p)];
            else if (after < std::ssize(sequence.drafts))
                to.from[row] = sequence.drafts[static_cast<size_t>(after)];
            else
                to.from[row] = static_cast<int32_t>(-1 - sequence.slot);
            to.position[row] = static_cast<int32_t>(p);
        }
        to.start[b + 1] = static_cast<int32_t>(row);
        to.length[b] = static_cast<int32_t>(piece.end);
        for (size_t g = 0; g < to.tables.size(); ++g) {
            const std::span<const int32_t> table = cache_.table(g, sequence.slot);
            int32_t* own = to.tables[g] + b * to.sizes.blocks;
            const auto n = std::min<int64_t>(std::ssize(table), to.sizes.blocks);
            std::fill(std::copy_n(table.begin(), n, own), own + to.sizes.blocks,
                      PrefixCache::kNone);
        }
        ++b;
        for (int64_t i = piece.samples; i > 0; --i, ++sample) {
            to.samples[sample] = sample_row(piece, piece.end - i + 1, launched.serial, sample);
            if (has_mask(sequence)) to.samples[sample].mask = masks++;
            to.wanted[sample] = static_cast<int32_t>(row - i);
        }
    }
}

// Rows and sequences of the bucket that the pass does not have: each is token 0 of a sequence of
// its own, in a block that nothing else uses.
void GpuRunner::pad(PassInputs& to, int64_t sequences) const {
    for (int64_t b = sequences; b < to.sizes.sequences; ++b) {
        to.from[b] = to.position[b] = 0;
        to.start[b + 1] = static_cast<int32_t>(b + 1);
        to.length[b] = 1;
        for (size_t g = 0; g < to.tables.size(); ++g) {
            int32_t* own = to.tables[g] + b * to.sizes.blocks;
            std::fill_n(own, to.sizes.blocks, PrefixCache::kNone);
            own[0] = cache_.table(g, limits_.sequences)[0];
        }
    }
    for (int64_t b = 0; b < to.sizes.samples; ++b) {
        if (b >= sequences) to.samples[b] = SampleRow{};
        to.wanted[b] = static_cast<int32_t>(b);
    }
}

// Computes the logits, in the context's arena, and samples from them if no masks are to come.
SampleRows GpuRunner::run(Context& ctx, const PassInputs& in, const PassShape& shape,
                          bool masked) const {
    const PassInputs::Sizes& sizes = in.sizes;
    const Tensor tokens = ctx.arena.tensor(Dtype::i32, {sizes.rows});
    cuda_sampler().take_tokens(ctx, tokens.as<int32_t>(), in.from, latest_, sizes.rows);
    std::vector<BatchLayout> layouts;
    for (size_t g = 0; g < in.tables.size(); ++g) layouts.push_back(in.layout(g, shape));
    const Tensor logits = model_(ctx, tokens, in.tensor(in.position, sizes.rows), layouts,
                                 in.tensor(in.wanted, sizes.samples), cache_);
    SampleRows rows;
    rows.logits = logits.as<float>();
    rows.stride = logits.dim(1);
    rows.rows = in.samples;
    rows.latest = latest_;
    rows.seen = seen_;
    rows.ring = ring_;
    rows.n = static_cast<int32_t>(vocabulary_);
    rows.scratch = ctx.arena.tensor(Dtype::u8, {sizes.samples, sample_scratch(vocabulary_)}).data;
    if (!masked) cuda_sampler().sample_rows(ctx, rows, sizes.samples);
    return rows;
}

void GpuRunner::launch(std::span<const PassPiece> pass) {
    serial_ = advance_serial(serial_);
    Launched launched{.serial = serial_};
    int64_t samples = 0;
    bool recorded = true, masked = false;
    for (const PassPiece& piece : pass) {
        const BatchSequence& sequence = *piece.sequence;
        recorded = recorded && piece.rows() == 1 && piece.samples > 0 && !is_on_host(sequence);
        if (piece.samples == 0) continue;
        masked = masked || has_mask(sequence);
        launched.results.push_back({{piece.sequence, {}, {}},
                                    samples,
                                    piece.samples,
                                    sequence.drafts,
                                    is_on_host(sequence),
                                    has_mask(sequence)});
        samples += piece.samples;
        // The GPU does not see these tokens: it gets the whole history again.
        if (is_on_host(sequence)) history_[static_cast<size_t>(sequence.slot)] = 0;
    }
    PassShape shape = shape_of(pass);
    if (recorded)
        shape.most_keys = graph_bucket(shape.most_keys, cache_.capacity());
    else if (ctx_.has_independent_rows())
        shape.most_keys = cache_.capacity();  // windows must not depend on the pass
    PassInputs::Sizes sizes = sizes_of(pass, shape.most_keys);
    if (recorded)
        sizes.rows = sizes.sequences = sizes.samples =
            row_bucket(sizes.sequences, limits_.sequences);
    void* const host = staging_[serial_ % kRings];
    PassInputs inputs(sizes, host, Device::cpu);
    fill(inputs, pass, launched);
    const auto bytes = static_cast<size_t>(PassInputs::bytes(sizes));
    const GpuSpan span(ctx_, recorded ? "gpu.step" : "gpu.prefill");
    if (recorded) {
        pad(inputs, std::ssize(pass));
        const GraphKey key{sizes.rows, shape.most_keys, masked};
        Io& io = graphs_.io(key, [&] {
            void* own = memory_.tensor(Dtype::u8, {static_cast<int64_t>(bytes)}).data;
            return Io{PassInputs(sizes, own, Device::cuda), {}};
        });
        cuda_runtime().upload(ctx_, io.inputs.samples, host, bytes);
        graphs_.launch(key, [&](Context& ctx, Io& own) {
            const Arena::Scope scope(ctx.arena);
            own.rows = run(ctx, own.inputs, shape, masked);
        });
        launched.rows = io.rows;
    } else {
        const Scratch scratch(ctx_);
        void* own = ctx_.arena.tensor(Dtype::u8, {static_cast<int64_t>(bytes)}).data;
        cuda_runtime().upload(ctx_, own, host, bytes);
        launched.rows = run(ctx_, PassInputs(sizes, own, Device::cuda), shape, masked);
        sample_on_host(launched);
    }
    launched.samples = masked ? sizes.samples : 0;
    launched_.push_back(std::move(launched));
    if (launched_.size() == 1) sample_with_masks(launched_.front());
}

// The host knows all tokens before those of this pass. Nothing has run on the GPU since the pass
// was launched: its logits are where they were.
void GpuRunner::sample_with_masks(Launched& launched) {
    if (launched.samples == 0) return;
    const int64_t words = mask_words(vocabulary_);
    const auto memory = [&](Arena& arena) {
        const int64_t bytes = limits_.samples * words * int64_t{sizeof(uint64_t)};
        return static_cast<uint64_t*>(arena.tensor(Dtype::u8, {bytes}).data);
    };
    if (masks_ == nullptr) {
        masks_on_host_ = memory(host_memory_);
        masks_ = memory(memory_);
    }
    uint64_t* own = masks_on_host_;
    for (Awaited& awaited : launched.results) {
        if (!awaited.masked) continue;
        std::fill_n(own, words, 0);
        try {
            const auto mask = awaited.result.sequence->sampler.allowed();
            require_any(*mask, static_cast<size_t>(vocabulary_));
            std::copy_n(mask->begin(), std::min<int64_t>(std::ssize(*mask), words), own);
        } catch (const Error& why) {
            awaited.result.fail(why);
        }
        own += words;
    }
    const auto bytes = static_cast<size_t>(own - masks_on_host_) * sizeof(uint64_t);
    cuda_runtime().upload(ctx_, masks_, masks_on_host_, bytes);
    launched.rows.masks = masks_;
    cuda_sampler().sample_rows(ctx_, launched.rows, std::exchange(launched.samples, 0));
}

void GpuRunner::sample_on_host(Launched& launched) {
    const SampleRows& rows = launched.rows;
    for (Awaited& awaited : launched.results) {
        if (!awaited.on_host) continue;
        const Tensor logits(const_cast<float*>(rows.logits) + awaited.first * rows.stride,
                            Dtype::f32, {awaited.samples, rows.stride}, Device::cuda);
        sample(awaited.result, to_host(ctx_, logits), vocabulary_);
    }
}

void GpuRunner::take_samples(Awaited& awaited, uint32_t serial) {
    PassResult& result = awaited.result;
    TokenRingEntry* const ring = ring_ + serial % kRings * limits_.samples + awaited.first;
    if (!result.error.empty()) {  // of its mask: the pass's memory is in use until it has run
        wait_for_choice(ctx_, ring[0], serial);
        return;
    }
    for (int64_t i = 0; i < awaited.samples; ++i) {
        const SampledToken sampled = wait_for_choice(ctx_, ring[i], serial);
        if (sampled.token < 0) {
            result.error = awaited.masked ? kNoTokenAllowed : "all logits of the model are NaN";
            return;
        }
        try {
            result.sequence->sampler.append(sampled.token);
        } catch (const Error& why) {
            result.fail(why);
            return;
        }
        result.sampled.push_back(sampled);
        const bool is_last = i + 1 == awaited.samples;
        if (!is_last && sampled.token != awaited.drafts[static_cast<size_t>(i)]) return;
    }
}

std::vector<PassResult> GpuRunner::take_results() {
    Launched launched = std::move(launched_.front());
    launched_.pop_front();
    if (launched.results.empty()) cuda_runtime().synchronize(ctx_);
    std::vector<PassResult> results;
    for (Awaited& awaited : launched.results) {
        if (!awaited.on_host) take_samples(awaited, launched.serial);
        results.push_back(std::move(awaited.result));
    }
    if (!launched_.empty()) sample_with_masks(launched_.front());
    return results;
}

// The next passes get all histories again.
void GpuRunner::drop_passes() {
    launched_.clear();
    std::fill(history_.begin(), history_.end(), uint64_t{0});
    cuda_runtime().synchronize(ctx_);
}

}  // namespace

std::unique_ptr<ModelRunner> make_gpu_runner(Context& ctx, const Model& model, KvCache& cache,
                                             int64_t vocabulary, const RunnerLimits& limits) {
    return std::make_unique<GpuRunner>(ctx, model, cache, vocabulary, limits);
}

}  // namespace hark::gpt
