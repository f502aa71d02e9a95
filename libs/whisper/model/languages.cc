#include "whisper/model/languages.h"

#include <string_view>

#include "core/ascii.h"

namespace hark::whisper {
namespace {

struct Language {
    std::string_view code, name;
};

// In the order of their tokens.
constexpr Language kLanguages[] = {
    {"en", "english"},        {"zh", "chinese"},     {"de", "german"},        {"es", "spanish"},
    {"ru", "russian"},        {"ko", "korean"},      {"fr", "french"},        {"ja", "japanese"},
    {"pt", "portuguese"},     {"tr", "turkish"},     {"pl", "polish"},        {"ca", "catalan"},
    {"nl", "dutch"},          {"ar", "arabic"},      {"sv", "swedish"},       {"it", "italian"},
    {"id", "indonesian"},     {"hi", "hindi"},       {"fi", "finnish"},       {"vi", "vietnamese"},
    {"he", "hebrew"},         {"uk", "ukrainian"},   {"el", "greek"},         {"ms", "malay"},
    {"cs", "czech"},          {"ro", "romanian"},    {"da", "danish"},        {"hu", "hungarian"},
    {"ta", "tamil"},          {"no", "norwegian"},   {"th", "thai"},          {"ur", "urdu"},
    {"hr", "croatian"},       {"bg", "bulgarian"},   {"lt", "lithuanian"},    {"la", "latin"},
    {"mi", "maori"},          {"ml", "malayalam"},   {"cy", "welsh"},         {"sk", "slovak"},
    {"te", "telugu"},         {"fa", "persian"},     {"lv", "latvian"},       {"bn", "bengali"},
    {"sr", "serbian"},        {"az", "azerbaijani"}, {"sl", "slovenian"},     {"kn", "kannada"},
    {"et", "estonian"},       {"mk", "macedonian"},  {"br", "breton"},        {"eu", "basque"},
    {"is", "icelandic"},      {"hy", "armenian"},    {"ne", "nepali"},        {"mn", "mongolian"},
    {"bs", "bosnian"},        {"kk", "kazakh"},      {"sq", "albanian"},      {"sw", "swahili"},
    {"gl", "galician"},       {"mr", "marathi"},     {"pa", "punjabi"},       {"si", "sinhala"},
    {"km", "khmer"},          {"sn", "shona"},       {"yo", "yoruba"},        {"so", "somali"},
    {"af", "afrikaans"},      {"oc", "occitan"},     {"ka", "georgian"},      {"be", "belarusian"},
    {"tg", "tajik"},          {"sd", "sindhi"},      {"gu", "gujarati"},      {"am", "amharic"},
    {"yi", "yiddish"},        {"lo", "lao"},         {"uz", "uzbek"},         {"fo", "faroese"},
    {"ht", "haitian creole"}, {"ps", "pashto"},      {"tk", "turkmen"},       {"nn", "nynorsk"},
    {"mt", "maltese"},        {"sa", "sanskrit"},    {"lb", "luxembourgish"}, {"my", "myanmar"},
    {"bo", "tibetan"},        {"tl", "tagalog"},     {"mg", "malagasy"},      {"as", "assamese"},
    {"tt", "tatar"},          {"haw", "hawaiian"},   {"ln", "lingala"},       {"ha", "hausa"},
    {"ba", "bashkir"},        {"jw", "javanese"},    {"su", "sundanese"},     {"yue", "cantonese"},
};

// Aliases.
constexpr Language kAliases[] = {
    {"my", "burmese"},       {"es", "castilian"}, {"nl", "flemish"},   {"ht", "haitian"},
    {"lb", "letzeburgesch"}, {"zh", "mandarin"},  {"ro", "moldavian"}, {"ro", "moldovan"},
    {"pa", "panjabi"},       {"ps", "pushto"},    {"si", "sinhalese"}, {"ca", "valencian"},
};

}  // namespace

std::vector<std::string> language_names(const std::string& code) {
    std::vector<std::string> names = {code};
    const auto add = [&](std::string_view name) {
        names.emplace_back(name);
        bool begins = true;  // of a word
        for (char& c : names.back()) {
            if (begins && c >= 'a' && c <= 'z') c = static_cast<char>(c - 32);
            begins = c == ' ';
        }
    };
    for (const Language& language : kLanguages)
        if (language.code == code) add(language.name);
    for (const Language& language : kAliases)
        if (language.code == code) add(language.name);
    return names;
}

std::vector<std::string> language_codes() {
    std::vector<std::string> codes;
    for (const Language& language : kLanguages) codes.emplace_back(language.code);
    return codes;
}

std::string language_code(const std::string& name) {
    const std::string lower = ascii_lower(name);
    for (const Language& language : kLanguages)
        if (lower == language.code || lower == language.name) return std::string(language.code);
    for (const Language& language : kAliases)
        if (lower == language.name) return std::string(language.code);
    return name;
}

}  // namespace hark::whisper
