#include "operations/redact/numbers.h"

#include <algorithm>
#include <string>

#include "core/ascii.h"
#include "operations/redact/checksums.h"

namespace hark::redact {
namespace {

constexpr size_t kFewest = 7;  // digits of a run that is replaced
constexpr size_t kMostSeparators = 4;
constexpr size_t kShortestCard = 13, kLongestCard = 19;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_ascii_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

struct Group {
    size_t begin, end;  // bytes
    bool spoken;
};

std::vector<Group> groups_of(const FiguresText& figures) {
    std::vector<Group> groups;
    const std::string& text = figures.text;
    for (size_t at = 0; at < text.size();) {
        size_t end = at;
        bool spoken = false;
        for (; end < text.size() && is_digit(text[end]); ++end)
            spoken = spoken || figures.sources[end].spoken;
        if (end > at) groups.push_back({at, end, spoken});
        at = std::max(end, at + 1);
    }
    return groups;
}

// Whether the text between two groups joins them.
bool joins(const Group& before, const Group& after, std::string_view between) {
    if (between.size() > kMostSeparators) return false;
    // As Whisper writes digits that are said one by one: 4, 1, 5.
    const bool single = before.end - before.begin == 1 && after.end - after.begin == 1;
    const bool commas = before.spoken || after.spoken || (single && between == ", ");
    return between.find_first_not_of(commas ? " .-()/,;:" : " .-()/") == between.npos;
}

class Run {
  public:
    Run(const std::string& text, std::vector<Group> groups)
        : text_(text), groups_(std::move(groups)) {}

    void find(std::vector<Finding>& findings) const {
        if (groups_.empty()) return;
        const std::string number = digits();
        const bool plus = has_plus(groups_[0].begin);
        if (number.size() < kFewest || (!plus && is_amount())) return;
        const bool phone = number.size() <= 15 &&
                           (plus || number[0] == '0' || number.size() == 7 || number.size() == 10 ||
                            (number.size() == 11 && number[0] == '1'));
        size_t begin = groups_[0].begin;
        if (plus)
            begin = text_.rfind('+', begin);
        else if (begin > 0 && text_[begin - 1] == '(')
            --begin;
        const Kind kind = has_card(number) ? Kind::card : phone ? Kind::phone : Kind::number;
        findings.push_back({begin, groups_.back().end, kind});
    }

  private:
    std::string digits() const {
        std::string all;
        for (const Group& group : groups_) all.append(text_, group.begin, group.end - group.begin);
        return all;
    }
    std::string_view group(size_t at) const {
        return std::string_view(text_).substr(groups_[at].begin,
                                              groups_[at].end - groups_[at].begin);
    }

    // Whether some groups are a card. What is said before and after it, its last month and its
    // code, goes with it.
    bool has_card(const std::string& number) const {
        std::vector<size_t> ends = {0};  // of the groups, in `number`
        for (const Group& group : groups_) ends.push_back(ends.back() + group.end - group.begin);
        for (size_t first = 0; first < ends.size(); ++first)
            for (size_t last = first + 1; last < ends.size(); ++last) {
                const size_t length = ends[last] - ends[first];
                if (length > kLongestCard) break;
                const char issuer = number[ends[first]];
                if (length >= kShortestCard && issuer >= '2' && issuer <= '6' &&
                    passes_luhn(std::string_view(number).substr(ends[first], length)))
                    return true;
            }
        return false;
    }

    bool has_plus(size_t begin) const {
        const size_t before = text_.find_last_not_of(" (", begin == 0 ? 0 : begin - 1);
        return begin > 0 && before != std::string::npos && text_[before] == '+' &&
               begin - before <= 3;
    }

    std::string_view between(size_t at) const {
        return std::string_view(text_).substr(groups_[at].end,
                                              groups_[at + 1].begin - groups_[at].end);
    }

    // 3.1415926, 12 000 000, 1998-2004; 100, 200, 300.
    bool is_amount() const {
        const size_t count = groups_.size();
        if (count == 2 && group(0).size() <= 3 && group(0) != "0" && between(0) == ".") return true;
        bool years = count > 1, thousands = count > 1 && group(count - 1) == "000";
        bool hundreds = count > 1;
        for (size_t i = 0; i < count; ++i) {
            years = years && group(i).size() == 4 && group(i) >= "1800" && group(i) < "2100";
            thousands = thousands && (i == 0 ? group(i).size() <= 3 : group(i).size() == 3);
            hundreds = hundreds && group(i).size() == 3 && group(i).ends_with("00");
        }
        return years || thousands || hundreds || is_grouped_by_thousands();
    }

    // 1.234.567, 12 345 678. Three groups of three may be a telephone number as well: they are an
    // amount if a word for money or a count follows. Four groups with dots may be an IP address.
    bool is_grouped_by_thousands() const {
        const size_t count = groups_.size();
        if (count < 2 || group(0).size() > 3 || group(0)[0] == '0') return false;
        bool address = count == 4 && between(0) == ".";
        for (size_t i = 1; i < count; ++i) {
            if (group(i).size() != 3 || between(i - 1) != between(0)) return false;
            address = address && group(i) <= "255";
        }
        if (between(0) == ",") return true;
        if ((between(0) != " " && between(0) != ".") || address) return false;
        return group(0).size() < 3 || counts_something();
    }

    bool counts_something() const {
        constexpr std::string_view kCounted[] = {"euro",  "dollar", "pound",  "franc", "dólar",
                                                 "libra", "yen",    "people", "€",     "$",
                                                 "eur",   "usd",    "gbp",    "chf",   "percent"};
        std::string next = ascii_lower(text_.substr(groups_.back().end, 12));
        next.erase(0, next.find_first_not_of(' '));
        return std::any_of(std::begin(kCounted), std::end(kCounted),
                           [&](std::string_view word) { return next.starts_with(word); });
    }

    const std::string& text_;
    std::vector<Group> groups_;
};

// A number of the United States, said with pauses: 415, 555, 0123. Other lists of numbers are none.
void find_paused(const std::string& text, const std::vector<Group>& groups,
                 std::vector<Finding>& findings) {
    const auto digits = [&](size_t at) { return groups[at].end - groups[at].begin; };
    const auto comma = [&](size_t at) {
        return text.compare(groups[at].end, groups[at + 1].begin - groups[at].end, ", ") == 0;
    };
    for (size_t i = 0; i + 2 < groups.size(); ++i)
        if (digits(i) == 3 && digits(i + 1) == 3 && digits(i + 2) == 4 && comma(i) && comma(i + 1))
            findings.push_back({groups[i].begin, groups[i + 2].end, Kind::phone});
}

}  // namespace

std::vector<Finding> find_ibans(const FiguresText& figures) {
    const std::string& text = figures.text;
    std::vector<Finding> findings;
    for (size_t begin = 0; begin < text.size(); ++begin) {
        if (!is_ascii_letter(text[begin])) continue;
        if (begin > 0 && (is_ascii_letter(text[begin - 1]) || is_digit(text[begin - 1]))) continue;
        std::string iban;
        size_t length = 0, end = begin;
        for (; end < text.size() && (length == 0 || iban.size() < length); ++end) {
            const char c = text[end];
            if (is_digit(c) || is_ascii_letter(c))
                iban += is_digit(c) ? c : static_cast<char>(c & ~32);
            else if (c != ' ' && c != '-' && c != ',' && c != '.')
                break;
            if (iban.size() == 2) length = iban_length(iban);
            if (iban.size() >= 2 && length == 0) break;
            if (iban.size() >= 3 && !is_digit(iban[2])) break;
            if (iban.size() >= 4 && !is_digit(iban[3])) break;
        }
        if (length == 0 || iban.size() != length || !passes_mod_97(iban)) continue;
        findings.push_back({begin, end, Kind::iban});
        begin = end;
    }
    return findings;
}

std::vector<Finding> find_digit_runs(const FiguresText& figures) {
    std::vector<Finding> findings;
    std::vector<Group> run;
    const std::vector<Group> groups = groups_of(figures);
    find_paused(figures.text, groups, findings);
    for (const Group& group : groups) {
        if (!run.empty() && !joins(run.back(), group,
                                   std::string_view(figures.text)
                                       .substr(run.back().end, group.begin - run.back().end))) {
            Run(figures.text, std::move(run)).find(findings);
            run.clear();
        }
        run.push_back(group);
    }
    Run(figures.text, std::move(run)).find(findings);
    return findings;
}

}  // namespace hark::redact
