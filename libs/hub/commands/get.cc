#include "hub/get_model.h"

#include <iomanip>
#include <iostream>

#include "core/cli/progress.h"
#include "core/models/published_models.h"
#include "hub/commands/commands.h"
#include "hub/describe.h"
#include "hub/installed.h"
#include "hub/model_handle.h"

namespace hark::models {
namespace {

namespace fs = std::filesystem;

struct GetOptions {
    std::vector<std::string> names;
    std::string from;
    bool list = false;

    void flags(Flags& flags) {
        flags.positional("NAME", names, "a name of --list, or OWNER/REPO[@REVISION][:FILE or TYPE]",
                         Completes::published_model);
        flags.add_switch("list", list, "show the published models and their sizes").essential();
        flags.add_name("from", from, "URL server to download from")
            .essential()
            .details(
                "Without it $HF_ENDPOINT, else https://huggingface.co. A mirror with Hugging "
                "Face's paths: URL/openai/whisper-tiny/resolve/main/FILE. Files are checked "
                "against the checksums that this server states. The user's token is not sent "
                "to a server given here.");
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

void run_get(const GetOptions& options, Console& console) {
    if (options.list) {
        require_usage(options.names.empty(), "--list takes no NAME");
        std::cout << published_table();
        return;
    }
    const WantedModel model = wanted_model(only_model(options.names));
    const Server server = hub_server(options.from);
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
        get_model(model, server, folder, downloader, [&](const DownloadSize& size) {
            std::string about =
                concat(model.installed, ": ", size.files, size.files == 1 ? " file, " : " files, ",
                       megabytes(size.bytes), ", from ", server.url);
            if (!size.commit.empty())
                about += concat(", commit ", size.commit, ", licence ",
                                size.license.empty() ? "not stated" : size.license);
            console.warning(about);
        });
    warn_of_unchecked(downloader.unchecked(), console);
    const std::string kind = open_any_model(path).kind();
    if (chosen_model(kind).empty()) {
        choose_model(kind, path);
        console.warning(concat(model.installed, " is the default ", kind, " model now"));
    }
    std::cout << path.string() << "\n";
}

}  // namespace

int get_command(int argc, char** argv) {
    static const std::string description =
        "The model is in $XDG_DATA_HOME/hark/models, else ~/.local/share/hark/models, once it is\n"
        "whole and checked. The same command continues a download that was interrupted. The\n"
        "first model of its kind becomes the default.\n\n"
        "Any repository is taken by OWNER/REPO: config.json, the tokenizer and the\n"
        "safetensors files of it. OWNER/REPO:Q4_K_M is the one GGUF file whose name has this\n"
        "type, OWNER/REPO:FILE the file itself, @REVISION a branch, tag or commit. The model's\n"
        "name is OWNER/REPO or OWNER/REPO:TYPE from then on. A gated repository needs a token\n"
        "of an account that has accepted its licence.\n\n" +
        published_table();
    const ToolHelp help = {
        .name = "hark-model get",
        .summary = "Downloads a model from Hugging Face and prints its path.",
        .description = description.c_str(),
        .examples =
            "# Whisper small: 967 MB\n"
            "hark model get small\n"
            "# a language model in 4 bits: one GGUF file of a repository\n"
            "hark model get modularai/Llama-3.1-8B-Instruct-GGUF:Q4_K_M\n"
            "# a folder of safetensors, of a branch\n"
            "hark model get Qwen/Qwen2.5-0.5B-Instruct@main\n"
            "# the published models and their sizes\n"
            "hark model get --list\n"
            "# from a mirror\n"
            "hark model get tiny.en --from https://mirror.example.org",
        .files =
            "~/.local/share/hark/models/KIND-NAME  a model of the list\n"
            "~/.local/share/hark/models/OWNER/REPO  a repository's model, with hark-model.json\n"
            "~/.local/share/hark/models/.KIND-NAME.part  a download that is not complete\n"
            "~/.cache/huggingface/token  the token, without $HF_TOKEN ($HF_TOKEN_PATH, $HF_HOME)",
        .shows_progress = true,
        .is_measured = true};
    return tool_main<GetOptions>(help, argc, argv, run_get);
}

}  // namespace hark::models
