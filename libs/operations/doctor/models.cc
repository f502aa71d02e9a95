#include "operations/doctor/models.h"

#include "core/error.h"
#include "core/models/published_models.h"
#include "hub/installed.h"
#include "hub/model_handle.h"
#include "hub/model_record.h"

namespace hark::doctor {
namespace {

namespace fs = std::filesystem;

// Throws Error naming a file of the model's record that is missing or of another size.
void check_sizes(const fs::path& model) {
    const std::optional<models::ModelRecord> record = models::read_record(model);
    if (!record) return;
    const fs::path folder = fs::is_directory(model) ? model : model.parent_path();
    for (const models::RecordedFile& file : record->files) {
        std::error_code failed;
        const fs::path path = folder / file.name;
        const uintmax_t bytes = fs::file_size(path, failed);
        require(!failed, path.string(), ": ", failed.message());
        require(bytes == file.bytes, path.string(), ": ", bytes, " bytes, the download had ",
                file.bytes);
    }
}

void keep_largest(const fs::path& model, fs::path& largest) {
    std::error_code failed;
    const auto bytes = [&](const fs::path& path) {
        const uintmax_t size = fs::file_size(path, failed);
        return failed ? 0 : size;
    };
    const auto consider = [&](const fs::path& path) {
        if (largest.empty() || bytes(path) > bytes(largest)) largest = path;
    };
    if (!fs::is_directory(model, failed)) return consider(model);
    for (fs::directory_iterator entry(model, failed), end; !failed && entry != end;
         entry.increment(failed))
        if (fs::is_regular_file(entry->path(), failed)) consider(entry->path());
}

// The unfinished downloads of a folder and of its OWNER folders (hub/part_directory.h).
void add_incomplete(const fs::path& folder, const std::string& owner,
                    std::vector<std::string>& names) {
    constexpr std::string_view kEnd = ".part";
    std::error_code failed;
    for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end;
         entry.increment(failed)) {
        const std::string name = entry->path().filename().string();
        std::error_code unreadable;
        if (!fs::is_directory(entry->symlink_status(unreadable))) continue;
        if (name.starts_with('.') && name.ends_with(kEnd))
            names.push_back(owner + name.substr(1, name.size() - 1 - kEnd.size()));
        else if (owner.empty() && !fs::exists(entry->path() / "config.json", unreadable))
            add_incomplete(entry->path(), name + "/", names);
    }
}

// What brings a broken model back. A download is not repeated while its folder exists.
std::string replacement_of(const std::string& name) {
    const bool published = find_published_model(name) || name.find('/') != name.npos;
    return concat(
        "hark model rm ", name,
        published ? concat(" && hark model get ", name) : ", then copy or convert it once more");
}

bool is_demonstration(const std::string& name) { return name.ends_with("-demo"); }

}  // namespace

ModelsReading read_models() {
    ModelsReading reading;
    for (const InstalledModel& installed : models::installed_and_defaults()) {
        ModelReading model{installed.name, installed.path, ""};
        try {
            const models::ModelHandle opened = models::open_any_model(installed.path);
            check_sizes(installed.path);
            // A single file may have its vocabulary from elsewhere.
            if (fs::is_directory(installed.path)) models::check_tokenizer(opened);
            keep_largest(installed.path, reading.largest);
        } catch (const std::exception& why) {
            if (!installed.certain) continue;  // a file that may be anything
            model.problem = failure_text(why);
        }
        reading.models.push_back(model);
    }
    if (user_models().empty()) return reading;
    for (const char* kind : {"whisper", "gpt"}) {
        std::error_code failed;
        const fs::path link = default_link(kind);
        if (!fs::is_symlink(link, failed)) continue;
        ++reading.defaults;
        if (!fs::exists(link, failed)) reading.dangling.push_back(link);
    }
    add_incomplete(user_models(), "", reading.incomplete);
    return reading;
}

void judge_models(const ModelsReading& reading, const Say& say) {
    size_t whole = 0, real = 0;
    for (const ModelReading& model : reading.models) {
        whole += model.problem.empty();
        real += !is_demonstration(model.name);
    }
    const size_t count = reading.models.size();
    const std::string of_them =
        real == count ? ""
                      : concat(" (", count - real,
                               count - real == 1 ? " demonstration)" : " demonstrations)");
    say({"models.installed", real > 0 ? Status::ok : Status::warn,
         count == 0 ? "none" : concat(count, count == 1 ? " model" : " models", of_them),
         real > 0 ? "" : "hark model get small, and for texts hark model get OWNER/NAME",
         static_cast<double>(count), "models"});
    for (const ModelReading& model : reading.models)
        if (!model.problem.empty())
            say({"models.whole", Status::fail, concat(model.name, ": ", model.problem),
                 replacement_of(model.name)});
    if (whole == count)
        say({"models.whole", count > 0 ? Status::ok : Status::skip,
             count > 0
                 ? concat(count, count == 1 ? " model opens" : " models open", ", sizes match")
                 : "no model is installed"});
    for (const fs::path& link : reading.dangling)
        say({"models.default", Status::fail,
             concat(link.string(), " leads to a model that does not exist"),
             "hark model use MODEL"});
    if (reading.dangling.empty())
        say({"models.default", Status::ok,
             reading.defaults > 0 ? "each default that is set exists" : "no default is set"});
    for (const std::string& name : reading.incomplete)
        say({"models.incomplete", Status::warn, concat(name, ": its download has not ended"),
             concat("hark model get ", name, ", which continues it")});
    if (reading.incomplete.empty())
        say({"models.incomplete", Status::ok, "no interrupted downloads"});
}

}  // namespace hark::doctor
