// The patterns are those of the models' own tokenizer.json files; llama.cpp quotes each next to
// the form that it runs. Source: llama.cpp src/llama-vocab.cpp, llm_tokenizer_bpe.
#include "text/tokenizer/gguf_splits.h"

#include <algorithm>
#include <map>

#include "core/error.h"
#include "core/ranges.h"
#include "text/tokenizer/pattern.h"

namespace hark {
namespace {

// Llama 3's, which is tiktoken's cl100k_base; Qwen's cuts numbers into single digits.
constexpr std::string_view kLlama3 =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|"
    " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
constexpr std::string_view kQwen2 =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|"
    " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
// tiktoken's o200k_base, and Mistral's without contractions.
constexpr std::string_view kGpt4o =
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+"
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*"
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    "\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
constexpr std::string_view kTekken =
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+|"
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*|"
    "\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
// DeepSeek V3's second and third; han, hiragana and katakana are words of their own.
constexpr std::string_view kDeepSeekCjk =
    "[\xE4\xB8\x80-\xE9\xBE\xA5\xE3\x81\x80-\xE3\x82\x9F\xE3\x82\xA0-\xE3\x83\xBF]+";
constexpr std::string_view kDeepSeek =
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|"
    "[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|"
    "\\s+(?!\\S)|\\s+";

// DeepSeek LLM's and V2's, after each end of a line alone: letters of alphabets with two cases, as
// an older Unicode has them; marks; spaces at the end; CJK. Digits follow, one by one.
constexpr std::string_view kDeepSeekLetters =
    "\\s?[A-Za-z\u00B5\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u01BA\u01BC-\u01BF\u01C4-\u0293"
    "\u0295-\u02AF\u0370-\u0373\u0376\u0377\u037B-\u037D\u037F\u0386\u0388-\u038A\u038C"
    "\u038E-\u03A1\u03A3-\u03F5\u03F7-\u0481\u048A-\u052F\u0531-\u0556\u10A0-\u10C5"
    "\u13A0-\u13F5\u13F8-\u13FD\u1C90-\u1CBA\u1CBD-\u1CBF\u1D00-\u1D2B\u1D6B-\u1D77"
    "\u1D79-\u1D9A\u1E00-\u1F15\u1F18-\u1F1D\u1F20-\u1F45\u1F48-\u1F4D\u1F50-\u1F57\u1F59\u1F5B"
    "\u1F5D\u1F5F-\u1F7D\u1F80-\u1FB4\u1FB6-\u1FBC\u1FBE\u1FC2-\u1FC4\u1FC6-\u1FCC\u1FD0-\u1FD3"
    "\u1FD6-\u1FDB\u1FE0-\u1FEC\u1FF2-\u1FF4\u1FF6-\u1FFC\u2102\u2107\u210A-\u2113\u2115"
    "\u2119-\u211D\u2124\u2126\u2128\u212A-\u212D\u212F-\u2134\u2139\u213C-\u213F\u2145-\u2149"
    "\u214E\u2183\u2184\u2C00-\u2C7B\u2C7E-\u2CE4\u2CEB-\u2CEE\u2CF2\u2CF3\uA640-\uA66D"
    "\uA680-\uA69B\uA722-\uA76F\uA771-\uA787\uA78B-\uA78E\uAB70-\uABBF\uFB00-\uFB06"
    "\uFB13-\uFB17\uFF21-\uFF3A\uFF41-\uFF5A\U00010400-\U0001044F\U000104B0-\U000104D3"
    "\U000104D8-\U000104FB\U00010C80-\U00010CB2\U00010CC0-\U00010CF2\U000118A0-\U000118DF"
    "\U0001E900-\U0001E943]+";
constexpr std::string_view kDeepSeekMarks =
    "\\s?[!-/:-~\uFF01-\uFF0F\uFF1A-\uFF5E\u2018-\u201F\u3000-\u3002]+";
constexpr std::string_view kDeepSeekWideCjk = "[\u4E00-\u9FA5\u0800-\u4E00\uAC00-\uD7FF]+";

// llama.cpp's own, for models whose split its converter does not know.
constexpr std::string_view kDefaultMarks = "[\\p{P}\\$\\+<=>\\^~\\|]+";
constexpr std::string_view kDefaultWords =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)";

const std::map<std::string, GgufSplit>& splits() {
    static const std::map<std::string, GgufSplit> kSplits = [] {
        const GgufSplit gpt2{{kGpt2Pattern}}, digits{{"\\p{N}", kGpt2Pattern}};
        const GgufSplit llama3{{kLlama3}, true, true}, cl100k{{kLlama3}};
        const GgufSplit qwen2{{kQwen2}, false, false, true}, digit{{kQwen2}};
        const GgufSplit gpt4o{{kGpt4o}}, tekken{{kTekken}, true, true};
        const GgufSplit deepseek{{"\\p{N}{1,3}", kDeepSeekCjk, kDeepSeek}};
        const GgufSplit deepseek2{
            {"[\r\n]", kDeepSeekLetters, kDeepSeekMarks, "\\s+$", kDeepSeekWideCjk, "\\p{N}"}};
        const GgufSplit plain{{kDefaultMarks, kDefaultWords, "\\p{N}+", "[0-9][0-9][0-9]"}};
        return std::map<std::string, GgufSplit>{{"default", plain},
                                                {"gpt-2", gpt2},
                                                {"olmo", gpt2},
                                                {"phi-2", gpt2},
                                                {"smollm", digits},
                                                {"starcoder", digits},
                                                {"refact", digits},
                                                {"command-r", digits},
                                                {"codeshell", digits},
                                                {"llama-bpe", llama3},
                                                {"llama3", llama3},
                                                {"llama-v3", llama3},
                                                {"falcon3", llama3},
                                                {"pixtral", llama3},
                                                {"lfm2", llama3},
                                                {"dbrx", cl100k},
                                                {"smaug-bpe", cl100k},
                                                {"qwen2", qwen2},
                                                {"deepseek-r1-qwen", digit},
                                                {"stablelm2", digit},
                                                {"gpt-4o", gpt4o},
                                                {"llama4", gpt4o},
                                                {"tekken", tekken},
                                                {"deepseek-llm", deepseek2},
                                                {"deepseek-v3", deepseek}};
    }();
    return kSplits;
}

}  // namespace

const GgufSplit& gguf_split(const std::string& pre, const std::string& where) {
    const auto found = splits().find(pre);
    if (found != splits().end()) return found->second;
    fail(where, ": key 'tokenizer.ggml.pre': the split '", pre,
         "' is not supported: expected one of ",
         joined(splits(), ", ", [](const auto& known) { return known.first; }));
}

const char* gguf_split_name(const std::vector<std::string>& patterns, bool ignore_merges,
                            bool nfc) {
    // Of names for the same split the one that llama.cpp has had longest.
    for (const char* name : {"gpt-2", "smollm", "llama-bpe", "dbrx", "qwen2", "deepseek-r1-qwen",
                             "gpt-4o", "tekken", "deepseek-llm", "deepseek-v3"}) {
        const GgufSplit& split = splits().at(name);
        if (split.ignore_merges == ignore_merges && split.nfc == nfc &&
            std::equal(patterns.begin(), patterns.end(), split.patterns.begin(),
                       split.patterns.end()))
            return name;
    }
    return nullptr;
}

}  // namespace hark
