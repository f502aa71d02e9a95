// The special tokens of files that carry ranks alone.
#include <string>

#include "core/error.h"
#include "whisper/tokenizer.h"

namespace hark::whisper {
namespace {

// In the order of their tokens. Source: openai/whisper tokenizer.py, LANGUAGES.
constexpr const char* kLanguages[] = {
    "en", "zh", "de", "es",  "ru", "ko", "fr", "ja", "pt", "tr", "pl", "ca", "nl", "ar", "sv",
    "it", "id", "hi", "fi",  "vi", "he", "uk", "el", "ms", "cs", "ro", "da", "hu", "ta", "no",
    "th", "ur", "hr", "bg",  "lt", "la", "mi", "ml", "cy", "sk", "te", "fa", "lv", "bn", "sr",
    "az", "sl", "kn", "et",  "mk", "br", "eu", "is", "hy", "ne", "mn", "bs", "kk", "sq", "sw",
    "gl", "mr", "pa", "si",  "km", "sn", "yo", "so", "af", "oc", "ka", "be", "tg", "sd", "gu",
    "am", "yi", "lo", "uz",  "fo", "ht", "ps", "tk", "nn", "mt", "sa", "lb", "my", "bo", "tl",
    "mg", "as", "tt", "haw", "ln", "ha", "ba", "jw", "su", "yue"};
constexpr int64_t kTimestamps = 1501;     // <|0.00|> to <|30.00|>
constexpr int64_t kOthers = 8;            // all but languages and timestamps
constexpr int64_t kEnglishVocab = 51864;  // of the .en models

// "<|1.50|>" of 75, in steps of 20 ms.
std::string timestamp(int64_t step) {
    const std::string hundredths = std::to_string(step * 2 % 100);
    return concat("<|", step * 2 / 100, hundredths.size() == 1 ? ".0" : ".", hundredths, "|>");
}

}  // namespace

Tokenizer official_tokenizer(Bpe ranks, int64_t n_vocab) {
    const int64_t languages = n_vocab - ranks.vocab_size() - kTimestamps - kOthers;
    const int64_t known = static_cast<int64_t>(std::size(kLanguages));
    require(languages >= 1 && languages <= known, "a vocabulary of ", ranks.vocab_size(),
            " ranks: expected a model of ", ranks.vocab_size() + kTimestamps + kOthers,
            " and 1 to ", known, " languages' tokens more, found one of ", n_vocab);
    int32_t next = ranks.vocab_size();
    const auto add = [&](const std::string& content) { ranks.add_special(content, next++); };
    add("<|endoftext|>");
    add("<|startoftranscript|>");
    for (int64_t i = 0; i < languages; ++i) add(concat("<|", kLanguages[i], "|>"));
    for (const char* content : {"<|translate|>", "<|transcribe|>", "<|startoflm|>",
                                "<|startofprev|>", "<|nospeech|>", "<|notimestamps|>"})
        add(content);
    for (int64_t i = 0; i < kTimestamps; ++i) add(timestamp(i));
    const char* kind =
        n_vocab == kEnglishVocab ? R"({"is_multilingual": false})" : R"({"is_multilingual": true})";
    SpecialTokens special = find_special_tokens(ranks, kind, n_vocab, "the special tokens");
    return Tokenizer(std::move(ranks), std::move(special));
}

}  // namespace hark::whisper
