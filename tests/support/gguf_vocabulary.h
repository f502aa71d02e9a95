// A tokenizer.json's vocabulary in a GGUF file, as llama.cpp's converter writes it.
#pragma once

#include <string>
#include <vector>

#include "core/json/json.h"
#include "support/gguf_writer.h"

namespace hark::test {

// `rows` tokens: those after the vocabulary's are padding.
inline void add_vocabulary(GgufWriter& file, const nlohmann::json& tokenizer, size_t rows) {
    constexpr int32_t kNormal = 1, kControl = 3, kUnused = 5;
    std::vector<std::string> tokens(rows), merges;
    std::vector<int32_t> types(rows, kUnused);
    for (size_t id = 0; id < rows; ++id) tokens[id] = "[PAD" + std::to_string(id) + "]";
    for (const auto& [token, id] : tokenizer["model"]["vocab"].items()) {
        tokens.at(id) = token;
        types.at(id) = kNormal;
    }
    for (const auto& token : tokenizer["added_tokens"]) {
        tokens.at(token["id"]) = token["content"];
        types.at(token["id"]) = kControl;
    }
    for (const auto& merge : tokenizer["model"]["merges"])
        merges.push_back(merge.is_string()
                             ? merge.get<std::string>()
                             : merge[0].get<std::string>() + " " + merge[1].get<std::string>());
    file.text("tokenizer.ggml.model", "gpt2");
    file.text("tokenizer.ggml.pre", "gpt-2");
    file.texts("tokenizer.ggml.tokens", tokens);
    file.i32s("tokenizer.ggml.token_type", types);
    file.texts("tokenizer.ggml.merges", merges);
}

}  // namespace hark::test
