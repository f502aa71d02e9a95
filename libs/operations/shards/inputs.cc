#include "operations/shards/inputs.h"

#include <algorithm>
#include <map>

#include "core/ascii.h"
#include "core/error.h"
#include "core/files/files.h"
#include "core/profile/profile.h"
#include "core/ranges.h"
#include "text/lines.h"
#include "text/utf8.h"

namespace hark::shards {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxManifestBytes = size_t{4} << 30;

// The same as find_recordings of pipelines/recordings.sh; a test compares.
constexpr const char* kEndings[] = {".wav", ".mp3",  ".m4a",  ".mp4", ".m4v",  ".mov",
                                    ".mkv", ".webm", ".ogg",  ".oga", ".opus", ".flac",
                                    ".aac", ".aif",  ".aiff", ".wma", ".avi",  ".3gp"};

// Lines "KEY VALUE" of a file of Kaldi, in its order.
std::vector<std::pair<std::string, std::string>> kaldi_table(const fs::path& path) {
    std::vector<std::pair<std::string, std::string>> table;
    for_each_line(read_file(path, kMaxManifestBytes), [&](std::string_view line, size_t number) {
        const size_t space = line.find_first_of(" \t");
        if (line.empty()) return;
        require(is_valid_utf8(line), path.string(), ": line ", number, ": expected UTF-8");
        const size_t value = line.find_first_not_of(" \t", space);
        require(space != line.npos && space > 0 && value != line.npos, path.string(), ": line ",
                number, ": expected a key and a value");
        table.emplace_back(line.substr(0, space), line.substr(value));
    });
    return table;
}

std::map<std::string, std::string> kaldi_map(const fs::path& path) {
    std::map<std::string, std::string> values;
    if (!fs::exists(path)) return values;
    for (auto& [key, value] : kaldi_table(path))
        require(values.emplace(key, value).second, path.string(), ": ", key, ": comes twice");
    return values;
}

double kaldi_seconds(const std::string& text, const std::string& where) {
    size_t used = 0;
    double seconds = -1;
    try {
        seconds = std::stod(text, &used);
    } catch (const std::exception&) {
    }
    require(used == text.size() && seconds >= 0, where, ": expected seconds, found '", text, "'");
    return seconds;
}

// Adds what Kaldi's text and utt2spk say.
ManifestEntry kaldi_entry(nlohmann::ordered_json fields, const std::string& utterance,
                          const std::map<std::string, std::string>& texts,
                          const std::map<std::string, std::string>& speakers,
                          const std::string& where) {
    if (const auto text = texts.find(utterance); text != texts.end()) fields["text"] = text->second;
    if (const auto speaker = speakers.find(utterance); speaker != speakers.end())
        fields["speaker"] = speaker->second;
    return entry_of(std::move(fields), fs::current_path(), where);
}

}  // namespace

bool is_recording(const fs::path& path) {
    return contains(kEndings, ascii_lower(path.extension().string()));
}

const std::vector<std::string>& input_formats() {
    static const std::vector<std::string> formats = {"recordings", "nemo", "kaldi", "lhotse",
                                                     "webdataset"};
    return formats;
}

std::vector<ManifestEntry> read_folder(const fs::path& folder) {
    std::vector<fs::path> paths;
    fs::path last = folder;
    std::error_code error;
    for (fs::recursive_directory_iterator found(folder, error), end; found != end;
         found.increment(error)) {
        last = found->path();
        // What commands of hark keep next to recordings.
        if (found->is_directory() && last.filename().string().starts_with(".hark"))
            found.disable_recursion_pending();
        // A link that leads nowhere is a recording that cannot be read, which the worker reports.
        const bool is_file = found->is_regular_file() || !found->exists();
        if (is_file && is_recording(last)) paths.push_back(last);
    }
    require(!error, last.string(), ": cannot read this folder: ", error.message());
    std::sort(paths.begin(), paths.end());
    std::vector<ManifestEntry> entries;
    for (const fs::path& path : paths)
        entries.push_back(entry_of(
            {{"audio_filepath", path.string()}, {"id", path.lexically_relative(folder).string()}},
            fs::current_path(), path.string()));
    require(!entries.empty(), folder.string(), ": found no recordings");
    return entries;
}

std::vector<ManifestEntry> read_kaldi(const fs::path& folder) {
    const auto texts = kaldi_map(folder / "text"), speakers = kaldi_map(folder / "utt2spk");
    const std::string scp = (folder / "wav.scp").string();
    const auto recordings = kaldi_table(scp);
    std::map<std::string, std::string> paths;
    for (const auto& [recording, path] : recordings) {
        require(path.back() != '|', scp, ": ", recording, ": expected a path, found the command '",
                path, "'; run it into a file first");
        require(paths.emplace(recording, path).second, scp, ": ", recording, ": comes twice");
    }
    std::vector<ManifestEntry> entries;
    const std::string segments = (folder / "segments").string();
    if (!fs::exists(segments)) {
        for (const auto& [recording, path] : recordings)
            entries.push_back(kaldi_entry({{"audio_filepath", path}, {"id", recording}}, recording,
                                          texts, speakers, concat(scp, ": ", recording)));
        return entries;
    }
    for (const auto& [utterance, rest] : kaldi_table(segments)) {
        const std::string where = concat(segments, ": ", utterance);
        char recording[1024] = "", begin[64] = "", end[64] = "", more = 0;
        require(std::sscanf(rest.c_str(), "%1023s %63s %63s %c", recording, begin, end, &more) == 3,
                where, ": expected a recording, a start and an end, found '", rest, "'");
        const auto path = paths.find(recording);
        require(path != paths.end(), where, ": wav.scp has no recording '", recording, "'");
        const double start = kaldi_seconds(begin, where), stop = kaldi_seconds(end, where);
        entries.push_back(kaldi_entry({{"audio_filepath", path->second},
                                       {"id", utterance},
                                       {"offset", start},
                                       {"duration", stop - start},
                                       {"recording_id", recording}},
                                      utterance, texts, speakers, where));
    }
    return entries;
}

std::vector<ManifestEntry> read_input(const std::string& path, const std::string& format) {
    const ProfileSpan span("read");
    const bool is_folder = fs::is_directory(path);
    const bool wants_folder = format == "recordings" || format == "kaldi";
    require(format.empty() || is_folder == wants_folder, path, ": --input-format ", format,
            wants_folder ? " needs a folder" : " needs a file, found a folder");
    if (format == "kaldi") return read_kaldi(path);
    if (is_folder) return read_folder(path);
    if (format == "webdataset") return read_webdataset(path);
    const std::string text =
        read_file_or_pipe(path == "-" ? "/dev/stdin" : path, kMaxManifestBytes);
    const std::string where = path == "-" ? "stdin" : path;
    require(text.substr(0, 4096).find('\0') == std::string::npos, where,
            ": not a manifest (got a zero byte, expected lines of JSON); for recordings give "
            "their folder");
    const fs::path folder = path == "-" ? fs::path() : fs::path(path).parent_path();
    return format == "lhotse" ? parse_lhotse(text, folder, where)
                              : parse_manifest(text, folder, where);
}

}  // namespace hark::shards
