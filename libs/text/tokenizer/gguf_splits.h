// How text is split, by the name that a GGUF model's key tokenizer.ggml.pre has.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hark {

struct GgufSplit {
    std::vector<std::string_view> patterns;  // each cuts what the one before it left
    bool ignore_merges = false;              // a word that is a token is that token
    bool adds_bos = false;                   // if no key says otherwise
    bool nfc = false;  // text is normalised first, as the model's own tokenizer.json says
};

// Throws Error beginning with `where` for a name that is not known: its text would be cut wrongly
// without a word.
const GgufSplit& gguf_split(const std::string& pre, const std::string& where);

// A name for these patterns, where one has just these; nullptr if none has.
const char* gguf_split_name(const std::vector<std::string>& patterns, bool ignore_merges, bool nfc);

}  // namespace hark
