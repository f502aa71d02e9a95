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
    "(?i:(?:[12]\\d|3[01]|(?:0 ?)?[1-9])(?:st|nd|rd|th)?\\b|(?:(?:twenty|thirty)[ -])?"  \
    "(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth)\\b|"                 \
    "(?:ten|eleven|twelf|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen|" \
    "twentie|thirtie)th\\b)"
#define HARK_FULL_YEAR                                        \
    "(?:(?:1[89]|20)[ -]?(?:\\d\\d|0[ -]?\\d)\\b|'\\d\\d\\b|" \
    "(?i:2 thousand(?:(?: and)? \\d{1,2}\\b)?))"
// 1984, and "nineteen eighty four" and "twenty oh four" as figures; '84; 84 with no noun after it.
#define HARK_YEAR "(?:" HARK_FULL_YEAR "|\\d\\d\\b(?! ?(?:[\\p{L}%$]|[:.,]\\d)))"

constexpr const char* kNumericDate =
    "(?<![\\d.])(?<!\\d[/\\-])(?:\\d{4}([\\-/.])(?:0?[1-9]|1[0-2])\\1(?:3[01]|[12]\\d|0?[1-9])|"
    "(?:3[01]|[12]\\d|0?[1-9])([\\-/.])(?:3[01]|[12]\\d|0?[1-9])\\2(?:(?:1[89]|20)\\d\\d|\\d\\d))"
    "(?![\\d])(?![/.\\-]\\d)";
// Day and month in figures, said or with spaces and commas, and a year: "03 02 1984".
#define HARK_PAUSE "(?: |, ?)"
#define HARK_NO_DIGITS_BEFORE "(?<![\\d.+])(?<!\\d[ ,/\\-])(?<!\\d, )"
constexpr const char* kSpacedDate =
    HARK_NO_DIGITS_BEFORE "(?:(?:0 ?[1-9]|1\\d|2\\d|3[01])" HARK_PAUSE
                          "(?:0 ?[1-9]|1[0-2])|"
                          "(?:0 ?[1-9]|1[0-2])" HARK_PAUSE "(?:1\\d|2\\d|3[01]))" HARK_PAUSE
                          "(?:19|20) ?(?:\\d\\d|0 ?\\d)(?!\\d)(?![ ,.\\-/]{1,2}\\d)";
// The same after a word that says so, where days and months of one digit do as well.
constexpr const char* kLabelledDate =
    "(?i)\\b(?:d\\.?o\\.?b|born|birth|birthday|birthdate)\\b\\.?(?: date)?(?: is| was)?(?: "
    "on)?[:,]? ?"
    "\\K(?:0 ?[1-9]|[12]\\d|3[01]|[1-9])(?: |, ?|[/.\\-])(?:0 ?[1-9]|[12]\\d|3[01]|[1-9])"
    "(?: |, ?|[/.\\-])(?:(?:19|20) ?(?:\\d\\d|0 ?\\d)|\\d\\d)(?!\\d)";
constexpr const char* kNamedDate =
    "\\b(?:" HARK_MONTH "(?:,? (?:the )?" HARK_DAY "(?:,?(?: of)? " HARK_YEAR
    ")?|,?(?: of)? " HARK_FULL_YEAR ")|(?:(?i:the) )?" HARK_DAY
    "(?: (?i:day of|of))?(?:,? |-)" HARK_MONTH "(?:(?:,?(?: of)? |-)" HARK_YEAR ")?)";
// German, French, Spanish, Italian, Portuguese, each month in this order.
#define HARK_FOREIGN_MONTH                                                               \
    "\\b(?:januar|jänner|janvier|enero|gennaio|janeiro|"                                \
    "februar|février|fevrier|febrero|febbraio|fevereiro|"                               \
    "märz|maerz|mars|marzo|março|marco|april|avril|abril|aprile|"                      \
    "mai|mayo|maggio|maio|juni|juin|junio|giugno|junho|juli|juillet|julio|luglio|julho|" \
    "august|août|aout|agosto|september|septembre|septiembre|settembre|setembro|"        \
    "oktober|octobre|octubre|ottobre|outubro|november|novembre|noviembre|novembro|"      \
    "dezember|décembre|decembre|diciembre|dicembre|dezembro)\\b"
#define HARK_FOREIGN_YEAR ",? (?:del? )?(?:1[89]|20)\\d\\d\\b"
constexpr const char* kForeignDate =
    "(?i)(?<![\\d.,])(?:3[01]|[12]\\d|0?[1-9])(?:\\.|er|º|°)? (?:de )?" HARK_FOREIGN_MONTH
    "(?:" HARK_FOREIGN_YEAR ")?|(?i)" HARK_FOREIGN_MONTH HARK_FOREIGN_YEAR;

void add_matches(const Regex& pattern, std::string_view text, Kind kind,
                 std::vector<Finding>& findings) {
    pattern.for_each_match(text, [&](size_t begin, const Regex::Groups& groups) {
        findings.push_back({begin, begin + groups[0].size(), kind});
    });
}

}  // namespace

Finder::Finder(std::vector<Kind> kinds, WordList words)
    : kinds_(std::move(kinds)),
      words_(std::move(words)),
      numeric_date_(kNumericDate),
      spaced_date_(kSpacedDate),
      labelled_date_(kLabelledDate),
      named_date_(kNamedDate),
      foreign_date_(kForeignDate) {
    kinds_.push_back(Kind::listed);
}

std::vector<Finding> Finder::find(std::string_view text) const {
    std::vector<Finding> findings = words_.find(text);
    const FiguresText plain = with_plain_marks(text);
    for (const Finding& found : emails_.find(plain.text))
        findings.push_back(plain.in_original(found));
    FiguresText figures = join_spoken_digits(plain.text);
    std::vector<Finding> in_figures = find_ibans(figures);
    for (const Regex* date :
         {&numeric_date_, &spaced_date_, &labelled_date_, &named_date_, &foreign_date_})
        add_matches(*date, figures.text, Kind::date, in_figures);
    // Their digits are no telephone number.
    for (const Finding& found : in_figures)
        std::fill(figures.text.begin() + static_cast<ptrdiff_t>(found.begin),
                  figures.text.begin() + static_cast<ptrdiff_t>(found.end), '#');
    for (const Finding& found : find_digit_runs(figures)) in_figures.push_back(found);
    for (const Finding& found : in_figures)
        findings.push_back(plain.in_original(figures.in_original(found)));
    std::erase_if(findings, [&](const Finding& finding) {
        return std::find(kinds_.begin(), kinds_.end(), finding.kind) == kinds_.end();
    });
    return merged(std::move(findings));
}

}  // namespace hark::redact
