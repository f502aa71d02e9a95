#include "gpt/answers/generate_options.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "core/cli/ending_signal.h"
#include "core/files/fingerprint.h"
#include "gpt/chat/line_editor.h"
#include "gpt/families/config.h"
#include "kernels/comm/processes.h"
#include "kernels/cpu/cpu.h"

namespace hark::gpt {
namespace {

// Of the words of this process's command, without the program's name.
std::string fingerprint_of_command() {
    std::ifstream in("/proc/self/cmdline", std::ios::binary);
    const std::string words(std::istreambuf_iterator<char>(in), {});
    const size_t first = std::min(words.find('\0'), words.size());
    Fingerprint of_words;
    of_words.add(words.data() + first, words.size() - first);
    return of_words.text();
}

}  // namespace

void GenerateToolOptions::flags(Flags& flags) {
    flags.reject_arguments([](const std::string& arguments, const std::string&) {
        return concat("takes no arguments (got ", arguments, "); give the prompt with -p ",
                      arguments);
    });
    choice.flags(flags);
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
    flags.add("extract", extract, {"code", "json"}, "PART part of each answer that is written")
        .own_variable()
        .shows_default("all")
        .details(
            "code: the first fenced code block, without its fences; json: the answer if it is one "
            "JSON value, else its first object or list. An answer without it is an error.");
    flags.add_switch("echo", echo, "write the prompt before its answer");
    flags.add_switch("show-prompt", show_prompt,
                     "write what the model would read, and run nothing");
    flags
        .add_switch("prefill-only", prefill_only,
                    "compute the prompt, and write its keys and values to stdout")
        .details(
            "A tensor stream, which --from-cache answers: in another process, on another "
            "machine, or later. What chooses the answer's tokens has no effect here.");
    flags.add_name("from-cache", from_cache, "FILE prompt of --prefill-only to answer; -: stdin")
        .own_variable()
        .completes(Completes::file)
        .details(
            "The answer is to the bit that of one process with the same flags. --chat says that "
            "the prompt was a chat's.");
    generate.flags(flags);
    batch.flags(flags);
    compute.flags(flags);
    flags.add("gpus", gpus, "N GPUs of this machine, one process each", 1, 64)
        .own_variable()
        .details(
            "Each has its share of the model: of the heads and of the MLPs' channels, which N "
            "divides. mpirun and srun start processes on several machines, or on CPUs.");
}

bool GenerateToolOptions::prompt_is_whole() const {
    if (prompt.empty() || prompt.find("{}") != prompt.npos) return false;
    return !chat.chat || input_format != "text" || ::isatty(STDIN_FILENO);
}

bool GenerateToolOptions::input_is_file() const {
    struct stat info {};
    return ::fstat(STDIN_FILENO, &info) == 0 && S_ISREG(info.st_mode);
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

AnswerOptions GenerateToolOptions::answers(const ReasoningMarkers* markers) const {
    return {.jsonl = writes_jsonl(),
            .one_line = input_format != "text",
            .echo = echo,
            .drafts = batch.drafts(),
            .parts = {markers, chat.where_reasoning(), extract_of(extract)}};
}

Prompt GenerateToolOptions::given_prompt(const std::string& text, int64_t id) const {
    Prompt given;
    given.text = text;
    given.metadata = concat(R"({"id":)", id, "}");
    return given;
}

bool GenerateToolOptions::is_interactive() const {
    return chat.chat && prompt.empty() && input_format == "text" && !show_prompt &&
           from_cache.empty() && ::isatty(STDIN_FILENO);
}

bool GenerateToolOptions::answers_at_once(int64_t sequences, const DecoderConfig& config) const {
    if (batch.drafts())
        require(!config.has_longrope(),
                "--prompt-lookup and --draft-model do not work with a model with longrope");
    return (batch.drafts() || (sequences > 1 && !is_one_by_one())) &&
           generate.prompt_cache().empty() && !config.has_longrope();
}

ChatOptions GenerateToolOptions::chat_options() const {
    ChatOptions options = chat;
    options.keeps_turns = is_conversation();
    return options;
}

void GenerateToolOptions::for_each_prompt(PromptReader& prompts, const UsePrompt& use) const {
    if (is_interactive()) return converse(use);
    if (prompt_is_whole()) return use(given_prompt(prompt, 0));
    bool any = false;
    while (const auto next = prompts.next()) use(*next), any = true;
    // In a chat, a stream that may follow the prompt may also be empty.
    if (!any && !prompt.empty() && prompt.find("{}") == prompt.npos) use(given_prompt(prompt, 0));
}

void GenerateToolOptions::converse(const UsePrompt& use) const {
    const InterruptFlag interrupt;
    LineEditor editor("> ");
    for (int64_t id = 0; const auto line = editor.next();) {
        clear_interrupt();
        if (!line->empty()) use(given_prompt(*line, id++));
    }
}

void GenerateToolOptions::check_conversation() const {
    if (chat.conversation.empty()) return;
    require_usage(input_format != "jsonl",
                  "--conversation is for --input-format text and lines: messages of jsonl are the "
                  "whole chat");
    require_usage(generate.samples() == 1,
                  "--conversation takes one answer per message (got "
                  "--n ",
                  generate.samples(), ")");
}

void GenerateToolOptions::check_halves() const {
    if (!prefill_only && from_cache.empty()) return;
    require_usage(!prefill_only || from_cache.empty(),
                  "--prefill-only and --from-cache exclude each other: they are two processes");
    const char* const flag = prefill_only ? "--prefill-only" : "--from-cache";
    const auto excludes = [&](bool given, const char* other) {
        require_usage(!given, flag, " does not work with ", other);
    };
    excludes(input_format != "text", "--input-format lines and jsonl: it takes one prompt");
    excludes(!chat.conversation.empty(), "--conversation");
    excludes(!generate.prompt_cache().empty(), "--prompt-cache");
    excludes(show_prompt, "--show-prompt");
    excludes(batch.drafts(), "--prompt-lookup and --draft-model");
    if (!prefill_only) {
        excludes(!prompt.empty(), "--prompt: the prompt is in the stream");
        excludes(!chat.system.empty() || !chat.arguments.empty(),
                 "--system and --template-arg: the prompt is in the stream");
        if (from_cache == "-")
            require_piped_stdin("a prompt's cache", "gpt-generate --from-cache FILE");
        return;
    }
    require_usage(!is_interactive(), "--prefill-only: expected a prompt through a pipe, or -p");
    excludes(echo, "--echo");
    excludes(!format.empty() || !extract.empty(), "--format and --extract: it writes no answer");
    require_not_terminal("a prompt's cache");
}

void GenerateToolOptions::check_processes(int64_t count) const {
    if (count == 1) return;
    const auto excludes = [&](bool given, const char* what) {
        require_usage(!given, what, " takes one process (got ", count, ")");
    };
    excludes(is_interactive(), "a chat on a terminal");
    excludes(!chat.conversation.empty(), "--conversation");
    excludes(prefill_only, "--prefill-only");
    excludes(!from_cache.empty(), "--from-cache");
    excludes(!generate.prompt_cache().empty(), "--prompt-cache");
}

std::string GenerateToolOptions::facts(const DecoderConfig& config, const GenerateOptions& defaults,
                                       const Context& ctx) const {
    // The order of a sum on the CPU depends on these, and so may the experts of a row.
    const std::string by =
        ctx.on_cuda() ? "" : concat(", ", cpu_kernels().name, " on ", ctx.threads, " threads");
    return concat("model ", config.family, " of ", config.n_layer, " x ", config.n_embd, ", ",
                  config.n_vocab, " tokens, --dtype ", compute.dtype, ", --kv-dtype ",
                  defaults.kv_dtype, ", --seed ", defaults.seed, ", --n ", defaults.samples,
                  ", --max-tokens ", defaults.max_tokens, ", --temperature ",
                  defaults.sampler.temperature, ", --context ", defaults.context, by, ", stdin ",
                  input_is_file()     ? "a file"
                  : prompt_is_whole() ? "whole"
                                      : "a stream",
                  ", all options ", fingerprint_of_command());
}

void GenerateToolOptions::check() const {
    check_gpus(gpus, compute);
    check_processes(gpus);
    generate.check();
    batch.check();
    chat.check();
    require_usage(!generate.wants_logprobs() || writes_jsonl(), "--logprobs needs --format jsonl");
    require_usage(!echo || !writes_jsonl(), "--echo is for --format text");
    require_usage(!echo || !chat.chat, "--echo is not for --chat; see --show-prompt");
    require_usage(!echo || extract.empty(), "--echo and --extract exclude each other");
    check_conversation();
    check_halves();
    require_usage(!batch.drafts() || generate.prompt_cache().empty(),
                  "--prompt-lookup and --draft-model do not work with --prompt-cache");
    if (is_interactive() || !from_cache.empty()) return;
    if (!prompt_is_whole())
        return require_piped_stdin("a prompt", "gpt-generate -p 'Once upon a time'");
    require_usage(input_format == "text", "--prompt: no {} for the input of --input-format ",
                  input_format, " (got '", prompt, "')");
}

}  // namespace hark::gpt
