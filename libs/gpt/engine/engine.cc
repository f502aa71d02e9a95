#include "gpt/engine/engine.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/error.h"
#include "gpt/decoder/model.h"
#include "gpt/engine/draft_model.h"
#include "gpt/engine/model_runner.h"
#include "gpt/engine/prompt_pieces.h"
#include "gpt/engine/scheduler.h"
#include "kernels/runtime/backend.h"

namespace hark::gpt {
namespace {

constexpr int64_t kSequences = 16, kSequencesOnGpu = 256;
// Rows of a pass with drafts: a GPU reads its weights in the time that it multiplies these.
constexpr int64_t kDraftRowsOnGpu = 32;
static_assert(kFewQueries < kFewRowsOnCpu);
constexpr int64_t kFewestPromptRows = 256;  // of a pass that has the next tokens of texts too

int64_t or_else(int64_t value, int64_t otherwise) { return value > 0 ? value : otherwise; }

EngineOptions complete(EngineOptions options, const Context& ctx, const DecoderConfig& config) {
    const int64_t positions = config.n_positions;
    require(options.context <= positions, "--context: expected at most the model's ", positions,
            " positions, got ", options.context);
    require(!config.has_longrope(), "a model with longrope computes one text at a time");
    options.context = or_else(options.context, positions);
    options.max_sequences = or_else(options.max_sequences, default_sequences(ctx));
    options.prompt_rows = or_else(options.prompt_rows, prompt_rows(ctx));
    if (ctx.on_cuda() && ctx.has_independent_rows())
        options.prompt_rows = std::min(options.prompt_rows, prompt_rows(ctx));
    // A pass that every text has a row of leaves some to prompts.
    if (options.mixed_rows > 0)
        options.mixed_rows =
            std::min(std::max(options.mixed_rows, options.max_sequences + kFewestPromptRows),
                     options.prompt_rows);
    return options;
}

std::unique_ptr<DraftModel> make_draft_model(Context& ctx, int64_t vocabulary,
                                             const EngineOptions& options) {
    if (!options.draft_model) return nullptr;
    return std::make_unique<DraftModel>(ctx, *options.draft_model, vocabulary, options.context,
                                        options.max_sequences);
}

SchedulerOptions scheduling(const EngineOptions& options, const Context& ctx, bool is_alone,
                            DraftModel* draft_model) {
    SchedulerOptions scheduling;
    scheduling.draft_model = draft_model;
    scheduling.continues_without_drafts = is_alone;
    scheduling.max_sequences = options.max_sequences;
    scheduling.prompt_rows = options.prompt_rows;
    scheduling.step_rows = ctx.on_cuda() ? options.max_sequences : kFewRowsOnCpu;
    scheduling.packs_prompts = ctx.on_cuda() && !ctx.batch_invariant;
    if (scheduling.packs_prompts) scheduling.mixed_rows = options.mixed_rows;
    scheduling.fewest_prompt_rows = fewest_prompt_rows(ctx);
    scheduling.prefix_cache = options.prefix_cache;
    scheduling.draft_tokens = options.draft_tokens;
    scheduling.draft_rows = ctx.on_cuda() ? kDraftRowsOnGpu : kFewRowsOnCpu;
    if (options.draft_tokens > 0)
        scheduling.step_rows = std::max(scheduling.step_rows, scheduling.draft_rows);
    return scheduling;
}

// Every rank has the same number of blocks. On the CPU they may share a machine's memory.
int64_t free_bytes(const Context& ctx, Communicator& ranks) {
    const int64_t bytes = free_memory(ctx) / (ctx.on_cuda() ? 1 : ranks.size());
    return static_cast<int64_t>(ranks.least(static_cast<double>(bytes)));
}

// Of completed options.
KvCacheShape shape_of(const Context& ctx, const DecoderConfig& config, Precision precision,
                      const EngineOptions& options) {
    KvCacheShape shape = cache_shape(config, precision.cache, options.context);
    shape.block = kBlockTokens;
    shape.sequences = options.max_sequences + (ctx.on_cuda() ? 1 : 0);  // one that pads passes
    shape.most_rows = options.prompt_rows;
    return shape;
}

int64_t token_bytes(const KvCacheShape& shape) {
    const auto row = static_cast<int64_t>(row_bytes(shape.dtype, shape.head_dim));
    return std::ssize(shape.layers) * shape.heads * row * (shape.has_values ? 2 : 1);
}

std::unique_ptr<KvCache> make_cache(Context& ctx, const Model& model,
                                    const EngineOptions& options) {
    KvCacheShape shape = shape_of(ctx, model.config, model.precision, options);
    const int64_t token = token_bytes(shape);
    const int64_t bytes =
        options.cache_bytes > 0
            ? options.cache_bytes
            : static_cast<int64_t>(options.memory_fraction *
                                   static_cast<double>(free_bytes(ctx, *model.ranks)));
    const int64_t fit = bytes / token / kBlockTokens * kBlockTokens;
    shape.pool_tokens =
        std::min(or_else(options.pool_tokens, fit), shape.sequences * shape.capacity);
    require(shape.pool_tokens > 0, "no memory for keys and values: a token takes ", token,
            " bytes, ", bytes, " are free");
    MemorySource memory = ctx.arena.source();
    // A slab that one rank cannot have would give it another schedule than the others'.
    if (!model.ranks->alone()) memory.reserve = nullptr;
    return std::make_unique<KvCache>(shape, memory);
}

}  // namespace

int64_t default_sequences(const Context& ctx) {
    return ctx.on_cuda() ? kSequencesOnGpu : kSequences;
}

CacheBytes cache_bytes(const Context& ctx, const DecoderConfig& config, Precision precision,
                       const EngineOptions& options) {
    const KvCacheShape shape = shape_of(ctx, config, precision, complete(options, ctx, config));
    const int64_t token = token_bytes(shape);
    return {token, token * shape.sequences * shape.capacity};
}

Engine::Engine(Context& ctx, const Model& model, int64_t vocabulary, const EngineOptions& options)
    : ctx_(ctx),
      is_alone_(model.ranks->alone()),
      options_(complete(options, ctx, model.config)),
      draft_model_(make_draft_model(ctx, vocabulary, options_)),
      cache_(make_cache(ctx, model, options_)),
      scheduler_(std::make_unique<Scheduler>(
          *cache_, scheduling(options_, ctx, is_alone_, draft_model_.get()))),
      runner_(ctx.on_cuda() ? make_gpu_runner(ctx, model, *cache_, vocabulary,
                                              {options_.max_sequences, options_.prompt_rows,
                                               options_.max_sequences + kDraftRowsOnGpu})
                            : make_host_runner(ctx, model, *cache_, vocabulary)) {}

Engine::~Engine() = default;

uint64_t Engine::add(TextRequest request) {
    require(!request.prompt.empty(), "the prompt has no tokens");
    require(request.max_tokens > 0, "max_tokens: expected 1 at least, got ", request.max_tokens);
    const uint64_t id = next_++;
    auto sequence = std::make_unique<BatchSequence>(id, std::move(request));
    scheduler_->add(*sequence);
    sequences_.emplace(id, std::move(sequence));
    return id;
}

void Engine::end(uint64_t id) {
    const auto found = sequences_.find(id);
    if (found == sequences_.end() || found->second->has_ended) return;
    BatchSequence& sequence = *found->second;
    scheduler_->remove(sequence);
    sequence.has_ended = true;
    if (sequence.in_flight == 0) sequences_.erase(found);
}

std::vector<PassPiece> Engine::next_pass() {
    try {
        return scheduler_->next();
    } catch (...) {  // any of those that run may be in the pass that was being made
        std::vector<uint64_t>& pass = passes_.emplace_back();
        for (const auto& [id, sequence] : sequences_)
            if (sequence->slot != BatchSequence::kNoSlot) pass.push_back(id);
        throw;
    }
}

void Engine::launch() {
    while (std::ssize(passes_) < runner_->most_passes()) {
        const std::vector<PassPiece> pass = next_pass();
        if (pass.empty()) return;
        std::vector<uint64_t>& texts = passes_.emplace_back();
        for (const PassPiece& piece : pass) texts.push_back(piece.sequence->id);
        runner_->launch(pass);
        scheduler_->launched(pass);
    }
}

void Engine::take(std::vector<EngineToken>& tokens) {
    for (PassResult& result : runner_->take_results()) take(std::move(result), tokens);
    passes_.pop_front();
}

// The texts of the failed pass and of those in flight, or all if there is no pass.
void Engine::fail_passes(const std::exception& why, std::vector<EngineToken>& tokens) {
    runner_->drop_passes();
    std::set<uint64_t> failed;
    for (const std::vector<uint64_t>& pass : passes_) failed.insert(pass.begin(), pass.end());
    if (passes_.empty())
        for (const auto& [id, sequence] : sequences_) failed.insert(id);
    passes_.clear();
    for (const uint64_t id : failed) {
        const auto found = sequences_.find(id);
        if (found == sequences_.end()) continue;
        found->second->in_flight = 0;
        if (found->second->has_ended) {
            sequences_.erase(found);
            continue;
        }
        tokens.push_back(
            {.id = id, .error = failure_text(why), .is_out_of_memory = is_out_of_memory(why)});
        end(id);
    }
}

void Engine::take(PassResult result, std::vector<EngineToken>& tokens) {
    BatchSequence& sequence = *result.sequence;
    --sequence.in_flight;
    const uint64_t id = sequence.id;
    if (sequence.has_ended) {
        if (sequence.in_flight == 0) sequences_.erase(id);
        return;
    }
    if (!sequence.drafts.empty()) {
        const int64_t right = std::max<int64_t>(std::ssize(result.sampled) - 1, 0);
        drafts_ += std::ssize(sequence.drafts);
        accepted_ += right;
        sequence.drafted += std::ssize(sequence.drafts);
        sequence.accepted += right;
        sequence.drafts.clear();
        // The keys of wrong drafts are overwritten; the newest token has none yet.
        sequence.computed = std::ssize(sequence.tokens()) - 1;
    }
    // The host knows all its tokens; further ones may be in flight.
    int64_t answered =
        std::ssize(sequence.tokens()) - sequence.prompt() - std::ssize(result.sampled);
    const auto push = [&](EngineToken token) {
        token.id = id;
        token.cached_tokens = sequence.cached;
        token.begun = sequence.begun;
        token.drafts = sequence.drafted;
        token.accepted = sequence.accepted;
        tokens.push_back(std::move(token));
    };
    for (SampledToken& sampled : result.sampled) {
        ++answered;
        push({.sampled = std::move(sampled),
              .is_first = answered == 1,
              .is_last = answered >= sequence.request.max_tokens});
    }
    const bool has_failed = !result.error.empty();
    if (has_failed)
        push({.error = std::move(result.error), .is_out_of_memory = result.is_out_of_memory});
    if (has_failed || answered >= sequence.request.max_tokens) end(id);
}

// No text can have a pass. Ends the first one if the device has no memory for it, else all.
void Engine::fail_to_continue() {
    require(!cache_->lack().empty() && scheduler_->waiting() > 0, "internal error: none of ",
            sequences_.size(), " texts continues");
    passes_.push_back({scheduler_->first_waiting().id});
    throw OutOfMemory(cache_->lack());
}

std::vector<EngineToken> Engine::step() {
    std::vector<EngineToken> tokens;
    if (sequences_.empty()) return tokens;
    try {
        launch();
        if (passes_.empty()) fail_to_continue();
        take(tokens);
    } catch (const std::exception& why) {
        if (!is_alone_) throw;  // the other ranks may not have failed
        fail_passes(why, tokens);
    }
    return tokens;
}

int64_t Engine::context() const { return cache_->capacity(); }
int64_t Engine::cache_bytes() const { return cache_->most_bytes(); }
void Engine::give_memory_back() { cache_->give_memory_back(ctx_); }

EngineCounts Engine::counts() const {
    return {.running = scheduler_->running(),
            .waiting = scheduler_->waiting(),
            .preemptions = scheduler_->preemptions(),
            .cached_tokens = scheduler_->cached_tokens(),
            .blocks = cache_->pool(0).most(),
            .free_blocks = cache_->pool(0).free(),
            .cache_bytes = cache_->bytes(),
            .drafts = drafts_,
            .accepted = accepted_};
}

}  // namespace hark::gpt
