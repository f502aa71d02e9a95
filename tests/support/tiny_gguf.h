// A tiny GPT-2 that was trained for nothing, as GGUF files with the demo's tokenizer.
#pragma once

#include <string>
#include <vector>

#include "core/json/json.h"
#include "support/gguf_vocabulary.h"
#include "support/process.h"

namespace hark::test {

// The bytes of one file, or of each part of a model that is split.
inline std::vector<std::string> tiny_gguf(int parts = 1, const std::string& license = "mit") {
    constexpr uint64_t kRows = 4096, kChannels = 16, kInner = 32, kPositions = 32;
    struct Entry {
        std::string name;
        std::vector<uint64_t> dims;
    };
    const std::string b = "blk.0.";
    const std::vector<Entry> entries = {{"token_embd.weight", {kChannels, kRows}},
                                        {"position_embd.weight", {kChannels, kPositions}},
                                        {b + "attn_norm.weight", {kChannels}},
                                        {b + "attn_norm.bias", {kChannels}},
                                        {b + "attn_qkv.weight", {kChannels, 3 * kChannels}},
                                        {b + "attn_qkv.bias", {3 * kChannels}},
                                        {b + "attn_output.weight", {kChannels, kChannels}},
                                        {b + "attn_output.bias", {kChannels}},
                                        {b + "ffn_norm.weight", {kChannels}},
                                        {b + "ffn_norm.bias", {kChannels}},
                                        {b + "ffn_up.weight", {kChannels, kInner}},
                                        {b + "ffn_up.bias", {kInner}},
                                        {b + "ffn_down.weight", {kInner, kChannels}},
                                        {b + "ffn_down.bias", {kChannels}},
                                        {"output_norm.weight", {kChannels}},
                                        {"output_norm.bias", {kChannels}}};
    std::vector<GgufWriter> files(static_cast<size_t>(parts));
    GgufWriter& first = files.front();
    first.text("general.architecture", "gpt2");
    if (!license.empty()) first.text("general.license", license);
    first.u32("gpt2.context_length", kPositions);
    first.u32("gpt2.embedding_length", kChannels);
    first.u32("gpt2.block_count", 1);
    first.u32("gpt2.attention.head_count", 2);
    first.u32("gpt2.feed_forward_length", kInner);
    first.f32("gpt2.attention.layer_norm_epsilon", 1e-5f);
    const auto tokenizer = read_text(source_dir() / "models/gpt-demo/tokenizer.json");
    add_vocabulary(first, nlohmann::json::parse(tokenizer), kRows);
    first.u32("tokenizer.ggml.eos_token_id", 4095);
    uint32_t state = 1;
    for (size_t i = 0; i < entries.size(); ++i) {
        size_t count = 1;
        for (const uint64_t dim : entries[i].dims) count *= dim;
        std::string data;
        for (size_t j = 0; j < count; ++j) {
            state = state * 1664525 + 1013904223;
            data += GgufWriter::number(static_cast<float>(state >> 8) / 8388608.0f - 1.0f);
        }
        files[i * files.size() / entries.size()].tensor(entries[i].name, entries[i].dims, 0, data);
    }
    std::vector<std::string> bytes;
    for (size_t i = 0; i < files.size(); ++i) {
        if (parts > 1)
            files[i].split(static_cast<uint16_t>(i), static_cast<uint16_t>(parts),
                           static_cast<int32_t>(entries.size()));
        bytes.push_back(files[i].bytes());
    }
    return bytes;
}

}  // namespace hark::test
