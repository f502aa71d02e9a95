#include "gpt/batch/engine.h"

#include <algorithm>
#include <utility>

#include "core/available_memory.h"
#include "core/error.h"
#include "gpt/engine/prompt_pieces.h"
#include "kernels/runtime/cuda_library.h"

namespace hark::gpt {
namespace {

constexpr int64_t kSequences = 16, kSequencesOnGpu = 256;
static_assert(kFewQueries < kFewRowsOnCpu);

int64_t or_else(int64_t value, int64_t otherwise) { return value > 0 ? value : otherwise; }

EngineOptions complete(EngineOptions options, const Context& ctx, const Model& model) {
    const int64_t positions = model.config.n_positions;
    require(options.context <= positions, "context: the model has ", positions, " positions (got ",
            options.context, "); give fewer tokens");
    require(!model.config.has_longrope(), "a model with longrope computes one text at a time");
    options.context = or_else(options.context, positions);
    options.max_sequences = or_else(options.max_sequences, default_sequences(ctx));
    options.prompt_rows = or_else(options.prompt_rows, prompt_rows(ctx));
    return options;
}

SchedulerOptions scheduling(const EngineOptions& options, const Context& ctx) {
    SchedulerOptions scheduling;
    scheduling.max_sequences = options.max_sequences;
    scheduling.prompt_rows = options.prompt_rows;
    scheduling.step_rows = ctx.on_cuda() ? options.max_sequences : kFewRowsOnCpu;
    scheduling.packs_prompts = ctx.on_cuda() && !ctx.batch_invariant;
    scheduling.fewest_prompt_rows = fewest_prompt_rows(ctx);
    scheduling.prefix_cache = options.prefix_cache;
    return scheduling;
}

int64_t free_bytes(const Context& ctx) {
    return ctx.on_cuda() ? static_cast<int64_t>(cuda_runtime().free_memory(ctx))
                         : available_memory();
}

std::unique_ptr<KvCache> make_cache(Context& ctx, const Model& model,
                                    const EngineOptions& options) {
    KvCacheShape shape = cache_shape(model.config, model.precision.cache, options.context);
    shape.block = kBlockTokens;
    shape.sequences = options.max_sequences + (ctx.on_cuda() ? 1 : 0);  // one that pads passes
    shape.most_rows = options.prompt_rows;
    const auto row = static_cast<int64_t>(row_bytes(shape.dtype, shape.head_dim));
    const int64_t token = std::ssize(shape.layers) * shape.heads * row * (shape.has_values ? 2 : 1);
    const auto bytes = options.memory_fraction * static_cast<double>(free_bytes(ctx));
    const int64_t fit = static_cast<int64_t>(bytes) / token / kBlockTokens * kBlockTokens;
    shape.pool_tokens =
        std::min(or_else(options.pool_tokens, fit), shape.sequences * shape.capacity);
    require(shape.pool_tokens > 0, "no memory for keys and values: a token takes ", token,
            " bytes, ", static_cast<int64_t>(bytes), " are free");
    return std::make_unique<KvCache>(shape, ctx.arena.source());
}

}  // namespace

int64_t default_sequences(const Context& ctx) {
    return ctx.on_cuda() ? kSequencesOnGpu : kSequences;
}

Engine::Engine(Context& ctx, const Model& model, int64_t vocabulary, const EngineOptions& options)
    : ctx_(ctx),
      options_(complete(options, ctx, model)),
      cache_(make_cache(ctx, model, options_)),
      scheduler_(std::make_unique<Scheduler>(*cache_, scheduling(options_, ctx))),
      runner_(ctx.on_cuda() ? make_gpu_runner(ctx, model, *cache_, vocabulary,
                                              {options_.max_sequences, options_.prompt_rows})
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

void Engine::launch() {
    while (in_flight_ < runner_->most_passes()) {
        const std::vector<PassPiece> pass = scheduler_->next();
        if (pass.empty()) return;
        runner_->launch(pass);
        scheduler_->launched(pass);
        ++in_flight_;
    }
}

std::vector<EngineToken> Engine::take() {
    std::vector<EngineToken> tokens;
    for (PassResult& result : runner_->take_results()) {
        BatchSequence& sequence = *result.sequence;
        --sequence.in_flight;
        const uint64_t id = sequence.id;
        if (sequence.has_ended) {
            if (sequence.in_flight == 0) sequences_.erase(id);
            continue;
        }
        EngineToken token{
            .id = id, .sampled = std::move(result.sampled), .error = std::move(result.error)};
        token.is_first = std::ssize(sequence.tokens()) == sequence.prompt() + 1;
        token.cached_tokens = sequence.cached;
        // The host knows all its tokens; further ones may be in flight.
        token.is_last =
            std::ssize(sequence.tokens()) >= sequence.prompt() + sequence.request.max_tokens;
        if (token.is_last || !token.error.empty()) end(id);
        tokens.push_back(std::move(token));
    }
    --in_flight_;
    return tokens;
}

std::vector<EngineToken> Engine::step() {
    if (sequences_.empty()) return {};
    launch();
    require(in_flight_ > 0, "internal error: none of ", sequences_.size(), " texts continues");
    return take();
}

EngineCounts Engine::counts() const {
    return {.running = scheduler_->running(),
            .waiting = scheduler_->waiting(),
            .preemptions = scheduler_->preemptions(),
            .cached_tokens = scheduler_->cached_tokens(),
            .blocks = cache_->pool(0).most(),
            .free_blocks = cache_->pool(0).free()};
}

}  // namespace hark::gpt
