#include "operations/redact/spoken_digits.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "core/ascii.h"
#include "core/ranges.h"
#include "text/utf8.h"

namespace hark::redact {
namespace {

struct Word {
    size_t begin, end;
    std::string lower;  // of ASCII letters
};

const std::map<std::string_view, std::string_view> kUnits = {
    {"zero", "0"}, {"nought", "0"}, {"naught", "0"}, {"one", "1"},   {"two", "2"},   {"three", "3"},
    {"four", "4"}, {"five", "5"},   {"six", "6"},    {"seven", "7"}, {"eight", "8"}, {"nine", "9"}};
const std::map<std::string_view, std::string_view> kTeens = {
    {"ten", "10"},      {"eleven", "11"},  {"twelve", "12"},  {"thirteen", "13"},
    {"fourteen", "14"}, {"fifteen", "15"}, {"sixteen", "16"}, {"seventeen", "17"},
    {"eighteen", "18"}, {"nineteen", "19"}};
const std::map<std::string_view, char> kTens = {{"twenty", '2'},  {"thirty", '3'}, {"forty", '4'},
                                                {"fourty", '4'},  {"fifty", '5'},  {"sixty", '6'},
                                                {"seventy", '7'}, {"eighty", '8'}, {"ninety", '9'}};
// "twenty first" is a date's.
constexpr std::string_view kOrdinals[] = {"first", "second",  "third",  "fourth", "fifth",
                                          "sixth", "seventh", "eighth", "ninth"};
constexpr std::string_view kFillers[] = {"uh", "um", "er", "erm", "uhm", "hmm", "ah"};
const std::map<std::string_view, std::string_view> kMarks = {
    {"dash", "-"}, {"hyphen", "-"}, {"minus", "-"}, {"slash", "/"}, {"dot", "."}, {"point", "."}};

bool is_letter_or_digit(unsigned char c) {
    return c >= 0x80 || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Letters and digits of any script, ASCII ones in lower case.
std::vector<Word> words_in(std::string_view text) {
    std::vector<Word> words;
    for (size_t at = 0; at < text.size();) {
        size_t end = at;
        std::string lower;
        for (; end < text.size() && is_letter_or_digit(static_cast<unsigned char>(text[end]));
             ++end)
            lower += ascii_lower(text[end]);
        if (end > at) words.push_back({at, end, std::move(lower)});
        at = std::max(end, at + 1);
    }
    return words;
}

bool is_figures(const std::string& word) {
    return word.find_first_not_of("0123456789") == std::string::npos;
}

class Joiner {
  public:
    explicit Joiner(std::string_view text) : text_(text), words_(words_in(text)) {}

    FiguresText join() {
        size_t done = 0;
        for (size_t at = 0; at < words_.size();) {
            std::string figures;
            size_t taken = number_at(at, figures);
            if (taken == 0 && between_numbers(at)) taken = mark_at(at, figures);
            if (taken == 0 && at + 1 < words_.size() && words_[at].lower == "plus" &&
                is_number(at + 1))
                taken = 1, figures = "+";
            if (taken > 0) {
                copy(done, words_[at].begin);
                done = words_[at + taken - 1].end;
                for (const char c : figures) add(c, words_[at].begin, done, true);
            }
            at += std::max<size_t>(taken, 1);
        }
        copy(done, text_.size());
        return std::move(out_);
    }

  private:
    void add(char c, size_t begin, size_t end, bool spoken) {
        out_.text += c;
        out_.sources.push_back({begin, end, spoken});
    }
    void copy(size_t begin, size_t end) {
        for (; begin < end; ++begin) add(text_[begin], begin, begin + 1, false);
    }
    const std::string& word(size_t at) const { return words_[at].lower; }
    bool is_next(size_t at) const {  // with nothing but a space or a hyphen between
        if (at + 1 >= words_.size() || words_[at + 1].begin != words_[at].end + 1) return false;
        const char between = text_[words_[at].end];
        return between == ' ' || between == '-';
    }
    bool is_number(size_t at) const {
        return at < words_.size() && (is_figures(word(at)) || kUnits.contains(word(at)) ||
                                      kTeens.contains(word(at)) || kTens.contains(word(at)));
    }
    // Whether a number comes before and after, with fillers between.
    bool between_numbers(size_t at) const {
        size_t before = at, after = at + 1;
        while (before > 0 && contains(kFillers, word(before - 1))) --before;
        while (after < words_.size() && contains(kFillers, word(after))) ++after;
        return before > 0 && is_number_or_oh(before - 1) && is_number_or_oh(after);
    }
    bool is_oh(size_t at) const {
        return at < words_.size() && (word(at) == "oh" || word(at) == "o");
    }
    bool is_number_or_oh(size_t at) const { return is_number(at) || is_oh(at); }

    // "dash" or a filler.
    size_t mark_at(size_t at, std::string& figures) const {
        const auto mark = kMarks.find(word(at));
        if (mark != kMarks.end()) figures = mark->second;
        return mark != kMarks.end() || contains(kFillers, word(at)) ? 1 : 0;
    }

    // Takes the words of one number; returns how many.
    size_t number_at(size_t at, std::string& figures) const {
        const std::string& first = word(at);
        if (first == "double" || first == "triple") {
            if (!is_next(at)) return 0;
            const auto unit = kUnits.find(word(at + 1));
            const std::string_view digit = unit != kUnits.end() ? unit->second
                                           : is_oh(at + 1)      ? "0"
                                                                : std::string_view(word(at + 1));
            if (digit.size() != 1 || !is_figures(std::string(digit))) return 0;
            figures.assign(first == "double" ? 2 : 3, digit[0]);
            return 2;
        }
        if (const auto teen = kTeens.find(first); teen != kTeens.end())
            return figures = teen->second, 1;
        if (const auto tens = kTens.find(first); tens != kTens.end()) {
            figures = {tens->second, '0'};
            if (!is_next(at)) return 1;
            if (contains(kOrdinals, word(at + 1))) return 0;
            const auto unit = kUnits.find(word(at + 1));
            if (unit == kUnits.end() || unit->second == "0") return 1;
            figures[1] = unit->second[0];
            return 2;
        }
        if (const auto unit = kUnits.find(first); unit != kUnits.end()) {
            figures = unit->second;
            if (!is_next(at) || word(at + 1) != "hundred") return 1;
            figures += "00";
            return 2;
        }
        const bool has_neighbour = (at > 0 && is_number_or_oh(at - 1)) || is_number_or_oh(at + 1);
        if (!is_oh(at) || !has_neighbour) return 0;
        figures = "0";
        return 1;
    }

    std::string_view text_;
    std::vector<Word> words_;
    FiguresText out_;
};

}  // namespace

Finding FiguresText::in_original(const Finding& finding) const {
    return {sources[finding.begin].begin, sources[finding.end - 1].end, finding.kind};
}

FiguresText with_plain_marks(std::string_view text) {
    FiguresText plain;
    for (size_t at = 0; at < text.size();) {
        const size_t begin = at;
        const char32_t code_point = next_code_point(text, at);
        const bool dash = (code_point >= 0x2010 && code_point <= 0x2015) || code_point == 0x2212;
        const bool space = code_point == 0xA0 || code_point == 0x202F;
        if (dash || space) {
            plain.text += dash ? '-' : ' ';
            plain.sources.push_back({begin, at, false});
            continue;
        }
        for (size_t byte = begin; byte < at; ++byte) {
            plain.text += text[byte];
            plain.sources.push_back({byte, byte + 1, false});
        }
    }
    return plain;
}

FiguresText join_spoken_digits(std::string_view text) { return Joiner(text).join(); }

}  // namespace hark::redact
