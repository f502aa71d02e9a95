#include "eval/error_report.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "core/error.h"
#include "core/json/json.h"
#include "text/unicode.h"

namespace hark {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kColumns = 100;

std::string percent(const std::optional<double>& rate) {
    char text[32] = "-";
    if (rate) std::snprintf(text, sizeof text, "%.2f%%", *rate * 100);
    return text;
}

std::string fraction(const std::optional<double>& rate) {
    char text[32] = "-";
    if (rate) std::snprintf(text, sizeof text, "%.6f", *rate);
    return text;
}

// The name as one field of a line.
std::string on_one_line(std::string name) {
    std::replace_if(
        name.begin(), name.end(), [](char c) { return c == '\t' || c == '\n' || c == '\r'; }, ' ');
    return name;
}

std::string name_of(const std::string& source, const std::string& channel) {
    return on_one_line(channel == "0" ? source : concat(source, " (channel ", channel, ")"));
}

char letter_of(Edit edit) {
    return edit == Edit::substitution ? 'S' : edit == Edit::deletion ? 'D' : 'I';
}

class TextReport : public ErrorReport {
  public:
    TextReport(bool differences, Write write)
        : differences_(differences), write_(std::move(write)) {}

    void recording(const std::string& source, const std::string& channel,
                   const Comparison& comparison) override {
        line(comparison.counts, name_of(source, channel));
        if (differences_ && comparison.counts.words.errors() > 0)
            write_("\n" + differences_as_text(comparison, kColumns));
    }
    void total(const ErrorCounts& counts, int64_t recordings) override {
        line(counts, concat("total of ", recordings));
    }

  private:
    void line(const ErrorCounts& counts, const std::string& name) {
        if (!std::exchange(headed_, true))
            write_("    WER     CER   words   subst   del   ins  recording\n");
        char text[160];
        std::snprintf(text, sizeof text, "%7s %7s %7lld %7lld %5lld %5lld  ",
                      percent(counts.word_rate()).c_str(), percent(counts.character_rate()).c_str(),
                      static_cast<long long>(counts.reference_words()),
                      static_cast<long long>(counts.words.substitutions),
                      static_cast<long long>(counts.words.deletions),
                      static_cast<long long>(counts.words.insertions));
        write_(text + name + "\n");
    }

    bool differences_, headed_ = false;
    Write write_;
};

class TsvReport : public ErrorReport {
  public:
    explicit TsvReport(Write write) : write_(std::move(write)) {
        write_(
            "recording\twer\tcer\twords\tsubstitutions\tdeletions\tinsertions\tcharacters\t"
            "character_errors\n");
    }
    void recording(const std::string& source, const std::string& channel,
                   const Comparison& comparison) override {
        line(comparison.counts, name_of(source, channel));
    }
    void total(const ErrorCounts& counts, int64_t) override { line(counts, "total"); }

  private:
    void line(const ErrorCounts& counts, const std::string& name) {
        write_(concat(name, "\t", fraction(counts.word_rate()), "\t",
                      fraction(counts.character_rate()), "\t", counts.reference_words(), "\t",
                      counts.words.substitutions, "\t", counts.words.deletions, "\t",
                      counts.words.insertions, "\t", counts.characters, "\t",
                      counts.character_errors, "\n"));
    }
    Write write_;
};

class JsonLinesReport : public ErrorReport {
  public:
    JsonLinesReport(bool differences, Write write)
        : differences_(differences), write_(std::move(write)) {}

    void recording(const std::string& source, const std::string& channel,
                   const Comparison& comparison) override {
        Json json;
        json["source"] = source;
        if (channel != "0") json["channel"] = channel;
        add_counts(json, comparison.counts);
        if (differences_) json["words_aligned"] = alignment(comparison);
        write(json);
    }
    void total(const ErrorCounts& counts, int64_t recordings) override {
        Json json;
        json["recordings"] = recordings;
        add_counts(json, counts);
        write(json);
    }

  private:
    static void add_counts(Json& json, const ErrorCounts& counts) {
        const auto number = [](const std::optional<double>& rate) {
            return rate ? Json(*rate) : Json();
        };
        json["wer"] = number(counts.word_rate());
        json["cer"] = number(counts.character_rate());
        json["words"] = counts.reference_words();
        json["substitutions"] = counts.words.substitutions;
        json["deletions"] = counts.words.deletions;
        json["insertions"] = counts.words.insertions;
        json["characters"] = counts.characters;
        json["character_errors"] = counts.character_errors;
    }
    // [reference word or null, hypothesis word or null] for each place.
    static Json alignment(const Comparison& comparison) {
        Json pairs = Json::array();
        for (const AlignedWords& place : aligned_words(comparison))
            pairs.push_back({place.edit == Edit::insertion ? Json() : Json(place.reference),
                             place.edit == Edit::deletion ? Json() : Json(place.hypothesis)});
        return pairs;
    }
    void write(const Json& json) { write_(json_text(json) + "\n"); }

    bool differences_;
    Write write_;
};

}  // namespace

const std::vector<std::string>& error_report_formats() {
    static const std::vector<std::string> kFormats = {"text", "tsv", "jsonl"};
    return kFormats;
}

std::unique_ptr<ErrorReport> make_error_report(const std::string& format, bool differences,
                                               ErrorReport::Write write) {
    if (format == "text") return std::make_unique<TextReport>(differences, std::move(write));
    if (format == "tsv") return std::make_unique<TsvReport>(std::move(write));
    if (format == "jsonl") return std::make_unique<JsonLinesReport>(differences, std::move(write));
    fail("unknown format '", format, "'");
}

std::string differences_as_text(const Comparison& comparison, int columns) {
    std::string out, reference, hypothesis, marks;
    bool differs = false;
    int width = 0;
    const auto end_line = [&] {
        const auto line = [&](const char* label, std::string& text) {
            out += label + text.erase(text.find_last_not_of(' ') + 1) + "\n";
            text.clear();
        };
        if (differs) {
            line("  REF", reference);
            line("  HYP", hypothesis);
            line("     ", marks);
            out += "\n";
        }
        reference.clear(), hypothesis.clear(), marks.clear();
        differs = false;
        width = 0;
    };
    for (const AlignedWords& place : aligned_words(comparison)) {
        const bool same = place.edit == Edit::match;
        const auto shown = [](std::string_view word, std::string_view other) {
            return word.empty() ? std::string(static_cast<size_t>(display_width(other)), '*')
                                : std::string(word);
        };
        const std::string above = shown(place.reference, place.hypothesis);
        const std::string below = shown(place.hypothesis, place.reference);
        const int cell = std::max({display_width(above), display_width(below), 1});
        if (width > 0 && width + 1 + cell > columns) end_line();
        const auto add = [&](std::string& line, const std::string& word) {
            line += ' ' + word;
            line.append(static_cast<size_t>(cell - display_width(word)), ' ');
        };
        add(reference, above);
        add(hypothesis, below);
        add(marks, same ? "" : std::string(1, letter_of(place.edit)));
        differs = differs || !same;
        width += 1 + cell;
    }
    end_line();
    return out;
}

}  // namespace hark
