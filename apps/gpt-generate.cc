// gpt-generate: prompts on stdin -> the text that a language model continues or answers them with.
//
//   stdin -> PromptRun -> stdout
#include "core/profile/run_counts.h"
#include "gpt/answers/generate_options.h"
#include "gpt/answers/prompt_run.h"
#include "kernels/comm/processes.h"

using namespace hark;

namespace {

void run(const gpt::GenerateToolOptions& options, Console& console) {
    options.check();
    with_links(options.gpus, console, [&](std::unique_ptr<Transport> links) {
        if (links) options.check_processes(links->size());
        Context ctx = context_of(options.gpus, options.compute, console, links.get());
        const std::unique_ptr<Communicator> ranks = make_communicator(ctx, std::move(links));
        gpt::PromptRun(options, console, ctx, *ranks).answer();
        note_model(options.choice.model, ctx.on_cuda() ? "cuda" : "cpu");
        add_memory("activations", static_cast<int64_t>(ctx.arena.peak()));
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
An empty prompt, or an empty input in place of {}, has an empty answer; without
--quiet a message says so if it is all of stdin. A prompt
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
    .is_measured = true,
};

}  // namespace

int main(int argc, char** argv) {
    return tool_main<gpt::GenerateToolOptions>(kHelp, argc, argv, run);
}
