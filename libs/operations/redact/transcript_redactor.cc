#include "operations/redact/transcript_redactor.h"

#include <algorithm>
#include <array>

#include "core/error.h"
#include "core/json/json.h"
#include "core/profile/profile.h"
#include "text/utf8.h"

namespace hark::redact {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kHeld = 4;  // segments
// Names that a recording keeps, and what is no text.
constexpr const char* kLeftAlone[] = {"source", "channel", "language", "error", "id"};

std::string string_of(const Json& line, const char* key) {
    const auto found = line.find(key);
    return found != line.end() && found->is_string() ? found->get<std::string>() : "";
}

// The text with labels in the place of the findings.
std::string with_labels(const std::string& text, const std::vector<Finding>& findings) {
    std::string labelled;
    size_t done = 0;
    for (const Finding& finding : findings) {
        labelled += text.substr(done, finding.begin - done) + label_of(finding.kind);
        done = finding.end;
    }
    return labelled + text.substr(done);
}

bool has_times(const Json& part) {
    return std::ranges::all_of(std::array{"start", "end"}, [&](const char* key) {
        const auto found = part.find(key);
        return found != part.end() && found->is_number();
    });
}

// A word and its bytes in the segment's text.
struct TimedWord {
    size_t begin, end;
    Json json;
};

// Empty if the words are not the text, cut.
std::vector<TimedWord> timed_words(const Json& line, const std::string& text) {
    std::vector<TimedWord> words;
    const auto list = line.find("words");
    if (list == line.end() || !list->is_array()) return words;
    size_t at = 0;
    for (const Json& word : *list) {
        const std::string written = word.is_object() ? string_of(word, "word") : "";
        if (written.empty() || text.compare(at, written.size(), written) != 0 || !has_times(word))
            return {};
        words.push_back({at, at + written.size(), word});
        at += written.size();
    }
    return at == text.size() ? words : std::vector<TimedWord>{};
}

// The words, those that a finding touches as one with its label; calls `mute` with their times.
Json labelled_words(const std::vector<TimedWord>& words, const std::string& text,
                    const std::vector<Finding>& findings,
                    const std::function<void(double, double)>& mute) {
    Json labelled = Json::array();
    auto finding = findings.begin();
    for (size_t i = 0; i < words.size();) {
        while (finding != findings.end() && finding->end <= words[i].begin) ++finding;
        if (finding == findings.end() || finding->begin >= words[i].end) {
            labelled.push_back(words[i++].json);
            continue;
        }
        // Findings that share a word are one entry.
        const size_t first = i;
        std::vector<Finding> inside;
        size_t end = words[i].end;
        for (; finding != findings.end() && finding->begin < end; ++finding) {
            for (; i + 1 < words.size() && words[i + 1].begin < finding->end; ++i) continue;
            end = words[i].end;
            inside.push_back({finding->begin - words[first].begin,
                              finding->end - words[first].begin, finding->kind});
        }
        Json word = words[first].json;
        word["word"] =
            with_labels(text.substr(words[first].begin, end - words[first].begin), inside);
        word["end"] = words[i].json["end"];
        mute(number_or_zero(word, "start"), number_or_zero(word, "end"));
        labelled.push_back(std::move(word));
        ++i;
    }
    return labelled;
}

}  // namespace

struct TranscriptRedactor::Segment {
    std::string line, text, where;
    Json json;
    std::vector<Finding> findings;  // in `text`, of matches that began before it
};

TranscriptRedactor::TranscriptRedactor(Finder finder, Write write, Mute mute)
    : finder_(std::move(finder)), write_(std::move(write)), mute_(std::move(mute)) {}

TranscriptRedactor::~TranscriptRedactor() = default;

void TranscriptRedactor::add(const std::string& line, const std::string& where) {
    const ProfileSpan span("read");
    constexpr const char* kExpected = "expected the lines of hark transcribe --format jsonl";
    require(is_valid_utf8(line), where, ": not UTF-8; ", kExpected);
    Segment segment{line, "", where, parse_ordered_json(line, where), {}};
    require(!segment.json.is_discarded(), where, ": not JSON; ", kExpected);
    require(segment.json.is_object() &&
                (segment.json.contains("text") || segment.json.contains("error")),
            where, ": no segment and no error; ", kExpected);
    const auto text = segment.json.find("text");
    require(text == segment.json.end() || text->is_string(), where, ": text: not a string");
    segment.text = string_of(segment.json, "text");
    for (const char* key : {"source", "channel"})
        if (!held_.empty() && string_of(held_.back().json, key) != string_of(segment.json, key))
            finish();
    held_.push_back(std::move(segment));
    if (held_.size() == kHeld) release_first();
}

void TranscriptRedactor::finish() {
    while (!held_.empty()) release_first();
}

void TranscriptRedactor::release_first() {
    const ProfileSpan span("redact");
    std::string text;
    for (const Segment& segment : held_) text += segment.text;
    const size_t first = held_.front().text.size();
    for (const Finding& finding : finder_.find(text)) {
        if (finding.begin >= first) break;
        // The rest of one that began in an earlier segment may look like another.
        const std::vector<Finding>& known = held_.front().findings;
        const bool is_new = std::none_of(known.begin(), known.end(), [&](const Finding& rest) {
            return rest.begin < finding.end && finding.begin < rest.end;
        });
        if (is_new) ++counts_[finding.kind];
        size_t begin = 0;
        for (Segment& segment : held_) {
            const size_t from = std::max(finding.begin, begin);
            const size_t to = std::min(finding.end, begin + segment.text.size());
            if (from < to) segment.findings.push_back({from - begin, to - begin, finding.kind});
            begin += segment.text.size();
        }
    }
    Segment segment = std::move(held_.front());
    held_.erase(held_.begin());
    segment.findings = merged(std::move(segment.findings));
    if (!segment.findings.empty()) redact(segment);
    redact_others(segment);
    write_(segment.line);
}

void TranscriptRedactor::redact(Segment& segment) {
    const std::string source = string_of(segment.json, "source");
    const auto mute = [&](double begin, double end) {
        if (mute_) mute_(source, begin, end);
    };
    const std::vector<TimedWord> words = timed_words(segment.json, segment.text);
    // Without the times of words all of the segment is silenced.
    if (mute_ && words.empty()) {
        require(has_times(segment.json), segment.where,
                ": the segment has no start and end; --mute-list needs them");
        mute(number_or_zero(segment.json, "start"), number_or_zero(segment.json, "end"));
    }
    segment.json["text"] = with_labels(segment.text, segment.findings);
    if (segment.json.contains("tokens")) segment.json["tokens"] = Json::array();
    if (segment.json.contains("words"))
        segment.json["words"] = labelled_words(words, segment.text, segment.findings, mute);
    segment.line = segment.json.dump();
}

// Strings that other programs have added.
void TranscriptRedactor::redact_others(Segment& segment) {
    bool changed = false;
    const std::function<void(Json&)> search = [&](Json& value) {
        if (value.is_structured())
            for (Json& inner : value) search(inner);
        if (!value.is_string()) return;
        const std::string text = value.get<std::string>();
        const std::vector<Finding> findings = finder_.find(text);
        if (findings.empty()) return;
        for (const Finding& finding : findings) ++counts_[finding.kind];
        value = with_labels(text, findings);
        changed = true;
    };
    for (auto entry = segment.json.begin(); entry != segment.json.end(); ++entry) {
        const auto is_key = [&](const char* key) { return entry.key() == key; };
        if (is_key("text") || is_key("words") ||
            std::any_of(std::begin(kLeftAlone), std::end(kLeftAlone), is_key))
            continue;
        search(entry.value());
    }
    if (changed) segment.line = segment.json.dump();
}

}  // namespace hark::redact
