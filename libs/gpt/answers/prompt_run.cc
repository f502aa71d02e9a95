#include "gpt/answers/prompt_run.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <optional>
#include <span>
#include <utility>

#include "gpt/answers/answerer.h"
#include "gpt/answers/batch_answerer.h"
#include "gpt/answers/draft_choice.h"
#include "gpt/answers/generate.h"
#include "gpt/answers/generate_options.h"
#include "gpt/answers/prefill.h"
#include "gpt/decoder/model.h"
#include "gpt/engine/engine.h"
#include "gpt/families/model_file.h"
#include "kernels/comm/processes.h"
#include "text/chat_template.h"

namespace hark::gpt {
namespace {

// The time that chat templates write is the first process's, at its start.
void share_template_time(Communicator& ranks) {
    std::tm now = template_time();
    std::time_t seconds = ::timegm(&now);
    ranks.share(std::as_writable_bytes(std::span(&seconds, 1)), 0);
    ::setenv("SOURCE_DATE_EPOCH", std::to_string(seconds).c_str(), 1);
}

int output_of(const Communicator& ranks) {
    return ranks.first() ? STDOUT_FILENO : ::open("/dev/null", O_WRONLY | O_CLOEXEC);
}

}  // namespace

PromptRun::PromptRun(const GenerateToolOptions& options, Console& console, Context& ctx,
                     Communicator& ranks)
    : options_(options),
      console_(console),
      ctx_(ctx),
      ranks_(ranks),
      file_(options.choice.open(console)),
      tokenizer_(options.choice.tokenizer_of(*file_)),
      encoder_(*file_, *tokenizer_, options.chat_options()),
      in_(STDIN_FILENO, "stdin", ranks, &interrupt_),
      out_(output_of(ranks), "stdout"),
      prompts_(in_, options.prompt_format(), options.prompt_template(), options.chat.chat,
               [&console](const std::string& warning) { console.warning(warning); }),
      answers_(options.answers(encoder_.markers()), *tokenizer_, console, out_) {
    options.batch.apply_to(ctx);
    check_independent_sums(ctx, ranks);
    if (console.tracing)
        ctx.on_stage = [&](auto& name, auto& shape, double ms) { console.trace(name, shape, ms); };
}

void PromptRun::answer() {
    if (options_.show_prompt)
        return use_prompts([&](Prompt prompt) { answers_.show(prompt, encoder_.text(prompt)); });
    defaults_ = options_.generate.options(file_->sampling_defaults());
    if (encoder_.markers()) defaults_.shown = marker_tokens(*encoder_.markers(), *tokenizer_);
    share_facts();
    const Precision precision = defaults_.with_cache(
        precision_of(options_.compute.dtype, ctx_.device, stored_type(*file_)));
    compute(read_model(file_, precision, ctx_.arena.source(), ctx_.threads, ranks_));
}

void PromptRun::share_facts() const {
    if (ranks_.alone()) return;
    expect_agreement(ranks_, options_.facts(file_->config(), defaults_, ctx_));
    share_template_time(ranks_);
}

void PromptRun::compute(const Model& model) {
    if (options_.prefill_only) return prefill(model);
    const bool waits = options_.batch.waits(ctx_, ranks_.size(), options_.input_is_file());
    if (options_.answers_at_once(options_.batch.sequences(ctx_, waits), model.config))
        return answer_at_once(model, waits);
    answer_one_by_one(model);
}

void PromptRun::prefill(const Model& model) {
    Prompt given;  // stays empty without one
    options_.for_each_prompt(prompts_, [&](Prompt prompt) { given = std::move(prompt); });
    gpt::prefill(ctx_, model, encoder_, std::move(given), defaults_.context, out_);
}

void PromptRun::use_prompts(const GenerateToolOptions::UsePrompt& use) {
    bool is_empty = options_.input_format == "text" && !options_.is_interactive();
    options_.for_each_prompt(prompts_, [&](Prompt prompt) {
        is_empty = is_empty && prompt.empty();
        use(std::move(prompt));
    });
    if (is_empty && ranks_.first())
        console_.warning("stdin: the prompt is empty, and so is the answer");
}

void PromptRun::answer_at_once(const Model& model, bool waits) {
    AnswerPlanner planner(model.config, *tokenizer_, defaults_);
    EngineOptions sizes = options_.batch.engine(ctx_, waits, defaults_.context);
    if (options_.is_one_by_one()) sizes.max_sequences = defaults_.samples;
    std::optional<Model> draft;
    if (const std::string& name = options_.batch.draft_model(); !name.empty())
        sizes.draft_model = &draft.emplace(read_draft_model(name, options_.choice, *tokenizer_,
                                                            options_.compute.dtype, defaults_, ctx_,
                                                            console_, ranks_));
    Engine engine(ctx_, model, tokenizer_->vocab_size(), sizes);
    PromptAnswers at_once(encoder_, planner, defaults_, answers_, console_);
    BatchAnswerer batch(at_once, planner, engine, options_.batch.answerer(ctx_));
    if (options_.is_one_by_one())
        return use_prompts([&](Prompt prompt) { batch.answer(std::move(prompt)); });
    if (!ranks_.alone()) {
        UnqueuedPrompts unqueued(prompts_);
        return batch.run(unqueued);
    }
    PromptQueue queue(prompts_, 64, interrupt_);
    batch.run(queue);
}

void PromptRun::answer_one_by_one(const Model& model) {
    Generator generate(ctx_, model, *tokenizer_, defaults_);
    PromptAnswers one_by_one(encoder_, generate.planner(), defaults_, answers_, console_);
    Answerer answer(one_by_one, generate, console_);
    if (!options_.from_cache.empty())
        return with_prompt_of(options_.from_cache, in_, ctx_, model, *tokenizer_,
                              [&](PromptCacheReader& reader, Prompt prompt) {
                                  generate.go_on_from(reader);
                                  answer(std::move(prompt));
                              });
    use_prompts([&](Prompt prompt) { answer(std::move(prompt)); });
}

}  // namespace hark::gpt
