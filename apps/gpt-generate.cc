// gpt-generate: prompts on stdin -> the text that a language model continues or answers them with.
//
//   stdin -> PromptReader -> PromptAnswers -> Generator, or Engine for many -> AnswerWriter ->
//   stdout
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
#include "gpt/answers/generate_options.h"
#include "gpt/answers/prefill.h"
#include "kernels/comm/processes.h"
#include "kernels/comm/shared_reader.h"
#include "text/chat_template.h"

using namespace hark;

namespace {

// The time that chat templates write is the first process's, at its start.
void share_template_time(Communicator& ranks) {
    std::tm now = template_time();
    std::time_t seconds = ::timegm(&now);
    ranks.share(std::as_writable_bytes(std::span(&seconds, 1)), 0);
    ::setenv("SOURCE_DATE_EPOCH", std::to_string(seconds).c_str(), 1);
}

// One of several processes writes; all of them compute the same texts.
void answer_prompts(const gpt::GenerateToolOptions& options, Console& console, Context& ctx,
                    Communicator& ranks) {
    options.batch.apply_to(ctx);
    require(ranks.size() <= 2 || !ctx.on_cuda() || !ctx.has_independent_rows(),
            "--batch-invariant takes two GPUs at most (got ", ranks.size(),
            "): with more the order of a sum depends on how many rows are computed");
    if (console.tracing)
        ctx.on_stage = [&](auto& name, auto& shape, double ms) { console.trace(name, shape, ms); };
    const std::shared_ptr<gpt::ModelFile> file = options.choice.open(console);
    const std::shared_ptr<const Tokenizer> tokenizer = options.choice.tokenizer_of(*file);
    gpt::PromptEncoder encoder(*file, *tokenizer, options.chat_options());
    Interrupt interrupt;
    SharedReader in(STDIN_FILENO, "stdin", ranks, &interrupt);
    ByteWriter out(ranks.first() ? STDOUT_FILENO : ::open("/dev/null", O_WRONLY | O_CLOEXEC),
                   "stdout");
    gpt::PromptReader prompts(in, options.prompt_format(), options.prompt_template(),
                              options.chat.chat);
    gpt::AnswerWriter answers(options.answers(encoder.markers()), *tokenizer, console, out);
    if (options.show_prompt)
        return options.for_each_prompt(
            prompts, [&](gpt::Prompt prompt) { answers.show(prompt, encoder.text(prompt)); });

    gpt::GenerateOptions defaults = options.generate.options(file->sampling_defaults());
    if (encoder.markers()) defaults.shown = gpt::marker_tokens(*encoder.markers(), *tokenizer);
    if (!ranks.alone()) {
        expect_agreement(ranks, options.facts(file->config(), defaults, ctx));
        share_template_time(ranks);
    }
    const Precision precision = defaults.with_cache(
        precision_of(options.compute.dtype, ctx.device, gpt::stored_type(*file)));
    const gpt::Model model =
        gpt::read_model(file, precision, ctx.arena.source(), ctx.threads, ranks);
    if (options.prefill_only) {
        gpt::Prompt given;  // stays empty without one
        options.for_each_prompt(prompts, [&](gpt::Prompt prompt) { given = std::move(prompt); });
        return gpt::prefill(ctx, model, encoder, std::move(given), defaults.context, out);
    }
    const bool waits = options.batch.waits(ctx, ranks.size(), options.input_is_file());
    if (options.answers_at_once(options.batch.sequences(ctx, waits), model.config)) {
        gpt::AnswerPlanner planner(model.config, *tokenizer, defaults);
        gpt::EngineOptions sizes = options.batch.engine(ctx, waits, defaults.context);
        if (options.is_one_by_one()) sizes.max_sequences = defaults.samples;
        std::optional<gpt::Model> draft;
        if (const std::string& name = options.batch.draft_model(); !name.empty())
            sizes.draft_model = &draft.emplace(
                gpt::read_draft_model(name, options.choice, *tokenizer, options.compute.dtype,
                                      defaults, ctx, console, ranks));
        gpt::Engine engine(ctx, model, tokenizer->vocab_size(), sizes);
        gpt::PromptAnswers at_once(encoder, planner, defaults, answers, console);
        gpt::BatchAnswerer batch(at_once, planner, engine, options.batch.answerer(ctx));
        if (options.is_one_by_one())
            return options.for_each_prompt(
                prompts, [&](gpt::Prompt prompt) { batch.answer(std::move(prompt)); });
        if (!ranks.alone()) {
            gpt::UnqueuedPrompts unqueued(prompts);
            return batch.run(unqueued);
        }
        gpt::PromptQueue queue(prompts, 64, interrupt);
        return batch.run(queue);
    }
    gpt::Generator generate(ctx, model, *tokenizer, defaults);
    gpt::PromptAnswers one_by_one(encoder, generate.planner(), defaults, answers, console);
    gpt::Answerer answer(one_by_one, generate, console);
    if (!options.from_cache.empty())
        return gpt::with_prompt_of(options.from_cache, in, ctx, model, *tokenizer,
                                   [&](gpt::PromptCacheReader& reader, gpt::Prompt prompt) {
                                       generate.go_on_from(reader);
                                       answer(std::move(prompt));
                                   });
    options.for_each_prompt(prompts, [&](gpt::Prompt prompt) { answer(std::move(prompt)); });
}

void run(const gpt::GenerateToolOptions& options, Console& console) {
    options.check();
    with_links(options.gpus, console, [&](std::unique_ptr<Transport> links) {
        if (links) options.check_processes(links->size());
        Context ctx = context_of(options.gpus, options.compute, console, links.get());
        const std::unique_ptr<Communicator> ranks = make_communicator(ctx, std::move(links));
        answer_prompts(options, console, ctx, *ranks);
        ranks->finish();
    });
}

constexpr ToolHelp kHelp = {
    .name = "gpt-generate",
    .summary = "Continues a text, or answers in a chat, with a language model, on stdout.",
    .description =
        R"(All of stdin is one prompt, without the line ends at its end. The answer ends
with a line end. With --input-format lines each line is a prompt, and its answer
is one line: line ends inside it become spaces. With --input-format jsonl each
line is an object with `prompt`, or with `text` as whisper-transcribe writes
them; next to `prompt` it may have sampling fields under OpenAI's names.
--format jsonl writes an object per answer: id, index, text, finish_reason
(stop, length), counts of tokens and times; docs/formats.md has all fields.
With --chat the model's own template makes the prompt: a message of the user, or
the `messages` of a JSON line. Special tokens in messages are text.
An empty prompt, or an empty input in place of {}, has an empty answer. A prompt
that does not fit the context with its answer is an error. A prompt, or a line,
has 64 MiB at most.)",
    .examples = R"(# Continue a sentence with the demonstration model
gpt-generate -m demo -p 'Once upon a time'
# Ask a model that was trained for chats about a text
gpt-generate -m ./Qwen2.5-0.5B-Instruct --chat -p 'Summarise:' < talk.txt
# Answer with a value that fits a JSON schema
gpt-generate -m demo --json-schema schema.json -p 'A person:'
# Answer each line, the same way each time
gpt-generate -m demo --input-format lines --temperature 0 < prompts.txt)",
    .traces = true,
};

}  // namespace

int main(int argc, char** argv) {
    return tool_main<gpt::GenerateToolOptions>(kHelp, argc, argv, run);
}
