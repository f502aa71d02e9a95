// gpt-generate: prompts on stdin -> the text that a language model continues or answers them with.
//
//   stdin -> PromptReader -> PromptEncoder -> Generator -> AnswerWriter -> stdout
#include <unistd.h>

#include <chrono>

#include "core/models.h"
#include "gpt/engine/answer_writer.h"
#include "gpt/engine/generate_options.h"
#include "gpt/families/model_file.h"

using namespace hark;

namespace {

void run(const gpt::GenerateToolOptions& options, Console& console) {
    options.check();
    Context ctx = options.compute.context(console);
    if (console.tracing)
        ctx.on_stage = [&](auto& name, auto& shape, double ms) { console.trace(name, shape, ms); };
    const std::shared_ptr<gpt::ModelFile> file = gpt::open_model(find_model(options.model, "gpt"));
    const std::shared_ptr<const Tokenizer> tokenizer =
        options.tokenizer.empty() ? file->tokenizer() : Tokenizer::load(options.tokenizer);
    const gpt::PromptEncoder encoder(*file, *tokenizer, options.chat);
    ByteReader in(STDIN_FILENO, "stdin");
    ByteWriter out(STDOUT_FILENO, "stdout");
    gpt::PromptReader prompts(in, options.prompt_format(), options.prompt_template(),
                              options.chat.chat);
    gpt::AnswerWriter answers(options.answers(), *tokenizer, console, out);
    if (options.show_prompt)
        return options.for_each_prompt(
            prompts, [&](gpt::Prompt prompt) { answers.show(prompt, encoder.text(prompt)); });

    const gpt::GenerateOptions defaults = options.generate.options(file->sampling_defaults());
    const Precision precision = defaults.with_cache(
        precision_of(options.compute.dtype, ctx.device, gpt::stored_type(*file)));
    const gpt::Model model = gpt::read_model(file, precision, ctx.arena.source(), ctx.threads);
    gpt::Generator generate(ctx, model, *tokenizer, defaults);
    uint64_t index = 0;
    options.for_each_prompt(prompts, [&](gpt::Prompt prompt) {
        const std::vector<int32_t> ids = encoder.ids(prompt);
        gpt::GenerateOptions own = prompt.settings.over(defaults, index);
        const auto seed = static_cast<uint64_t>(own.seed);
        const std::string too_long = generate.why_too_long(ids.size(), own.max_tokens);
        if (!too_long.empty()) prompt.fail("context_length_exceeded", too_long);
        for (int64_t sample = 0; sample < own.samples && prompt.error.empty(); ++sample) {
            own.seed = static_cast<int64_t>(gpt::sample_seed(seed, sample));
            gpt::Completion answer;
            answers.begin(prompt);
            const auto begin = std::chrono::steady_clock::now();
            if (!ids.empty())
                answer = generate(ids, own, [&](std::string_view text) { answers.text(text); });
            if (!answer.error.empty()) prompt.fail("model_error", answer.error);
            if (prompt.error.empty()) answers.end(prompt, sample, answer, own);
            const std::chrono::duration<double, std::milli> took =
                std::chrono::steady_clock::now() - begin;
            console.stage("answer", concat(answer.tokens.size(), " tokens"), took.count());
        }
        if (!prompt.error.empty()) answers.fail(prompt);
        if (!ids.empty()) ++index;
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
An empty prompt has an empty answer. A prompt that does not fit the context with
its answer is an error. A prompt, or a line, has 64 MiB at most.)",
    .examples = R"(# Continue a sentence with the demonstration model
gpt-generate -m demo -p 'Once upon a time'
# Ask a model that was trained for chats about a text
gpt-generate -m ./Qwen2.5-0.5B-Instruct --chat -p 'Summarise:' < talk.txt
# Answer each line, the same way each time
gpt-generate -m demo --input-format lines --temperature 0 < prompts.txt)",
    .traces = true,
};

}  // namespace

int main(int argc, char** argv) {
    return tool_main<gpt::GenerateToolOptions>(kHelp, argc, argv, run);
}
