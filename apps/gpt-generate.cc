// gpt-generate: prompts on stdin -> their continuations, token by token, by a GPT-2 model.
#include <unistd.h>

#include <algorithm>

#include "core/io.h"
#include "core/models.h"
#include "gpt/generate.h"
#include "gpt/model_file.h"
#include "gpt/prompts.h"

using namespace hark;

namespace {

constexpr const char* kSummary = "Continues a text with a GPT-2 model.";
constexpr const char* kDescription =
    R"(All of stdin is one prompt, without the line ends at its end; the answer is written as it
comes, with a newline at its end. With --lines every line is a prompt and its answer one line,
line ends inside it written as spaces. With --jsonl every line is an object with `prompt` or
`text`, as whisper-transcribe writes them, and so is every answer: prompt, text, tokens,
finish_reason (end_of_text, stop, length, empty_prompt). An empty prompt has an empty answer.
A prompt longer than the model's context keeps its end.)";

struct Options {
    std::string model, vocab, prompt;
    bool lines = false, jsonl = false, echo = false, logprobs = false;
    gpt::GenerateOptions generate;
    ComputeOptions compute;

    void flags(Flags& flags) {
        flags.add_name("model", model,
                       "NAME|DIR|FILE `demo`, or another model by its name; with a '/' in it, the "
                       "directory of a Hugging Face GPT-2 model, a GGUF file or llm.c's");
        flags.add_name(
            "vocab", vocab,
            "FILE|DIR a vocabulary for a model that carries none, as llm.c's: a tiktoken rank "
            "file, llm.c's tokenizer.bin, a tokenizer.json or its directory, a GGUF file");
        flags.add("prompt", prompt,
                  "TEMPLATE whose {} the input replaces; without {} it is the whole prompt, and "
                  "stdin is not read");
        flags.add_switch("lines", lines, "every line of stdin is a prompt");
        flags.add_switch("jsonl", jsonl, "every line of stdin is a JSON object");
        flags.add_switch("echo", echo, "write the prompt ahead of its answer");
        flags.add_switch("logprobs", logprobs,
                         "with --jsonl: each token's log-probability under the model");
        generate.flags(flags);
        compute.flags(flags);
    }

    gpt::PromptFormat format() const {
        return jsonl   ? gpt::PromptFormat::jsonl
               : lines ? gpt::PromptFormat::lines
                       : gpt::PromptFormat::whole;
    }
    bool prompt_is_whole() const { return !prompt.empty() && prompt.find("{}") == prompt.npos; }

    void check() const {
        generate.check();
        require_usage(!(lines && jsonl), "--lines and --jsonl exclude each other");
        require_usage(!logprobs || jsonl, "--logprobs needs --jsonl");
        require_usage(!(echo && jsonl), "--echo and --jsonl exclude each other: `prompt` is there");
        if (!prompt_is_whole()) return require_piped_stdin("a prompt");
        require_usage(!lines && !jsonl, "--prompt: expected {} where the input of --lines or ",
                      "--jsonl belongs, found none");
    }
};

// Writes the answers of one run in the format that was asked for.
class Answers {
  public:
    Answers(const Options& options, Console& console, ByteWriter& out)
        : options_(options), console_(console), out_(out) {}

    void begin(const gpt::Prompt& prompt, int64_t dropped) {
        if (dropped > 0)
            console_.warning(concat("the prompt is longer than the model's context: its first ",
                                    dropped, " tokens are left out"));
        if (options_.echo) piece(prompt.text);
    }
    void piece(std::string_view text) {
        if (options_.jsonl) return;
        std::string line(text);
        if (options_.lines)
            std::replace_if(
                line.begin(), line.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
        out_.write(line);
        out_.flush();
        at_line_start_ = line.ends_with('\n');
    }
    void end(const gpt::Prompt& prompt, const gpt::Generated& answer) {
        if (options_.jsonl)
            out_.write(gpt::json_line(prompt, answer, options_.logprobs));
        else if (options_.lines || (!prompt.text.empty() && !at_line_start_))
            out_.write("\n");
        out_.flush();
        if (!prompt.error.empty()) console_.error(prompt.error);
        if (answer.finish == gpt::Finish::context_full)
            console_.warning("the model's context is full: the text ends here");
    }

  private:
    const Options& options_;
    Console& console_;
    ByteWriter& out_;
    bool at_line_start_ = false;
};

void run(const Options& options, Console& console) {
    options.check();
    Context ctx = options.compute.context(console);
    if (console.verbose)
        ctx.on_stage = [&](auto& name, auto& shape, double ms) { console.stage(name, shape, ms); };
    const std::unique_ptr<gpt::ModelFile> file = gpt::open_model(find_model(options.model, "gpt"));
    const Bpe bpe = options.vocab.empty() ? file->tokenizer() : Bpe::load(options.vocab);
    const gpt::Model model = gpt::read_model(file->tensors(), file->config(),
                                             precision_of(options.compute.dtype, ctx.device),
                                             ctx.arena.source(), ctx.threads);
    gpt::Generator generate(ctx, model, bpe, options.generate);

    ByteReader in(STDIN_FILENO, "stdin");
    ByteWriter out(STDOUT_FILENO, "stdout");
    gpt::PromptReader prompts(in, options.format(), options.prompt);
    Answers answers(options, console, out);
    uint64_t index = 0;
    const auto answer = [&](const gpt::Prompt& prompt) {
        gpt::Generated answer;
        gpt::Generator::Listener listener;
        listener.begin = [&](int64_t dropped) { answers.begin(prompt, dropped); };
        listener.text = [&](std::string_view text) { answers.piece(text); };
        if (!prompt.text.empty()) answer = generate(prompt.text, index++, listener);
        answers.end(prompt, answer);
    };
    if (options.prompt_is_whole()) return answer({options.prompt});
    while (const auto prompt = prompts.next()) answer(*prompt);
}

}  // namespace

int main(int argc, char** argv) {
    return tool_main<Options>(
        {.name = "gpt-generate", .summary = kSummary, .description = kDescription, .traces = true},
        argc, argv, run);
}
