#include "eval/normalizer.h"

#include <vector>

#include "eval/english_numbers.h"
#include "eval/english_spellings.h"
#include "text/regex.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace hark {
namespace {

// Python's re.sub(OPEN[^CLOSE]*CLOSE, "") without its quadratic time if nothing closes.
std::string remove_enclosed(std::string_view text, const char* open, const char* close,
                            bool also_empty) {
    std::string out;
    size_t done = 0, from = 0;
    for (;;) {
        const size_t begin = text.find_first_of(open, from);
        const size_t end = begin == text.npos ? begin : text.find_first_of(close, begin + 1);
        if (end == text.npos) break;
        from = begin + 1;
        if (end == begin + 1 && !also_empty) continue;
        out += text.substr(done, begin - done);
        done = from = end + 1;
    }
    return out += text.substr(done);
}

std::string remove_bracketed(std::string_view text) {
    return remove_enclosed(remove_enclosed(text, "<[", ">]", true), "(", ")", false);
}

// Letters that stay whole in NFKD.
std::string_view letter_without_stroke(char32_t c) {
    switch (c) {
        case U'œ':
            return "oe";
        case U'Œ':
            return "OE";
        case U'ø':
            return "o";
        case U'Ø':
            return "O";
        case U'æ':
            return "ae";
        case U'Æ':
            return "AE";
        case U'ß':
            return "ss";
        case U'ẞ':
            return "SS";
        case U'đ':
        case U'ð':
            return "d";
        case U'Đ':
        case U'Ð':
            return "D";
        case U'þ':
        case U'Þ':
            return "th";
        case U'ł':
            return "l";
        case U'Ł':
            return "L";
        default:
            return "";
    }
}

bool is_symbol(char32_t c) {
    const char kind = category_class(c);
    return kind == 'M' || kind == 'S' || kind == 'P';
}

std::string without_symbols(std::string_view text) {
    std::string out;
    for (char32_t c : to_code_points(nfkc(text))) append_code_point(out, is_symbol(c) ? U' ' : c);
    return out;
}

std::string without_symbols_and_diacritics(std::string_view text, std::u32string_view keep) {
    std::string out;
    for (char32_t c : to_code_points(nfkd(text))) {
        if (keep.find(c) != keep.npos)
            append_code_point(out, c);
        else if (const std::string_view letters = letter_without_stroke(c); !letters.empty())
            out += letters;
        else if (!is_nonspacing_mark(c))
            append_code_point(out, is_symbol(c) ? U' ' : c);
    }
    return out;
}

// Every run of white space as one space.
std::string with_single_spaces(std::string_view text) {
    std::string out;
    bool in_space = false;
    for (size_t at = 0; at < text.size();) {
        const char32_t c = next_code_point(text, at);
        const bool space = is_space(c);
        if (!space)
            append_code_point(out, c);
        else if (!in_space)
            out += ' ';
        in_space = space;
    }
    return out;
}

// One step of the English normaliser.
struct Replacement {
    Regex pattern;
    std::string with;
};

// Steps in the order of english.py: each sees what the ones before it have left.
std::vector<Replacement> contraction_steps() {
    std::vector<Replacement> steps;
    const auto add = [&](const std::string& pattern, const std::string& with) {
        steps.push_back({Regex(pattern), with});
    };
    const auto add_word = [&](const std::string& word, const std::string& with) {
        add(HARK_RE_BEGIN + word + HARK_RE_END, with);
    };
    const auto add_ending = [&](const std::string& ending, const std::string& with) {
        add(ending + HARK_RE_END, with);
    };
    add_word("(?:hmm|mm|mhm|mmm|uh|um)", "");
    // A space ahead of an apostrophe. The first condition keeps long runs of spaces cheap.
    add("(?<![" HARK_RE_SPACES "])[" HARK_RE_SPACES "]++'", "'");
    const std::pair<const char*, const char*> kWords[] = {
        {"won't", "will not"},      {"can't", "can not"},     {"let's", "let us"},
        {"ain't", "aint"},          {"y'all", "you all"},     {"wanna", "want to"},
        {"gotta", "got to"},        {"gonna", "going to"},    {"i'ma", "i am going to"},
        {"imma", "i am going to"},  {"woulda", "would have"}, {"coulda", "could have"},
        {"shoulda", "should have"}, {"ma'am", "madam"},
    };
    for (const auto& [word, with] : kWords) add_word(word, with);
    // Titles keep the space after their period, and gain one.
    const std::pair<const char*, const char*> kTitles[] = {
        {"mr", "mister"},       {"mrs", "missus"},         {"st", "saint"},
        {"dr", "doctor"},       {"prof", "professor"},     {"capt", "captain"},
        {"gov", "governor"},    {"ald", "alderman"},       {"gen", "general"},
        {"sen", "senator"},     {"rep", "representative"}, {"pres", "president"},
        {"rev", "reverend"},    {"hon", "honorable"},      {"asst", "assistant"},
        {"assoc", "associate"}, {"lt", "lieutenant"},      {"col", "colonel"},
        {"jr", "junior"},       {"sr", "senior"},          {"esq", "esquire"},
    };
    for (const auto& [word, with] : kTitles) add_word(word, std::string(with) + " ");
    const std::pair<const char*, const char*> kEndings[] = {
        {"'d been", " had been"},
        {"'s been", " has been"},
        {"'d gone", " had gone"},
        {"'s gone", " has gone"},
        {"'d done", " had done"},
        {"'s got", " has got"},
        {"n't", " not"},
        {"'re", " are"},
        {"'s", " is"},
        {"'d", " would"},
        {"'ll", " will"},
        {"'t", " not"},
        {"'ve", " have"},
        {"'m", " am"},
    };
    for (const auto& [ending, with] : kEndings) add_ending(ending, with);
    add("(\\p{Nd}),(\\p{Nd})", "\\1\\2");
    add("\\.([^0-9]|$)", " \\1");
    return steps;
}

std::vector<Replacement> symbol_steps() {
    std::vector<Replacement> steps;
    steps.push_back({Regex("[.$¢€£]([^0-9])"), " \\1"});
    steps.push_back({Regex("([^0-9])%"), "\\1 "});
    return steps;
}

}  // namespace

std::string normalize_basic(std::string_view text, const BasicNormalizerOptions& options) {
    std::string s = remove_bracketed(lower_case(text));
    s = lower_case(options.remove_diacritics ? without_symbols_and_diacritics(s, U"")
                                             : without_symbols(s));
    if (options.split_letters) {
        std::string letters;
        for (std::string_view cluster : grapheme_clusters(s)) {
            if (!letters.empty()) letters += ' ';
            letters += cluster;
        }
        s = std::move(letters);
    }
    return with_single_spaces(s);
}

std::string normalize_english(std::string_view text) {
    static const std::vector<Replacement> kContractions = contraction_steps();
    static const std::vector<Replacement> kSymbols = symbol_steps();
    std::string s = remove_bracketed(lower_case(text));
    for (const auto& [pattern, with] : kContractions) s = pattern.replace(s, with);
    s = without_symbols_and_diacritics(s, U".%$¢€£");
    s = normalize_english_spellings(normalize_english_numbers(s));
    for (const auto& [pattern, with] : kSymbols) s = pattern.replace(s, with);
    return with_single_spaces(s);
}

}  // namespace hark
