// Generation: from a prompt to its completion, one token at a time.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/files/files.h"
#include "gpt/answers/answer_plan.h"
#include "gpt/engine/prompt_cache.h"
#include "text/tokenizer.h"

namespace hark::gpt {

class DecodeStream;

class Generator {
  public:
    // Throws Error if the tokenizer has more tokens than the model, or the context more than the
    // model's, if max_tokens alone do not fit the context, and if the prompt cache is of another
    // model or cannot be written. Holds references.
    Generator(Context& ctx, const Model& model, const Tokenizer& tokenizer,
              GenerateOptions options);
    ~Generator();

    using OnText = std::function<void(std::string_view)>;  // each piece as soon as it is certain

    // Continues a non-empty prompt. Prompt `index` of a run draws with seed + index: equal prompts
    // get different answers, the first the one it gets alone. Throws Error, before the first
    // token, if the prompt and max_tokens do not fit the context, and if the model does.
    Completion operator()(std::string_view prompt, uint64_t index, const OnText& on_text = {});
    // The same for a prompt of tokens with options of its own, which draws with options.seed. What
    // the model throws is the answer's error.
    Completion operator()(const std::vector<int32_t>& prompt, const GenerateOptions& options,
                          const OnText& on_text = {});
    // The answer to the prompt that another process has computed begins with it; its keys are read
    // with the first answer. Keeps the reference until then.
    void go_on_from(PromptCacheReader& reader) { reader_ = &reader; }
    // Whether the options' prompt cache was there before, so that prompts may begin as it does.
    bool has_prompt_cache() const { return cache_is_read_; }
    AnswerPlanner& planner() { return planner_; }

  private:
    // Makes the stream for this sampler, unless it is there.
    void prepare(const SamplerOptions& sampler, int64_t likeliest);
    // Begins the stream; returns how many tokens of the prompt were not computed.
    int64_t begin(const std::vector<int32_t>& prompt, uint64_t seed, int64_t max_tokens);
    // Reads the prompt cache if the prompt has more in common with it than with the last sequence.
    void take_from_cache(std::span<const int32_t> prompt);
    // Computes the prompt and writes it to the prompt cache, which is not there.
    void save(std::span<const int32_t> prompt);

    Context& ctx_;
    const Model& model_;
    AnswerPlanner planner_;
    GenerateOptions options_;
    std::unique_ptr<DecodeStream> stream_;
    SamplerOptions stream_sampler_;  // the options that stream_ was made with
    int64_t stream_likeliest_ = 0;
    std::unique_ptr<AtomicFile> new_cache_;  // a prompt cache that is to be written
    bool cache_is_read_ = false;
    PromptCache cached_;                   // the prompt cache's
    PromptCacheReader* reader_ = nullptr;  // what go_on_from() was given
};

}  // namespace hark::gpt
