#include "operations/shards/merged.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>

#include "core/error.h"
#include "core/files/files.h"
#include "core/files/io.h"
#include "core/json/json.h"
#include "core/profile/profile.h"
#include "text/line_reader.h"

namespace hark::shards {
namespace {

namespace fs = std::filesystem;

using Fields = nlohmann::ordered_json;
using Write = std::function<void(std::string_view)>;

// A form of output: gets the lines of one entry after the other.
class MergedForm {
  public:
    virtual ~MergedForm() = default;
    virtual void entry(const ManifestEntry& entry, const std::vector<Fields>& segments) = 0;
    virtual void end() {}
};

std::string millis(double seconds) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3f", seconds);
    return text;
}

// One line, single spaces between the words.
std::string plain(const std::string& text) {
    std::string words;
    for (const char c : text) {
        const bool space = c == ' ' || c == '\t' || c == '\n' || c == '\r';
        if (!space)
            words += c;
        else if (!words.empty() && words.back() != ' ')
            words += ' ';
    }
    if (words.ends_with(' ')) words.pop_back();
    return words;
}

std::string kaldi_id(const ManifestEntry& entry) {
    std::string id = entry.id;
    std::replace(id.begin(), id.end(), ' ', '_');
    return id;
}

// Kaldi's tables are sorted by the bytes of their keys.
class SortedForm : public MergedForm {
  public:
    explicit SortedForm(const Write& write) : write_(write) {}
    void end() override {
        for (const auto& [id, lines] : lines_) write_(lines);
    }

  protected:
    void add(const std::string& id, std::string lines) {
        require(lines_.emplace(id, std::move(lines)).second, id,
                ": two recordings have this id once spaces are written as _");
    }

  private:
    const Write& write_;
    std::map<std::string, std::string> lines_;
};

class KaldiText : public SortedForm {
  public:
    using SortedForm::SortedForm;
    void entry(const ManifestEntry& entry, const std::vector<Fields>& segments) override {
        std::string text;
        for (const Fields& segment : segments) text += " " + segment.value("text", "");
        const std::string words = plain(text), id = kaldi_id(entry);
        add(id, words.empty() ? id + "\n" : id + " " + words + "\n");
    }
};

class Ctm : public SortedForm {
  public:
    using SortedForm::SortedForm;
    void entry(const ManifestEntry& entry, const std::vector<Fields>& segments) override {
        const std::string id = kaldi_id(entry);
        std::string lines;
        for (const Fields& segment : segments) {
            const auto words = segment.find("words");
            require(words != segment.end() && words->is_array(), entry.id,
                    ": a segment has no words; ctm needs transcripts of --word-timestamps");
            for (const Fields& word : *words) {
                const double start = number_or_zero(word, "start"),
                             end = number_or_zero(word, "end");
                const std::string text = plain(word.value("word", ""));
                if (text.empty()) continue;
                lines += concat(id, " 1 ", millis(start), " ", millis(end - start), " ", text, " ",
                                millis(number_or_zero(word, "probability")), "\n");
            }
        }
        add(id, std::move(lines));
    }
};

// Of a part of a recording the times are those in the recording.
class LhotseSupervisions : public MergedForm {
  public:
    explicit LhotseSupervisions(const Write& write) : write_(write) {}
    void entry(const ManifestEntry& entry, const std::vector<Fields>& segments) override {
        const Fields given = parse_object(entry.line, entry.id);
        const std::string recording = text_at(given, "recording_id", entry.id);
        const double offset = entry.offset.value_or(0);
        int number = 0;
        for (const Fields& segment : segments) {
            Fields line = {{"id", concat(entry.id, "-", number++)},
                           {"recording_id", recording.empty() ? entry.id : recording},
                           {"start", rounded(offset + number_or_zero(segment, "start"))},
                           {"duration", length_of(segment)},
                           {"channel", 0},
                           {"text", plain(segment.value("text", ""))},
                           {"language", segment.value("language", "")}};
            if (given.contains("speaker")) line["speaker"] = given["speaker"];
            if (const auto words = segment.find("words"); words != segment.end())
                for (const Fields& word : *words)
                    line["alignment"]["word"].push_back(
                        {plain(word.value("word", "")),
                         rounded(offset + number_or_zero(word, "start")), length_of(word),
                         number_or_zero(word, "probability")});
            write_(json_text(line) + "\n");
        }
    }

  private:
    static double rounded(double seconds) { return std::stod(millis(seconds)); }
    static double length_of(const Fields& part) {
        return rounded(number_or_zero(part, "end") - number_or_zero(part, "start"));
    }

    const Write& write_;
};

// The segments of a result by id. A failed recording is not in it, a silent one neither.
void merge_shard(const std::vector<ManifestEntry>& entries, const fs::path& path,
                 MergedForm& form) {
    const ProfileSpan span("read");
    std::map<std::string, std::vector<Fields>> segments;
    std::map<std::string, bool> failed;
    const OpenFile file(path);
    ByteReader in(file.fd(), path.string());
    LineReader lines(in);
    while (const std::optional<std::string> line = lines.next()) {
        Fields fields = parse_object(*line, lines.where());
        const std::string id = fields.value("id", "");
        if (fields.contains("error"))
            failed[id] = true;
        else
            segments[id].push_back(std::move(fields));
    }
    const ProfileSpan forming("write");
    for (const ManifestEntry& entry : entries)
        if (!failed.contains(entry.id)) form.entry(entry, segments[entry.id]);
}

void copy_shard(const fs::path& path, const Write& write) {
    const OpenFile file(path);
    ByteReader in(file.fd(), path.string());
    std::vector<char> piece(size_t{1} << 20);
    while (const size_t got = in.read_some(piece.data(), piece.size())) write({piece.data(), got});
}

}  // namespace

const std::vector<std::string>& merge_formats() {
    static const std::vector<std::string> formats = {"jsonl", "lhotse", "kaldi-text", "ctm"};
    return formats;
}

void merge_results(const fs::path& plan_folder, const std::vector<PlannedShard>& plan,
                   const fs::path& results, const std::string& format, const Write& write) {
    std::unique_ptr<MergedForm> form;
    if (format == "lhotse") form = std::make_unique<LhotseSupervisions>(write);
    if (format == "kaldi-text") form = std::make_unique<KaldiText>(write);
    if (format == "ctm") form = std::make_unique<Ctm>(write);
    for (const PlannedShard& shard : plan) {
        const fs::path path = results / (shard.name + ".jsonl");
        if (form)
            merge_shard(read_shard(plan_folder, shard), path, *form);
        else
            copy_shard(path, write);
    }
    if (form) form->end();
}

}  // namespace hark::shards
