// Many sequences at once: continuous batching over one key/value cache in blocks.
//
//     add() -> Scheduler -> ModelRunner -> step()'s tokens
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gpt/engine/batch_sequence.h"
#include "gpt/sampling/sampled_token.h"

namespace hark {
struct Context;
class KvCache;
struct Precision;
}  // namespace hark

namespace hark::gpt {

struct DecoderConfig;
class DraftModel;
struct Model;
class ModelRunner;
struct PassResult;
class Scheduler;

// Sequences that are computed at once, if nobody asks for another number: 16, on a GPU 256.
int64_t default_sequences(const Context& ctx);

struct EngineOptions {
    int64_t max_sequences = 0;     // computed at once; 0: default_sequences()
    int64_t context = 0;           // tokens of a sequence, at most; 0: as many as the model has
    int64_t prompt_rows = 0;       // of a pass, at most; 0: 512, on a GPU 2048. On a GPU where rows
                                   // are independent 1024 at most
    // On a GPU where rows may depend on others: rows of a pass of prompts and the next tokens of
    // texts, at most, and no more than prompt_rows; 0: they take turns.
    int64_t mixed_rows = 1024;
    int64_t pool_tokens = 0;       // of all sequences together, at most; 0: from memory_fraction
    int64_t cache_bytes = 0;       // of keys and values, at most; 0: from memory_fraction
    double memory_fraction = 0.9;  // of the device's free memory that the cache may take
    bool prefix_cache = true;      // beginnings that prompts share are computed once
    int64_t draft_tokens = 0;      // guessed per text and pass, at most 7
    const Model* draft_model = nullptr;  // what guesses them; nullptr: the text so far
};

// Bytes of keys and values: of a token, and of all tokens that an engine can have at once.
struct CacheBytes {
    int64_t token = 0, most = 0;
};
// What an engine with these options would have. Throws Error as it does for the model and a
// context.
CacheBytes cache_bytes(const Context& ctx, const DecoderConfig& config, Precision precision,
                       const EngineOptions& options);

// A token of one of the engine's texts, or why there is none.
struct EngineToken {
    uint64_t id = 0;
    SampledToken sampled;
    std::string error;          // the text ends with it; empty: there is a token
    bool is_out_of_memory = false;  // the error: another attempt may succeed
    bool is_first = false;      // of its text
    bool is_last = false;       // max_tokens have been sampled
    int64_t cached_tokens = 0;  // of the prompt, those that were not computed; with the first token
    std::chrono::steady_clock::time_point begun;  // when its text had waited
    int64_t drafts = 0, accepted = 0;  // guesses of its text so far; those that were right
};

struct EngineCounts {
    int64_t running = 0, waiting = 0;     // texts
    int64_t preemptions = 0;              // so far
    int64_t cached_tokens = 0;            // of prompts, so far
    int64_t blocks = 0, free_blocks = 0;  // of the cache's first group
    int64_t cache_bytes = 0;              // of keys and values, that have memory
    int64_t drafts = 0, accepted = 0;     // guessed tokens so far; those that were right
};

class Engine {
  public:
    // Tokens are below `vocabulary`. The context's batch_invariant holds for all texts: then a
    // text's bits depend on its request alone. Throws Error for a context longer than the model's,
    // for a model with longrope, for a draft model with fewer tokens, and if there is no memory for
    // one text. Holds references.
    Engine(Context& ctx, const Model& model, int64_t vocabulary, const EngineOptions& options = {});
    ~Engine();

    // Texts are begun in the order of add(). Returns the text's number. Throws Error for an empty
    // prompt and for a text that the cache can never hold.
    uint64_t add(TextRequest request);
    // Ends a text, whatever it has: nothing more is said of it. No effect on one that has ended.
    void end(uint64_t id);
    // Computes one pass, and returns its tokens: none of a pass that has parts of prompts alone, so
    // that texts can be added and ended while a long prompt is read. A text whose last token or
    // error has been returned has ended. If a pass fails, its texts end with the error, on a GPU
    // those of the pass in flight too; other texts continue. Throws if the GPU is lost,
    // and any failure if there are other ranks.
    std::vector<EngineToken> step();
    bool is_idle() const { return sequences_.empty(); }
    EngineCounts counts() const;
    int64_t context() const;
    int64_t max_sequences() const { return options_.max_sequences; }
    // Of keys and values, at most.
    int64_t cache_bytes() const;
    // Gives memory of keys and values back that no text uses, and forgets beginnings of prompts.
    void give_memory_back();

  private:
    void launch();
    [[noreturn]] void fail_to_continue();
    std::vector<PassPiece> next_pass();
    void take(std::vector<EngineToken>& tokens);
    void take(PassResult result, std::vector<EngineToken>& tokens);
    void fail_passes(const std::exception& why, std::vector<EngineToken>& tokens);

    Context& ctx_;
    bool is_alone_;  // no other rank computes the same passes
    EngineOptions options_;
    std::unique_ptr<DraftModel> draft_model_;
    std::unique_ptr<KvCache> cache_;  // of the memory that the draft model leaves
    std::unique_ptr<Scheduler> scheduler_;
    std::unique_ptr<ModelRunner> runner_;
    std::map<uint64_t, std::unique_ptr<BatchSequence>> sequences_;
    uint64_t next_ = 0;
    std::deque<std::vector<uint64_t>> passes_;  // in flight: their texts
    int64_t drafts_ = 0, accepted_ = 0;
};

}  // namespace hark::gpt
