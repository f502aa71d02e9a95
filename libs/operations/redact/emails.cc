#include "operations/redact/emails.h"

#include <algorithm>
#include <cctype>
#include <string>

#include "core/ascii.h"
#include "core/ranges.h"

namespace hark::redact {
namespace {

constexpr const char* kWrittenEmail =
    "[\\p{L}\\p{N}][\\p{L}\\p{N}._%+\\-]*@[\\p{L}\\p{N}](?:[\\p{L}\\p{N}\\-]|\\.(?=[\\p{L}\\p{N}]))"
    "*";
#define HARK_SAID_DOT "(?: dot |\\.| \\. | ?[(\\[](?:dot|\\.)[)\\]] ?)"
#define HARK_HOST_PART "(?:[\\p{L}\\p{N}](?: [\\p{L}\\p{N}]){1,30}|[\\p{L}\\p{N}]+)"
#define HARK_LAST_PART                                                                     \
    "(?:c o m|o r g|n e "                                                                  \
    "t|com|org|net|edu|gov|info|io|ai|eu|de|at|ch|fr|it|es|nl|be|pl|se|no|dk|fi|ie|in|jp|" \
    "cn|br|ca|au|nz|us|uk|co" HARK_SAID_DOT "uk|ac" HARK_SAID_DOT "uk)\\b"
// " at example dot com"; group 1 is an "at" that may be the word. Bounded, as a matcher's
// stack is.
constexpr const char* kAtHost =
    "(?i)(?: at sign |( at | @ )(?!the\\b)| ?@ ?| ?[(\\[](?:at|@)[)\\]] ?)" HARK_HOST_PART
    "(?:(?: (?:dash|hyphen|minus) |-|" HARK_SAID_DOT ")" HARK_HOST_PART
    "){0,12}?" HARK_SAID_DOT HARK_LAST_PART "(?:" HARK_SAID_DOT HARK_LAST_PART "){0,3}";

constexpr size_t kMostParts = 64;  // words of a name

constexpr std::string_view kJoiners[] = {"dot",   "underscore", "dash", "hyphen",
                                         "minus", "plus",       "point"};
constexpr std::string_view kNumbers[] = {
    "zero",    "oh",      "one",       "two",      "three",    "four",    "five",     "six",
    "seven",   "eight",   "nine",      "ten",      "eleven",   "twelve",  "thirteen", "fourteen",
    "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty",  "thirty",   "forty",
    "fifty",   "sixty",   "seventy",   "eighty",   "ninety",   "hundred", "double",   "triple"};
// Words before "at" and a shop or a website ("works at"), or before an address ("mail me at").
constexpr std::string_view kNoNames[] = {
    "a",       "about",    "account",  "address", "again",    "all",      "am",        "an",
    "and",     "anything", "are",      "arrived", "arrives",  "as",       "available", "back",
    "be",      "been",     "began",    "book",    "booked",   "bought",   "but",       "buy",
    "buying",  "buys",     "by",       "call",    "called",   "check",    "cheaper",   "contact",
    "deal",    "director", "down",     "email",   "employed", "engineer", "find",      "for",
    "found",   "from",     "glance",   "go",      "got",      "have",     "he",        "her",
    "here",    "him",      "his",      "i",       "in",       "is",       "it",        "it's",
    "its",     "job",      "join",     "laughed", "laughing", "learn",    "live",      "look",
    "looked",  "looking",  "looks",    "mail",    "manager",  "me",       "meet",      "met",
    "mine",    "more",     "my",       "now",     "of",       "on",       "online",    "or",
    "order",   "ordered",  "our",      "out",     "over",     "page",     "people",    "position",
    "price",   "prices",   "products", "profile", "read",     "reach",    "register",  "role",
    "said",    "sale",     "see",      "seen",    "sell",     "selling",  "sells",     "send",
    "she",     "shop",     "shopping", "shops",   "site",     "so",       "sold",      "something",
    "started", "starts",   "stay",     "staying", "store",    "talk",     "team",      "text",
    "that",    "that's",   "the",      "their",   "them",     "there",    "these",     "they",
    "things",  "this",     "those",    "time",    "to",       "today",    "tomorrow",  "up",
    "us",      "used",     "visit",    "visited", "was",      "we",       "website",   "well",
    "were",    "with",     "work",     "worked",  "working",  "works",    "write",     "yesterday",
    "you",     "your"};

bool is_in_name(char c) {
    return static_cast<unsigned char>(c) >= 0x80 || std::isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("._%+-'").find(c) != std::string_view::npos;
}

bool is_capital(char c) { return c >= 'A' && c <= 'Z'; }

// The words before an "at", from the last one on.
class NameBefore {
  public:
    NameBefore(std::string_view text, size_t end) : text_(text), begin_(end), end_(end) {}

    // Where the name begins; `end` if there is none. With `strict`, a
    // single word of kNoNames is none.
    size_t begin(bool strict) {
        std::string last = word_before(end_);
        if (last.empty()) return end_;
        begin_ = end_ - last.size();
        const std::string only = last;
        size_t parts = 1;
        for (; parts < kMostParts && take_one(last); ++parts) continue;
        if (strict && parts == 1 && contains(kNoNames, ascii_lower(only))) return end_;
        return begin_;
    }

  private:
    // The word that ends at `end`, without marks at its beginning.
    std::string word_before(size_t end) const {
        size_t begin = end;
        while (begin > 0 && is_in_name(text_[begin - 1])) --begin;
        while (begin < end && std::string_view("._%+-'").find(text_[begin]) != std::string::npos)
            ++begin;
        return std::string(text_.substr(begin, end - begin));
    }
    static bool is_single(const std::string& word) {
        return word.size() == 1 && std::isalnum(static_cast<unsigned char>(word[0]));
    }
    static bool is_number_word(const std::string& word) {
        return contains(kNumbers, ascii_lower(word)) ||
               word.find_first_not_of("0123456789") == std::string::npos;
    }

    // Takes the word before `last`, with "dot" and the like between, if it is of the same name.
    bool take_one(std::string& last) {
        size_t end = begin_;
        if (end == 0 || text_[end - 1] != ' ') return false;
        --end;
        // "a, n, n, a"
        const bool comma = end > 0 && text_[end - 1] == ',';
        if (comma) --end;
        std::string word = word_before(end);
        if (word.empty()) return false;
        if (!comma && contains(kJoiners, ascii_lower(word))) {
            end -= word.size();
            if (end == 0 || text_[end - 1] != ' ') return false;
            word = word_before(--end);
            if (word.empty()) return false;
        } else if (!continues(word, last, comma)) {
            return false;
        }
        begin_ = end - word.size();
        last = word;
        return true;
    }

    // Whether both are of one name: "anna forty", "a n", "j smith", "Anna Schmidt".
    static bool continues(const std::string& word, const std::string& last, bool comma) {
        if (is_single(word) && is_single(last)) return true;
        if (comma) return false;
        const bool name = !contains(kNoNames, ascii_lower(word));
        if (is_number_word(last)) return name;
        return name && (is_single(word) || is_number_word(word) ||
                        (is_capital(word[0]) && is_capital(last[0]) && word.back() != '.'));
    }

    std::string_view text_;
    size_t begin_, end_;
};

}  // namespace

EmailFinder::EmailFinder() : written_(kWrittenEmail), at_host_(kAtHost) {}

std::vector<Finding> EmailFinder::find(std::string_view text) const {
    std::vector<Finding> findings;
    written_.for_each_match(text, [&](size_t begin, const Regex::Groups& groups) {
        findings.push_back({begin, begin + groups[0].size(), Kind::email});
    });
    at_host_.for_each_match(text, [&](size_t begin, const Regex::Groups& groups) {
        const size_t name = NameBefore(text, begin).begin(!groups[1].empty());
        if (name < begin) findings.push_back({name, begin + groups[0].size(), Kind::email});
    });
    return findings;
}

}  // namespace hark::redact
