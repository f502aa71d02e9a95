#include "hub/verify.h"

#include <algorithm>
#include <iostream>
#include <optional>

#include "core/models/models.h"
#include "hub/commands/commands.h"
#include "hub/model_handle.h"
#include "kernels/runtime/backend.h"

namespace hark::models {
namespace {

namespace fs = std::filesystem;

struct VerifyOptions {
    std::vector<std::string> names;
    std::string reference;
    std::optional<double> at_most;
    ComputeOptions compute;

    void flags(Flags& flags) {
        flags.positional("MODEL [RECORDING...]", names,
                         "a name or a path; with --reference, audio or video files");
        flags.section("Transcripts");
        flags.add_name("reference", reference, "FILE reference texts of the recordings")
            .essential()
            .details("Lines of JSON with the keys source and text, one for each recording.")
            .completes(Completes::file);
        flags
            .add("at-most", at_most,
                 "PERCENT share of wrong words that is no failure; without it 0", 0, 1000)
            .essential()
            .details("Words are compared after Whisper's normalizer for English.");
        flags.section("Machine");
        compute.flags(flags);
    }
    std::vector<std::string> recordings() const { return {names.begin() + 1, names.end()}; }
    void check() const {
        require_usage(!names.empty() && !names[0].empty(), "MODEL is required");
        const std::vector<std::string> given = recordings();
        require_usage(given.empty() || !reference.empty(), "recordings need --reference FILE");
        require_usage(!given.empty() || reference.empty(), "--reference needs recordings");
        require_usage(!at_most || !given.empty(),
                      "--at-most needs --reference FILE and recordings");
        require_usage(compute.is_standard() || !given.empty(),
                      "--device, --dtype and --threads need --reference FILE and recordings");
        for (auto one = given.begin(); one != given.end(); ++one)
            require_usage(std::count(given.begin(), one, *one) == 0, *one, ": given twice");
    }
};

void verify_tensors(const ModelHandle& model, const fs::path& path, Console& console) {
    const TensorCheck check = check_tensors(model);
    for (const std::string& problem : check.problems) console.error(problem);
    std::cout << path.string() << ": " << check.tensors << " tensors of " << check.values
              << " values are finite\n";
}

// Of a single file the vocabulary may be elsewhere.
void verify_tokenizer(const ModelHandle& model, const fs::path& path, Console& console) {
    if (!fs::is_directory(path)) return;
    try {
        check_tokenizer(model);
    } catch (const Error& why) {
        console.error(why.what());
    }
}

void verify_transcripts(const VerifyOptions& options, const std::vector<Transcript>& references,
                        const std::vector<Transcript>& transcripts, Console& console) {
    const TranscriptCheck check = check_transcripts(references, transcripts);
    for (const std::string& problem : check.problems) console.error(problem);
    for (const std::string& line : check.lines) std::cout << line << "\n";
    const double at_most = options.at_most.value_or(0);
    if (check.percent.value_or(0) > at_most)
        console.error(concat(check.rate, "; at most ", at_most, "% is allowed"));
}

// All that the name means; only a Whisper model takes recordings.
std::vector<fs::path> models_of(const VerifyOptions& options) {
    const std::vector<fs::path> found = find_models(options.names[0]);
    if (found.size() == 1 || options.recordings().empty()) return found;
    return {find_model(options.names[0], "whisper")};
}

void verify_model(const VerifyOptions& options, const fs::path& path, Console& console) {
    const std::vector<std::string> recordings = options.recordings();
    const ModelHandle model = open_any_model(path);
    require(recordings.empty() || model.whisper, path.string(),
            ": a GPT model cannot transcribe recordings");
    std::vector<Transcript> references;  // read first: a wrong file must not cost hours of work
    if (!recordings.empty()) references = read_references(options.reference);
    verify_tensors(model, path, console);
    verify_tokenizer(model, path, console);
    if (recordings.empty() || console.failed()) return;
    Context ctx = options.compute.context(console);
    const std::vector<Transcript> transcripts =
        transcribe_files(ctx, *model.whisper, options.compute.dtype, recordings);
    verify_transcripts(options, references, transcripts, console);
}

void run_verify(const VerifyOptions& options, Console& console) {
    options.check();
    for (const fs::path& path : models_of(options)) {
        try {
            verify_model(options, path, console);
        } catch (const Error& why) {
            console.error(why.what());
        }
    }
}

}  // namespace

int verify_command(int argc, char** argv) {
    const ToolHelp help = {
        .name = "hark-model verify",
        .summary = "Reads every tensor of a model; with recordings, compares transcripts too.",
        .description =
            "A tensor that is missing, of another shape or not finite is named, and what a\n"
            "folder's tokenizer lacks. A name that a Whisper and a GPT model have means both.\n"
            "With --reference the recordings are transcribed by the Whisper model; the first\n"
            "different word of each and the word error rate are printed.",
        .examples =
            "# reads all tensors\n"
            "hark model verify small\n"
            "# transcribes a recording and compares the words\n"
            "hark model verify small --reference reference.jsonl talk.wav\n"
            "# fails above 5% of wrong words\n"
            "hark model verify small --reference reference.jsonl --at-most 5 *.wav",
        .is_measured = true};
    return tool_main<VerifyOptions>(help, argc, argv, run_verify);
}

}  // namespace hark::models
