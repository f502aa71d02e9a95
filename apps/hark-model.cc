// hark-model COMMAND: fetches, lists, chooses, describes, converts and verifies models.
#include <algorithm>
#include <iostream>
#include <optional>

#include "core/progress.h"
#include "kernels/backend.h"
#include "models/any_model.h"
#include "models/convert.h"
#include "models/describe.h"
#include "models/get_model.h"
#include "models/installed.h"
#include "models/verify.h"

namespace {

using namespace hark;
using namespace hark::models;

namespace fs = std::filesystem;

// The one NAME that a command takes.
const std::string& only(const std::vector<std::string>& names, const char* what) {
    require_usage(names.size() == 1, "expected ", what, ", found ", names.size(), " arguments");
    return names[0];
}

// --- get -----------------------------------------------------------------------------------------

struct GetOptions {
    static constexpr const char* kName = "hark-model get";
    static constexpr const char* kSummary =
        "Fetches a published model from Hugging Face to ~/.local/share/hark/models, checks it\n"
        "and prints where it is. What is broken off goes on with the same command.";

    std::vector<std::string> names;
    std::string from = kHuggingFace;

    void flags(Flags& flags) {
        static const std::string known = [] {
            std::string text = "one of";
            for (const PublishedModel& model : published_models()) text += concat(" ", model.name);
            return text;
        }();
        flags.positional("NAME", names, known.c_str());
        flags.add_name(
            "from", from,
            "URL of a mirror that has Hugging Face's paths: URL/openai/whisper-tiny/resolve/"
            "main/FILE");
    }
};

void run_get(const GetOptions& options, Console& console) {
    const PublishedModel& model = published_model(only(options.names, "the NAME of a model"));
    Progress progress(console);
    Downloader downloader({}, [&](const std::string& file, uint64_t done, uint64_t bytes) {
        progress.show(concat(file, ": ", megabytes(done), " of ", megabytes(bytes)));
    });
    const fs::path path = get_model(model, options.from, own_models(), downloader);
    std::string unchecked;
    for (const std::string& file : downloader.unchecked())
        unchecked += concat(unchecked.empty() ? "" : ", ", file);
    if (!unchecked.empty())
        console.warning(concat(unchecked, ": the server gave no checksum; not verified"));
    std::cout << path.string() << "\n";
}

// --- list ----------------------------------------------------------------------------------------

struct ListOptions {
    static constexpr const char* kName = "hark-model list";
    static constexpr const char* kSummary =
        "Lists the models that --model finds by their names; * marks the default of its kind.";

    std::vector<std::string> words;  // none is expected
    void flags(Flags& flags) { flags.positional("", words, ""); }
};

void run_list(const ListOptions& options, Console& console) {
    require_usage(options.words.empty(), "expected nothing but flags behind list, found '",
                  options.words.empty() ? "" : options.words[0], "'");
    std::cout << heading_of_models();
    for (const InstalledModel& installed : installed_models()) {
        try {
            std::cout << line_of(installed);
        } catch (const std::exception& why) {
            if (installed.certain) console.error(concat(installed.name, ": ", why.what()));
        }
    }
}

// --- use -----------------------------------------------------------------------------------------

struct UseOptions {
    static constexpr const char* kName = "hark-model use";
    static constexpr const char* kSummary =
        "Makes a model the default: what the tools of its kind take without --model.";

    std::vector<std::string> names;
    void flags(Flags& flags) {
        flags.positional("NAME|PATH", names, "a model as --model takes it");
    }
};

void run_use(const UseOptions& options, Console&) {
    const fs::path path = find_any_model(only(options.names, "the NAME or PATH of a model"));
    const AnyModel model = open_any_model(path);
    choose_model(model.kind(), path);
    std::cout << model.kind() << ": " << fs::canonical(path).string() << "\n";
}

// --- info ----------------------------------------------------------------------------------------

struct InfoOptions {
    static constexpr const char* kName = "hark-model info";
    static constexpr const char* kSummary =
        "Tells a model's format, shape, number of parameters, the types they are stored in, the\n"
        "memory that its weights take at each --dtype, its vocabulary, and, of Whisper, languages\n"
        "and the heads that word times are taken from.";

    std::vector<std::string> names;
    std::string format = "text";
    void flags(Flags& flags) {
        flags.positional("NAME|PATH", names, "a model as --model takes it");
        flags.add("format", format, {"text", "json"}, "of what is told");
    }
};

void run_info(const InfoOptions& options, Console&) {
    const fs::path path = find_any_model(only(options.names, "the NAME or PATH of a model"));
    const auto description = describe_model(open_any_model(path));
    std::cout << (options.format == "json"
                      ? description.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) +
                            "\n"
                      : as_text(description));
}

// --- convert -------------------------------------------------------------------------------------

struct RunConvertOptions {
    static constexpr const char* kName = "hark-model convert";
    static constexpr const char* kSummary =
        "Writes a model in another format or type: hf, a directory as Hugging Face's transformers\n"
        "reads it, or ggml, a file as whisper.cpp reads it. TO appears when it is whole.";

    std::vector<std::string> names;
    ConvertOptions convert;
    void flags(Flags& flags) {
        flags.positional("FROM TO", names, "a model as --model takes it, and where to write");
        flags.add("format", convert.format, {"hf", "ggml"},
                  "of what is written; without it ggml where TO ends in .bin, else hf");
        flags.add("dtype", convert.dtype,
                  "TYPE of the matrices: f32, f16 or bf16; in ggml f32, f16, q4_0, q4_1, q5_0, "
                  "q5_1 or q8_0");
        flags.add_name(
            "vocab", convert.vocab,
            "FILE|DIR vocabulary of a model whose file carries none: a tiktoken rank file, "
            "or a directory with Hugging Face's tokenizer files");
    }
};

void run_convert(const RunConvertOptions& options, Console& console) {
    require_usage(options.names.size() == 2, "expected FROM and TO, found ", options.names.size(),
                  " arguments");
    require_usage(!options.names[1].empty(), "expected a path TO, found an empty word");
    convert_model(find_any_model(options.names[0]), options.names[1], options.convert,
                  [&](const std::string& warning) { console.warning(warning); });
}

// --- verify --------------------------------------------------------------------------------------

struct VerifyOptions {
    static constexpr const char* kName = "hark-model verify";
    static constexpr const char* kSummary =
        "Reads every tensor of a model and says which one is missing, of another shape or holds a\n"
        "value that is not finite. With --reference it also transcribes recordings and prints the\n"
        "first word that differs in each, and the word error rate.";

    std::vector<std::string> names;
    std::string reference;
    std::optional<double> at_most;
    ComputeOptions compute;
    void flags(Flags& flags) {
        flags.positional("NAME|PATH [RECORDING...]", names,
                         "a model as --model takes it; with --reference, audio or video files");
        flags.add_name("reference", reference,
                       "FILE what is said in the recordings: lines of {\"source\", \"text\"}");
        flags.add("at-most", at_most,
                  "PERCENT of wrong words, after Whisper's normaliser for English, that is no "
                  "failure; 0 without it",
                  0, 1000);
        compute.flags(flags);
    }
};

void verify_tensors(const AnyModel& model, const fs::path& path, Console& console) {
    const TensorCheck check = check_tensors(model);
    for (const std::string& problem : check.problems) console.error(problem);
    std::cout << path.string() << ": " << check.tensors << " tensors of " << check.values
              << " values are there and finite\n";
}

void verify_transcripts(const VerifyOptions& options, const std::vector<Transcript>& references,
                        const std::vector<Transcript>& transcripts, Console& console) {
    const TranscriptCheck check = check_transcripts(references, transcripts);
    for (const std::string& problem : check.problems) console.error(problem);
    for (const std::string& line : check.lines) std::cout << line << "\n";
    const double at_most = options.at_most.value_or(0);
    if (check.percent.value_or(0) > at_most)
        console.error(concat(check.rate, ", expected at most ", at_most, "%"));
}

void run_verify(const VerifyOptions& options, Console& console) {
    require_usage(!options.names.empty(), "expected the NAME or PATH of a model");
    const std::vector<std::string> recordings(options.names.begin() + 1, options.names.end());
    require_usage(recordings.empty() == options.reference.empty(),
                  "expected --reference FILE and recordings together");
    require_usage(!options.at_most || !recordings.empty(),
                  "--at-most: expected --reference FILE and recordings with it");
    require_usage(options.compute.is_standard() || !recordings.empty(),
                  "--device, --dtype, --threads: expected --reference FILE and recordings with "
                  "them");
    for (auto one = recordings.begin(); one != recordings.end(); ++one)
        require_usage(std::count(recordings.begin(), one, *one) == 0, *one, ": given twice");
    const fs::path path = find_any_model(options.names[0]);
    const AnyModel model = open_any_model(path);
    require(recordings.empty() || model.whisper, path.string(),
            ": expected a Whisper model to transcribe with, found one of GPT-2");
    std::vector<Transcript> references;  // what cannot be compared is not worth hours of work
    if (!recordings.empty()) references = read_references(options.reference);
    verify_tensors(model, path, console);
    if (recordings.empty() || console.failed()) return;
    Context ctx = options.compute.context(console);
    const std::vector<Transcript> transcripts =
        transcribe_files(ctx, *model.whisper, options.compute.dtype, recordings);
    verify_transcripts(options, references, transcripts, console);
}

// --- the commands --------------------------------------------------------------------------------

constexpr const char* kSummary =
    "Fetches, lists, chooses, describes, converts and verifies models.";

template <class Options, void (*kRun)(const Options&, Console&)>
int command(int argc, char** argv) {
    return tool_main<Options>({.name = Options::kName,
                               .summary = Options::kSummary,
                               .shows_progress = std::is_same_v<Options, GetOptions>},
                              argc, argv, kRun);
}

constexpr Command kCommands[] = {
    {"get", "fetch a published model", command<GetOptions, run_get>},
    {"list", "list the installed models", command<ListOptions, run_list>},
    {"use", "make a model the default of its kind", command<UseOptions, run_use>},
    {"info", "show a model's shape, types and memory", command<InfoOptions, run_info>},
    {"convert", "write a model in another format or type", command<RunConvertOptions, run_convert>},
    {"verify", "read every tensor; with recordings, transcribe them",
     command<VerifyOptions, run_verify>}};

}  // namespace

int main(int argc, char** argv) {
    return commands_main({.name = "hark-model", .summary = kSummary}, kCommands, argc, argv);
}
