// The vocabulary of a GGUF model, as llama.cpp's converter writes GPT-2's.
// Source: ggml's docs/gguf.md, "Tokenizer"; gguf-py's constants.py, TokenType.
#include "core/error.h"
#include "formats/gguf.h"
#include "text/bpe_builder.h"
#include "text/tokenizer/piece_type.h"

namespace hark {
namespace {

// Only GPT-2's pattern is ours; older files do not name theirs.
void check_kind(const GgufFile& file) {
    const auto expect = [&](const std::string& key, std::string_view expected) {
        const std::string_view found = file.text(key);
        require(found == expected, file.name(), ": key '", key, "': expected ", expected,
                ", byte-level BPE with GPT-2's pattern, found '", found, "'");
    };
    expect("tokenizer.ggml.model", "gpt2");
    if (file.has("tokenizer.ggml.pre")) expect("tokenizer.ggml.pre", "gpt-2");
}

}  // namespace

Bpe Bpe::from_gguf(const GgufFile& file) {
    check_kind(file);
    const auto tokens = file.texts("tokenizer.ggml.tokens");
    std::vector<int64_t> types(tokens.size(), 1);
    const std::string types_key = "tokenizer.ggml.token_type";
    if (file.has(types_key)) types = file.integers(types_key);
    require(types.size() == tokens.size(), file.name(), ": key '", types_key, "': expected ",
            tokens.size(), " types, one a token, found ", types.size());
    BpeBuilder builder(file.name());
    for (size_t id = 0; id < tokens.size(); ++id) {
        const std::string token(tokens[id]);
        const auto number = static_cast<int32_t>(id);
        if (types[id] == kControl || types[id] == kUserDefined)
            builder.added(token, number, types[id] == kControl);
        else if (types[id] != kUnused)  // the padding of a model's table
            builder.token(token, number);
    }
    const auto merges = file.texts("tokenizer.ggml.merges");
    for (size_t i = 0; i < merges.size(); ++i)
        builder.merge(merges[i], concat(file.name(), ": merge ", i));
    const std::string prefix = "tokenizer.ggml.add_space_prefix";
    return builder.finish(file.has(prefix) && file.boolean(prefix), false);
}

}  // namespace hark
