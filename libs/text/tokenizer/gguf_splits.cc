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
                             "gpt-4o", "tekken", "deepseek-v3"}) {
        const GgufSplit& split = splits().at(name);
        if (split.ignore_merges == ignore_merges && split.nfc == nfc &&
            std::equal(patterns.begin(), patterns.end(), split.patterns.begin(),
                       split.patterns.end()))
            return name;
    }
    return nullptr;
}

}  // namespace hark
