#include "gpt/answers/generate.h"

#include <algorithm>
#include <utility>

#include "core/cli/ending_signal.h"
#include "core/error.h"
#include "core/profile/profile.h"
#include "gpt/decoder/model.h"
#include "gpt/engine/decode_stream.h"
#include "gpt/engine/sequence.h"
#include "kernels/runtime/gpu_limits.h"

namespace hark::gpt {

Generator::Generator(Context& ctx, const Model& model, const Tokenizer& tokenizer,
                     GenerateOptions options)
    : ctx_(ctx),
      model_(model),
      planner_(model.config, tokenizer, options),
      options_(std::move(options)) {
    check_head(ctx, model.config.head_dim, kMostHeadChannels);
    if (const std::string& cache = options_.prompt_cache; !cache.empty()) {
        cache_is_read_ = std::filesystem::exists(cache);
        if (!cache_is_read_) new_cache_ = std::make_unique<AtomicFile>(cache);
    }
    prepare(planner_.sampler(options_), options_.logprobs.value_or(0));
    if (!cache_is_read_) return;
    cached_ = read_prompt_cache(ctx_, stream_->sequence(), options_.prompt_cache);
}

Generator::~Generator() = default;

void Generator::take_from_cache(std::span<const int32_t> prompt) {
    Sequence& sequence = stream_->sequence();
    const auto shared = [&](const std::vector<int32_t>& tokens) {
        return std::mismatch(tokens.begin(), tokens.end(), prompt.begin(), prompt.end()).first -
               tokens.begin();
    };
    if (shared(cached_.tokens) > shared(sequence.tokens()))
        read_prompt_cache(ctx_, sequence, options_.prompt_cache);
}

void Generator::save(std::span<const int32_t> prompt) {
    Sequence& sequence = stream_->sequence();
    sequence.clear();
    const std::span<const float> logits = sequence.forward_to_host(ctx_, prompt);
    cached_ = {sequence.tokens(), {logits.begin(), logits.end()}};
    ByteWriter out(new_cache_->fd(), new_cache_->name());
    write_prompt_cache(ctx_, sequence, logits, out);
    new_cache_->commit();
    new_cache_.reset();
}

int64_t Generator::begin(const std::vector<int32_t>& prompt, uint64_t seed, int64_t max_tokens) {
    const bool is_new = new_cache_ != nullptr;
    if (PromptCacheReader* const reader = std::exchange(reader_, nullptr)) {
        reader->read_into(ctx_, stream_->sequence());
        cached_ = {reader->tokens(), reader->logits()};
    } else if (is_new) {
        save(prompt);
    } else if (cache_is_read_) {
        take_from_cache(prompt);
    }
    // What follows the cache's own prompt is there to the bit.
    if (prompt == cached_.tokens && prompt == stream_->sequence().tokens()) {
        stream_->go_on(cached_.logits, seed, max_tokens);
        return is_new ? 0 : std::ssize(prompt);
    }
    // What an earlier text has left comes from other passes than the prompt's own.
    return stream_->begin(prompt, seed, max_tokens, !ctx_.has_independent_rows());
}

void Generator::prepare(const SamplerOptions& sampler, int64_t likeliest) {
    if (stream_ && stream_sampler_ == sampler && stream_likeliest_ == likeliest) return;
    stream_.reset();  // the memory of its cache
    // Ids from vocab_size() on are padding of the model's table.
    stream_ = make_decode_stream(ctx_, model_, planner_.tokenizer().vocab_size(), sampler,
                                 planner_.context(), likeliest);
    stream_sampler_ = sampler;
    stream_likeliest_ = likeliest;
}

Completion Generator::operator()(std::string_view prompt, uint64_t index, const OnText& on_text) {
    GenerateOptions options = options_;
    options.seed = static_cast<int64_t>(static_cast<uint64_t>(options.seed) + index);
    Completion result =
        (*this)(planner_.tokenizer().encode(prompt, {.add_specials = true}), options, on_text);
    require(result.error.empty(), result.error);
    return result;
}

Completion Generator::operator()(const std::vector<int32_t>& ids, const GenerateOptions& options,
                                 const OnText& on_text) {
    const AnswerPlan plan = planner_.plan(ids.size(), options);
    const std::unique_ptr<AnswerText> answer = planner_.begin(plan, ids.size());
    Completion& result = answer->completion();
    const auto say = [&](const std::string& text) {
        if (!text.empty() && on_text) on_text(text);
    };
    // What the model throws is the answer's error; what a callback throws passes.
    const auto runs = [&](const auto& step) {
        try {
            step();
        } catch (const Error& why) {
            if (!model_.ranks->alone()) throw;  // the others may not have it
            result.error = why.what();
        }
        return result.error.empty();
    };
    bool goes_on = runs([&] {
        const ProfileSpan span("prefill");
        prepare(planner_.sampler(options), options.logprobs.value_or(0));
        result.cached_tokens = begin(ids, static_cast<uint64_t>(options.seed), plan.max_tokens);
    });
    for (SampledToken sampled; goes_on && std::ssize(result.tokens) < plan.max_tokens;) {
        goes_on = runs([&] {
            // The first token comes with the prompt's pass.
            const ProfileSpan span(result.tokens.empty() ? "prefill" : "step");
            sampled = stream_->next();
        });
        if (!goes_on) break;
        say(answer->push(std::move(sampled)));
        if (!answer->has_ended() && interrupted()) answer->end(Finish::stop);
        goes_on = !answer->has_ended();
    }
    say(answer->finish());
    return std::move(result);
}

}  // namespace hark::gpt
