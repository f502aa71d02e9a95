// A tiny model that says what a test wants: each token of its script follows the one before it,
// whatever else is in the context.
#pragma once

#include <algorithm>
#include <map>

#include "support/family_folder.h"
#include "text/tokenizer.h"

namespace hark::test {

// After the token `begin` the model says the tokens of `script`, and then <|im_end|>. No token is
// there twice. The tokenizer is one of tests/golden/model_tokenizers/ with up to 512 tokens.
inline void write_scripted_model(const std::filesystem::path& folder, const std::string& begin,
                                 const std::string& script,
                                 const std::string& tokenizer = "smollm3") {
    constexpr int64_t kVocabulary = 512;
    const auto golden = nlohmann::ordered_json::parse(
        read_text(source_dir() / "tests/golden/model_tokenizers" / (tokenizer + ".json")));
    const Tokenizer reader =
        Tokenizer::parse_json(golden["tokenizer"].dump(), golden["config"].dump(), tokenizer);
    std::vector<int32_t> ids = reader.encode(begin, {.parse_specials = true});
    ASSERT_EQ(ids.size(), 1u) << begin;
    for (const std::string& part : {script, std::string("<|im_end|>")}) {
        const std::vector<int32_t> more = reader.encode(part, {.parse_specials = true});
        ids.insert(ids.end(), more.begin(), more.end());
    }
    std::map<int32_t, int32_t> previous;  // of a token
    for (size_t i = 1; i < ids.size(); ++i)
        ASSERT_TRUE(previous.emplace(ids[i], ids[i - 1]).second)
            << "twice: " << reader.token(ids[i]);
    // Token t is the vector t of a basis; no layer changes it, and the row of the token that
    // follows finds it.
    const auto values = [&](const gpt::TensorSpec& spec, int64_t count) {
        std::vector<float> values(static_cast<size_t>(count));
        if (spec.columns == 0)
            std::fill(values.begin(), values.end(), 1.0f);
        else if (spec.part == gpt::Part::token_table)
            for (int64_t t = 0; t < kVocabulary; ++t)
                values[static_cast<size_t>(t * spec.columns + t)] = 1;
        else if (spec.part == gpt::Part::lm_head)
            for (const auto& [token, before] : previous)
                values[static_cast<size_t>(token * spec.columns + before)] = 1;
        return values;
    };
    write_tiny_model(folder,
                     R"({"model_type": "llama", "vocab_size": 512, "hidden_size": 512,
                         "intermediate_size": 32, "num_hidden_layers": 1,
                         "num_attention_heads": 8, "num_key_value_heads": 1,
                         "max_position_embeddings": 512, "tie_word_embeddings": false,
                         "rms_norm_eps": 1e-6, "eos_token_id": )" +
                         concat(ids.back(), "}"),
                     tokenizer, "model.", values);
}

}  // namespace hark::test
