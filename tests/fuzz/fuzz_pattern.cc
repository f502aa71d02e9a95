// Patterns of tokenizer.json: what is accepted matches text from left to right, without overlap,
// and comes to an end.
#include <cstdlib>

#include "core/error.h"
#include "fuzz/target.h"
#include "text/regex.h"
#include "text/tokenizer/pattern.h"
#include "text/utf8.h"

using namespace hark;
using namespace hark::fuzz;

static std::vector<std::string> pattern_seeds() {
    return {std::string(kGpt2Pattern),
            "(?i:'s|'t)|[^\\r\\n\\p{L}]?\\p{L}+|\\p{N}{1,3}",
            "\\s+(?!\\S)|\\S",
            "[!\\[\\]\\\\^]+|\\u0041",
            "(?:a|b)*c?",
            "(?:(?=a)(a|b))*",
            "^|$"};
}

namespace {

void attempt_match(const std::string& text) {
    try {
        Regex(text).matches("it's 12");
    } catch (const Error&) {
    }
}

}  // namespace

static int pattern_input(const uint8_t* data, size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), std::min<size_t>(size, 200));
    if (!is_valid_utf8(text)) return 0;
    attempt_match(text);
    try {
        const Pattern pattern = Pattern::regex(text, "P");
        const std::string sample =
            "it's  12345 \xE2\x82\xAC\n\n aaaaab " + text + std::string(3000, 'a');
        size_t done = 0;
        Pattern::Search search(pattern, sample);
        for (size_t matches = 0;; ++matches) {
            const Pattern::Match match = search.next();
            if (!match.found) break;
            if (match.begin < done || match.end < match.begin || matches > 2 * sample.size() + 2)
                std::abort();
            done = match.end;
        }
    } catch (const Error&) {
    }
    return 0;
}

static const hark::fuzz::Target kPattern{"pattern", pattern_seeds, pattern_input};
