#include "hub/get_model.h"

#include <iomanip>
#include <iostream>

#include "core/progress.h"
#include "core/published_models.h"
#include "hub/commands/commands.h"
#include "hub/describe.h"
#include "hub/installed.h"

namespace hark::models {
namespace {

namespace fs = std::filesystem;

struct Options {
    std::vector<std::string> names;
    std::string from = kHuggingFace;
    bool list = false;

    void flags(Flags& flags) {
        flags.positional("NAME", names, "a published model: see --list",
                         Completes::published_model);
        flags.add_switch("list", list, "show the published models and their sizes").essential();
        flags.add_name("from", from, "URL server to download from")
            .essential()
            .details(
                "A mirror with Hugging Face's paths: URL/openai/whisper-tiny/resolve/main/"
                "FILE. Files are checked against the checksums that this server states.");
    }
};

// The models in lines of `NAME  SIZE  REPOSITORY`.
std::string published_table() {
    std::ostringstream out;
    out << std::left << std::setw(18) << "NAME" << std::right << std::setw(9) << "SIZE"
        << "  REPOSITORY\n";
    for (const PublishedModel& model : published_models())
        out << std::left << std::setw(18) << model.name << std::right << std::setw(6)
            << model.megabytes << " MB  " << model.repository << "\n";
    return out.str();
}

void warn_of_unchecked(const std::vector<std::string>& files, Console& console) {
    std::string names;
    for (const std::string& file : files) names += concat(names.empty() ? "" : ", ", file);
    if (!files.empty())
        console.warning(concat(names, ": the server gave no checksum; not verified"));
}

void run(const Options& options, Console& console) {
    if (options.list) {
        require_usage(options.names.empty(), "--list takes no NAME");
        std::cout << published_table();
        return;
    }
    const PublishedModel& model = published_model(only_model(options.names));
    const fs::path folder = own_models();
    Progress progress(console);
    Downloader downloader({}, [&](const std::string& file, uint64_t done, uint64_t bytes) {
        ProgressReport report;
        report.name = file;
        report.unit = ProgressReport::Unit::bytes;
        report.done = static_cast<double>(done);
        report.total = static_cast<double>(bytes);
        progress.show(report);
    });
    const fs::path path =
        get_model(model, options.from, folder, downloader, [&](size_t files, uint64_t bytes) {
            console.warning(concat(model.kind, "-", model.name, ": ", files, " files, ",
                                   megabytes(bytes), ", from ", options.from));
        });
    warn_of_unchecked(downloader.unchecked(), console);
    if (chosen_model(model.kind).empty()) {
        choose_model(model.kind, path);
        console.warning(
            concat(path.filename().string(), " is the default ", model.kind, " model now"));
    }
    std::cout << path.string() << "\n";
}

}  // namespace

int get_command(int argc, char** argv) {
    static const std::string description =
        "The model is in $XDG_DATA_HOME/hark/models, else ~/.local/share/hark/models, once it is\n"
        "whole and checked. The same command continues a download that was interrupted. The\n"
        "first model of its kind becomes the default.\n\n" +
        published_table();
    const ToolHelp help = {
        .name = "hark-model get",
        .summary = "Downloads a published model from Hugging Face and prints its path.",
        .description = description.c_str(),
        .examples =
            "# Whisper small: 967 MB\n"
            "hark model get small\n"
            "# the published models and their sizes\n"
            "hark model get --list\n"
            "# from a mirror\n"
            "hark model get tiny.en --from https://mirror.example.org",
        .files =
            "~/.local/share/hark/models/KIND-NAME  a model\n"
            "~/.local/share/hark/models/.KIND-NAME.part  a download that is not complete",
        .shows_progress = true};
    return tool_main<Options>(help, argc, argv, run);
}

}  // namespace hark::models
