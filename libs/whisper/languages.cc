#include "whisper/languages.h"

#include <algorithm>
#include <string_view>

namespace hark::whisper {
namespace {

struct Language {
    std::string_view code, name;
};

constexpr Language kLanguages[] = {
    {"af", "afrikaans"},      {"am", "amharic"},     {"ar", "arabic"},
    {"as", "assamese"},       {"az", "azerbaijani"}, {"ba", "bashkir"},
    {"be", "belarusian"},     {"bg", "bulgarian"},   {"bn", "bengali"},
    {"bo", "tibetan"},        {"br", "breton"},      {"bs", "bosnian"},
    {"ca", "catalan"},        {"cs", "czech"},       {"cy", "welsh"},
    {"da", "danish"},         {"de", "german"},      {"el", "greek"},
    {"en", "english"},        {"es", "spanish"},     {"et", "estonian"},
    {"eu", "basque"},         {"fa", "persian"},     {"fi", "finnish"},
    {"fo", "faroese"},        {"fr", "french"},      {"gl", "galician"},
    {"gu", "gujarati"},       {"ha", "hausa"},       {"haw", "hawaiian"},
    {"he", "hebrew"},         {"hi", "hindi"},       {"hr", "croatian"},
    {"ht", "haitian creole"}, {"hu", "hungarian"},   {"hy", "armenian"},
    {"id", "indonesian"},     {"is", "icelandic"},   {"it", "italian"},
    {"ja", "japanese"},       {"jw", "javanese"},    {"ka", "georgian"},
    {"kk", "kazakh"},         {"km", "khmer"},       {"kn", "kannada"},
    {"ko", "korean"},         {"la", "latin"},       {"lb", "luxembourgish"},
    {"ln", "lingala"},        {"lo", "lao"},         {"lt", "lithuanian"},
    {"lv", "latvian"},        {"mg", "malagasy"},    {"mi", "maori"},
    {"mk", "macedonian"},     {"ml", "malayalam"},   {"mn", "mongolian"},
    {"mr", "marathi"},        {"ms", "malay"},       {"mt", "maltese"},
    {"my", "myanmar"},        {"ne", "nepali"},      {"nl", "dutch"},
    {"nn", "nynorsk"},        {"no", "norwegian"},   {"oc", "occitan"},
    {"pa", "punjabi"},        {"pl", "polish"},      {"ps", "pashto"},
    {"pt", "portuguese"},     {"ro", "romanian"},    {"ru", "russian"},
    {"sa", "sanskrit"},       {"sd", "sindhi"},      {"si", "sinhala"},
    {"sk", "slovak"},         {"sl", "slovenian"},   {"sn", "shona"},
    {"so", "somali"},         {"sq", "albanian"},    {"sr", "serbian"},
    {"su", "sundanese"},      {"sv", "swedish"},     {"sw", "swahili"},
    {"ta", "tamil"},          {"te", "telugu"},      {"tg", "tajik"},
    {"th", "thai"},           {"tk", "turkmen"},     {"tl", "tagalog"},
    {"tr", "turkish"},        {"tt", "tatar"},       {"uk", "ukrainian"},
    {"ur", "urdu"},           {"uz", "uzbek"},       {"vi", "vietnamese"},
    {"yi", "yiddish"},        {"yo", "yoruba"},      {"yue", "cantonese"},
    {"zh", "chinese"},
};

// Other names that some of them go by.
constexpr Language kAliases[] = {
    {"my", "burmese"},       {"es", "castilian"}, {"nl", "flemish"},   {"ht", "haitian"},
    {"lb", "letzeburgesch"}, {"zh", "mandarin"},  {"ro", "moldavian"}, {"ro", "moldovan"},
    {"pa", "panjabi"},       {"ps", "pushto"},    {"si", "sinhalese"}, {"ca", "valencian"},
};

}  // namespace

std::string language_code(const std::string& name) {
    std::string lower = name;
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    for (const Language& language : kLanguages)
        if (lower == language.code || lower == language.name) return std::string(language.code);
    for (const Language& language : kAliases)
        if (lower == language.name) return std::string(language.code);
    return name;
}

}  // namespace hark::whisper
