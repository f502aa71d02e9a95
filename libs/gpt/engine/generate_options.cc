#include "gpt/engine/generate_options.h"

#include <unistd.h>

namespace hark::gpt {

void GenerateToolOptions::flags(Flags& flags) {
    flags.reject_arguments([](const std::string& arguments, const std::string&) {
        return concat("takes no arguments (got ", arguments, "); give the prompt with -p ",
                      arguments);
    });
    flags.section("Model");
    flags.add_name("model,m", model, "MODEL name, folder or file of a language model")
        .essential()
        .variable("HARK_GPT_MODEL")
        .completes(Completes::model)
        .details(
            "`demo`, another installed name, a Hugging Face folder, a GGUF file or llm.c's "
            ".bin file. A path begins with / or ./");
    flags.add_name("tokenizer", tokenizer, "PATH tokenizer, for a model that carries none")
        .own_variable()
        .completes(Completes::file)
        .details(
            "A tiktoken rank file, llm.c's tokenizer.bin, a tokenizer.json or its folder, or "
            "a GGUF file.");
    chat.flags(flags);
    flags.section("Input and output");
    flags.add("prompt,p", prompt, "TEXT prompt; {} in it is replaced by stdin")
        .essential()
        .details(
            "Without {} it is the whole prompt, and stdin is not read. In a chat, stdin follows it "
            "after an empty line, unless stdin is a terminal; < /dev/null leaves stdin alone.");
    flags.add("input-format", input_format, {"text", "lines", "jsonl"}, "FORM format of stdin")
        .essential()
        .own_variable()
        .details(
            "text: all of stdin is one prompt; lines: one per line; jsonl: an object with "
            "`prompt` or `text` per line, with --chat also `messages`.");
    flags.add("format,f", format, {"text", "jsonl"}, "FORM format of the answers")
        .essential()
        .own_variable()
        .details("The default is jsonl for jsonl input, else text.");
    flags.add_switch("echo", echo, "write the prompt before its answer");
    flags.add_switch("show-prompt", show_prompt,
                     "write what the model would read, and run nothing");
    flags.add_switch("stats", stats, "write a table of counts and times to stderr");
    generate.flags(flags);
    compute.flags(flags);
}

bool GenerateToolOptions::prompt_is_whole() const {
    if (prompt.empty() || prompt.find("{}") != prompt.npos) return false;
    return !chat.chat || input_format != "text" || ::isatty(STDIN_FILENO);
}

std::string GenerateToolOptions::prompt_template() const {
    const bool has_place = prompt.empty() || prompt.find("{}") != prompt.npos;
    return has_place ? prompt : prompt + "\n\n{}";
}

PromptFormat GenerateToolOptions::prompt_format() const {
    return input_format == "jsonl"   ? PromptFormat::jsonl
           : input_format == "lines" ? PromptFormat::lines
                                     : PromptFormat::whole;
}

AnswerOptions GenerateToolOptions::answers() const {
    return {
        .jsonl = writes_jsonl(), .one_line = input_format != "text", .echo = echo, .stats = stats};
}

Prompt GenerateToolOptions::given_prompt() const {
    Prompt given;
    given.text = prompt;
    given.metadata = R"({"id":0})";
    return given;
}

void GenerateToolOptions::check() const {
    generate.check();
    chat.check();
    require_usage(!generate.wants_logprobs() || writes_jsonl(), "--logprobs needs --format jsonl");
    require_usage(!echo || !writes_jsonl(), "--echo is for --format text");
    if (!prompt_is_whole())
        return require_piped_stdin("a prompt", "gpt-generate -p 'Once upon a time'");
    require_usage(input_format == "text", "--prompt: no {} for the input of --input-format ",
                  input_format, " (got '", prompt, "')");
}

}  // namespace hark::gpt
