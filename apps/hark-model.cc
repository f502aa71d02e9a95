// hark-model COMMAND: fetches, lists and chooses models.
#include <cstdio>
#include <iostream>

#include "core/progress.h"
#include "models/any_model.h"
#include "models/get_model.h"
#include "models/installed.h"

namespace {

using namespace hark;
using namespace hark::models;

namespace fs = std::filesystem;

// The one NAME that a command takes.
const std::string& only(const std::vector<std::string>& names, const char* what) {
    require_usage(names.size() == 1, "expected ", what, ", found ", names.size(), " arguments");
    return names[0];
}

std::string megabytes(uint64_t bytes) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f MB", static_cast<double>(bytes) / 1e6);
    return text;
}

// --- get -----------------------------------------------------------------------------------------

struct GetOptions {
    std::vector<std::string> names;
    std::string from = kHuggingFace;

    void flags(Flags& flags) {
        static const std::string known = [] {
            std::string text = "one of";
            for (const PublishedModel& model : published_models()) text += concat(" ", model.name);
            return text;
        }();
        flags.positional("NAME", names, known.c_str());
        flags.add("from", from,
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
    std::cout << get_model(model, options.from, own_models(), downloader).string() << "\n";
}

// --- list ----------------------------------------------------------------------------------------

struct ListOptions {
    void flags(Flags&) {}
};

uint64_t bytes_on_disk(const fs::path& path) {
    std::error_code failed;
    if (!fs::is_directory(path, failed)) return fs::file_size(path);
    uint64_t bytes = 0;
    for (const fs::directory_entry& file : fs::directory_iterator(path))
        if (file.is_regular_file(failed)) bytes += file.file_size();
    return bytes;
}

std::string shape_of(const AnyModel& model) {
    if (model.gpt) {
        const gpt::Config& c = model.gpt->config();
        return concat(c.n_layer, " layers of ", c.n_embd);
    }
    const whisper::Config& c = model.whisper->config();
    return concat(c.n_audio_layer, " + ", c.n_text_layer, " layers of ", c.n_text_state);
}

void run_list(const ListOptions&, Console& console) {
    std::printf("  %-24s %-8s %-13s %-24s %12s  %s\n", "NAME", "KIND", "FORMAT", "SHAPE", "SIZE",
                "PATH");
    for (const InstalledModel& installed : installed_models()) {
        try {
            const AnyModel model = open_any_model(installed.path);
            const bool chosen = fs::canonical(installed.path) == chosen_model(model.kind());
            std::printf("%c %-24s %-8s %-13s %-24s %12s  %s\n", chosen ? '*' : ' ',
                        installed.name.c_str(), model.kind(), model.format(),
                        shape_of(model).c_str(), megabytes(bytes_on_disk(installed.path)).c_str(),
                        installed.path.lexically_normal().c_str());
        } catch (const std::exception& why) {
            console.error(concat(installed.name, ": ", why.what()));
        }
    }
}

// --- use -----------------------------------------------------------------------------------------

struct UseOptions {
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

// --- the commands --------------------------------------------------------------------------------

constexpr const char* kSummary =
    "Fetches, lists and chooses models.\n"
    "\n"
    "  hark-model get tiny.en        fetches a published model\n"
    "  hark-model list               the models that --model finds; * is the default of its kind\n"
    "  hark-model use tiny.en        makes it what tools take without --model\n"
    "\n"
    "hark-model COMMAND --help tells the rest.";

struct NoCommand {
    std::vector<std::string> words;
    void flags(Flags& flags) {
        flags.positional("COMMAND...", words, "get, list or use, and what belongs to it");
    }
};

void run_none(const NoCommand& options, Console&) {
    require_usage(options.words.empty(), "expected the command get, list or use, found '",
                  options.words.empty() ? "" : options.words[0], "'");
    throw UsageError("expected a command: get, list or use");
}

template <class Options>
int command(const char* name, const char* summary, int argc, char** argv,
            void (*run)(const Options&, Console&)) {
    return tool_main<Options>(name, summary, argc - 1, argv + 1, run);
}

}  // namespace

int main(int argc, char** argv) {
    const std::string name = argc > 1 ? argv[1] : "";
    if (name == "get")
        return command<GetOptions>(
            "hark-model get",
            "Fetches a published model from Hugging Face to ~/.local/share/hark/models, checks it\n"
            "and prints where it is. What is broken off goes on with the same command.",
            argc, argv, run_get);
    if (name == "list")
        return command<ListOptions>("hark-model list",
                                    "Lists the models that --model finds by their names; * marks "
                                    "the default of its kind.",
                                    argc, argv, run_list);
    if (name == "use")
        return command<UseOptions>("hark-model use",
                                   "Makes a model the default: what the tools of its kind take "
                                   "without --model.",
                                   argc, argv, run_use);
    return tool_main<NoCommand>("hark-model", kSummary, argc, argv, run_none);
}
