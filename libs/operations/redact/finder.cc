#include "operations/redact/finder.h"

#include <algorithm>

#include "operations/redact/numbers.h"

namespace hark::redact {
namespace {

// (?i) is not for all: "may" and "march" are verbs.
#define HARK_MONTH                                                                         \
    "(?:(?i:january|february|april|june|july|august|september|october|november|december)|" \
    "May|March|(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\\b\\.?)"
#define HARK_DAY                                                                         \
    "(?i:(?:[12]\\d|3[01]|0?[1-9])(?:st|nd|rd|th)?\\b|(?:(?:twenty|thirty)[ -])?"        \
    "(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth)\\b|"                 \
    "(?:ten|eleven|twelf|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen|" \
    "twentie|thirtie)th\\b)"
// 1984, and "nineteen eighty four" as figures; '84.
#define HARK_YEAR \
    "(?:(?:1[89]|20)[ -]?\\d\\d\\b|'\\d\\d\\b|(?i:2 thousand(?:(?: and)? \\d{1,2}\\b)?))"

constexpr const char* kWrittenEmail =
    "[\\p{L}\\p{N}][\\p{L}\\p{N}._%+\\-]*@[\\p{L}\\p{N}](?:[\\p{L}\\p{N}\\-]|\\.(?=[\\p{L}\\p{N}]))"
    "*";
// "anna dot schmidt at example dot com": a name at a host, whose last part is one of the common.
constexpr const char* kSpokenEmail =
    "(?i)\\b[\\p{L}\\p{N}]+(?:(?: (?:dot|underscore|dash|hyphen|minus) |[._\\-])[\\p{L}\\p{N}]+)*"
    "(?: at |@| @ )[\\p{L}\\p{N}]+(?:(?: (?:dash|hyphen|dot) |[.\\-])[\\p{L}\\p{N}]+)*?"
    "(?: dot |\\.)(?:com|org|net|edu|gov|info|io|ai|eu|de|at|ch|fr|it|es|nl|be|pl|se|no|dk|fi|ie|"
    "in|jp|cn|br|ca|au|nz|us|uk|co(?: dot |\\.)uk|ac(?: dot |\\.)uk)\\b";
constexpr const char* kNumericDate =
    "(?<![\\d.])(?<!\\d[/\\-])(?:\\d{4}([\\-/.])(?:0?[1-9]|1[0-2])\\1(?:3[01]|[12]\\d|0?[1-9])|"
    "(?:3[01]|[12]\\d|0?[1-9])([\\-/.])(?:3[01]|[12]\\d|0?[1-9])\\2(?:(?:1[89]|20)\\d\\d|\\d\\d))"
    "(?![\\d])(?![/.\\-]\\d)";
constexpr const char* kNamedDate =
    "\\b(?:" HARK_MONTH "(?:,? (?:the )?" HARK_DAY "(?:,?(?: of)? " HARK_YEAR
    ")?|,?(?: of)? " HARK_YEAR ")|(?:(?i:the) )?" HARK_DAY "(?: (?i:day of|of))?,? " HARK_MONTH
    "(?:,?(?: of)? " HARK_YEAR ")?)";

void add_matches(const Regex& pattern, std::string_view text, Kind kind,
                 std::vector<Finding>& findings) {
    pattern.for_each_match(text, [&](size_t begin, const Regex::Groups& groups) {
        findings.push_back({begin, begin + groups[0].size(), kind});
    });
}

// The bytes of the original that a finding in its figures is of.
Finding in_original(const FiguresText& figures, const Finding& finding) {
    return {figures.sources[finding.begin].begin, figures.sources[finding.end - 1].end,
            finding.kind};
}

}  // namespace

Finder::Finder(std::vector<Kind> kinds, WordList words)
    : kinds_(std::move(kinds)),
      words_(std::move(words)),
      written_email_(kWrittenEmail),
      spoken_email_(kSpokenEmail),
      numeric_date_(kNumericDate),
      named_date_(kNamedDate) {
    kinds_.push_back(Kind::listed);
}

std::vector<Finding> Finder::find(std::string_view text) const {
    std::vector<Finding> findings = words_.find(text);
    add_matches(written_email_, text, Kind::email, findings);
    add_matches(spoken_email_, text, Kind::email, findings);
    FiguresText figures = join_spoken_digits(text);
    std::vector<Finding> in_figures = find_ibans(figures);
    add_matches(numeric_date_, figures.text, Kind::date, in_figures);
    add_matches(named_date_, figures.text, Kind::date, in_figures);
    // Their digits are no telephone number.
    for (const Finding& found : in_figures)
        std::fill(figures.text.begin() + static_cast<ptrdiff_t>(found.begin),
                  figures.text.begin() + static_cast<ptrdiff_t>(found.end), '#');
    for (const Finding& found : find_digit_runs(figures)) in_figures.push_back(found);
    for (const Finding& found : in_figures) findings.push_back(in_original(figures, found));
    std::erase_if(findings, [&](const Finding& finding) {
        return std::find(kinds_.begin(), kinds_.end(), finding.kind) == kinds_.end();
    });
    return merged(std::move(findings));
}

}  // namespace hark::redact
