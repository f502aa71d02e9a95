// GGUF files: keys and tensors, and what a model makes of them: whole ones of GPT-2, settings of
// other families.
#include "core/error.h"
#include "fuzz/memory_file.h"
#include "fuzz/seeds.h"
#include "gpt/families/gguf_model.h"
#include "gpt/train/parameters.h"
#include "support/gguf_writer.h"
#include "text/byte_alphabet.h"

using namespace hark;

namespace {

// One layer of 2 channels, 258 tokens.
std::string model_file(uint32_t type, const std::string& one) {
    test::GgufWriter file;
    file.text("general.architecture", "gpt2");
    for (const auto& [key, size] : {std::pair("gpt2.context_length", 2),
                                    {"gpt2.embedding_length", 2},
                                    {"gpt2.block_count", 1},
                                    {"gpt2.attention.head_count", 1},
                                    {"gpt2.feed_forward_length", 3},
                                    {"tokenizer.ggml.eos_token_id", 257}})
        file.u32(key, static_cast<uint32_t>(size));
    file.f32("gpt2.attention.layer_norm_epsilon", 1e-5f);
    std::vector<std::string> tokens;
    for (int byte = 0; byte < 256; ++byte)
        tokens.push_back(spell_bytes(std::string(1, static_cast<char>(byte))));
    tokens.insert(tokens.end(), {"he", "<|end|>"});
    std::vector<int32_t> types(tokens.size(), 1);
    types.back() = 3;
    file.text("tokenizer.ggml.model", "gpt2");
    file.texts("tokenizer.ggml.tokens", tokens);
    file.i32s("tokenizer.ggml.token_type", types);
    file.texts("tokenizer.ggml.merges", {"h e"});
    const auto add = [&](const std::string& name, std::vector<uint64_t> dims) {
        std::string data;
        for (uint64_t i = 0; i < dims[0] * (dims.size() > 1 ? dims[1] : 1); ++i) data += one;
        file.tensor(name, dims, type, data);
    };
    const auto layer = [&](const std::string& name, uint64_t in, uint64_t out) {
        add(name + ".weight", {in, out});
        add(name + ".bias", {out});
    };
    const auto norm = [&](const std::string& name) {
        add(name + ".weight", {2});
        add(name + ".bias", {2});
    };
    add("token_embd.weight", {2, 258});
    add("position_embd.weight", {2, 2});
    norm("blk.0.attn_norm");
    layer("blk.0.attn_qkv", 2, 6);
    layer("blk.0.attn_output", 2, 2);
    norm("blk.0.ffn_norm");
    layer("blk.0.ffn_up", 2, 3);
    layer("blk.0.ffn_down", 3, 2);
    norm("output_norm");
    return file.bytes();
}

// Settings alone; a rope of type `scaling`.
std::string settings_of(const std::string& family, const std::string& scaling) {
    test::GgufWriter file;
    const auto key = [&](const char* name) { return family + "." + name; };
    file.text("general.architecture", family);
    for (const auto& [name, size] : {std::pair("context_length", 64),
                                     {"embedding_length", 8},
                                     {"block_count", 2},
                                     {"feed_forward_length", 8},
                                     {"attention.head_count", 2},
                                     {"attention.head_count_kv", 1},
                                     {"attention.key_length", 4},
                                     {"attention.value_length", 4},
                                     {"attention.sliding_window", 4},
                                     {"expert_count", 4},
                                     {"expert_used_count", 2},
                                     {"expert_feed_forward_length", 8},
                                     {"vocab_size", 4},
                                     {"rope.dimension_count", 4},
                                     {"rope.scaling.original_context_length", 16}})
        file.u32(key(name), static_cast<uint32_t>(size));
    for (const char* name : {"attention.layer_norm_rms_epsilon", "rope.freq_base"})
        file.f32(key(name), name[0] == 'a' ? 1e-5f : 1e4f);
    file.text(key("rope.scaling.type"), scaling);
    file.f32(key("rope.scaling.factor"), 4);
    file.booleans(key("attention.sliding_window_pattern"), {true, false});
    file.texts("tokenizer.ggml.tokens", {"a", "b", "c", "d"});
    file.u32("tokenizer.ggml.eos_token_id", 1);
    file.tensor("token_embd.weight", {8, 4}, 0, std::string(128, '\x01'));
    file.tensor("rope_freqs.weight", {2}, 0, file.number(1.0f) + file.number(2.0f));
    return file.bytes();
}

}  // namespace

std::vector<std::string> fuzz::fuzz_seeds() {
    test::GgufWriter other;
    other.version = 2;
    other.u32("general.alignment", 64);
    other.alignment = 64;
    other.key("list", 9, other.number<uint32_t>(12) + other.number<uint64_t>(1) + "12345678");
    other.tensor("q", {32, 2}, 8, std::string(68, '\x01'));
    test::GgufWriter part;
    part.split(0, 2, 2);
    part.tensor("a", {1}, 0, part.number(0.5f));
    std::vector<std::string> seeds = {model_file(0, other.number(0.5f)), model_file(1, "\x01\x3c"),
                                      other.bytes(), part.bytes()};
    for (const char* family : {"llama", "qwen2", "qwen3", "gemma2", "gemma3", "phi3", "smollm3",
                               "olmo2", "granite", "qwen3moe", "gpt-oss", "deepseek2"})
        for (const char* scaling : {"none", "linear", "yarn"})
            seeds.push_back(settings_of(family, scaling));
    return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const fuzz::MemoryFile input(data, size);
    try {
        const GgufFile file(input.path());
        unsigned sum = 0;
        for (const auto& [name, tensor] : file.tensors())
            for (size_t i = 0; i < tensor.bytes(); ++i)
                sum += static_cast<const uint8_t*>(tensor.data)[i];
        if (sum == 1) file.forget(file.tensors().begin()->second);  // used, so that the reads stay
        gpt::GgufModel model(input.path());
        model.chat_template();
        model.tokenizer();
        const Bpe bpe = model.bpe();
        bpe.decode(bpe.encode(" hello <|end|>"), true);
        // What was accepted lies in the file, so the vector is hardly larger than the input.
        const gpt::ParameterLayout layout(model.config());
        std::vector<float> values(static_cast<size_t>(layout.size()));
        layout.read(Tensor(values.data(), Dtype::f32, {layout.size()}), model);
    } catch (const Error&) {
    }
    return 0;
}
