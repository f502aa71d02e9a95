// GGUF files: keys and tensors, and what language models make of them.
#include "core/error.h"
#include "fuzz/attempt.h"
#include "fuzz/memory_file.h"
#include "fuzz/small_families.h"
#include "fuzz/target.h"
#include "gpt/families/gguf_model.h"
#include "gpt/train/parameters.h"
#include "support/family_gguf.h"
#include "text/byte_alphabet.h"

using namespace hark;
using namespace hark::fuzz;

namespace {

// One layer of 2 channels, 258 tokens.
std::string model_file(uint32_t type, const std::string& one) {
    test::GgufWriter file;
    file.text("general.architecture", "gpt2");
    // Of a number and in bytes: u8, i8, i16, u64, i64, u32.
    constexpr std::pair<uint32_t, size_t> kTypes[] = {{0, 1},  {1, 1},  {3, 2},
                                                      {10, 8}, {11, 8}, {4, 4}};
    const auto* type_of = kTypes;
    for (const auto& [key, size] : {std::pair("gpt2.context_length", 2),
                                    {"gpt2.embedding_length", 2},
                                    {"gpt2.block_count", 1},
                                    {"gpt2.attention.head_count", 1},
                                    {"gpt2.feed_forward_length", 3},
                                    {"tokenizer.ggml.eos_token_id", 257}}) {
        const auto& [number, bytes] = *type_of++;
        file.key(key, number, file.number<uint64_t>(size).substr(0, bytes));
    }
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
    file.text("general.license", "mit");
    file.text("tokenizer.chat_template", "{{ eos_token }}{{ messages[0].content }}");
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

// Heads with tensors of their own: a list of a million tensors, if nothing bounds it.
std::string many_heads() {
    test::GgufWriter file;
    file.text("general.architecture", "deepseek2");
    for (const auto& [key, size] : {std::pair("context_length", 64),
                                    {"embedding_length", 1024},
                                    {"block_count", 1024},
                                    {"attention.head_count", 1024},
                                    {"feed_forward_length", 8},
                                    {"attention.kv_lora_rank", 4},
                                    {"rope.dimension_count", 4},
                                    {"attention.key_length_mla", 8},
                                    {"attention.value_length_mla", 4}})
        file.u32(std::string("deepseek2.") + key, static_cast<uint32_t>(size));
    file.tensor("token_embd.weight", {1, 1}, 0, "aaaa");
    return file.bytes();
}

// Models of the families without a vocabulary.
std::vector<std::string> family_files() {
    const nlohmann::json cases = fuzz::golden("families.json");
    std::vector<std::string> files;
    for (const test::GgufCase& of : {test::GgufCase{"llama", "llama", true, false},
                                     {"qwen2, tied", "qwen2", false, false},
                                     {"gemma2", "gemma2", false, true},
                                     {"phi3, longrope", "phi3", false, false},
                                     {"olmo3, yarn, other layers", "olmo2", false, false},
                                     {"mixtral", "llama", true, false},
                                     {"qwen3_moe", "qwen3moe", false, false},
                                     {"gpt_oss, mxfp4", "gpt-oss", false, false}}) {
        const bool has_blocks = std::string(of.name).ends_with("mxfp4");
        const nlohmann::json settings =
            fuzz::small_family(cases[of.name]["config"], has_blocks ? 32 : 8);
        const gpt::DecoderConfig config = gpt::parse_config(settings.dump(), of.name);
        const gpt::Family& family = gpt::family_of(config.family, of.name);
        test::FamilyWeights weights(of.is_gemma, has_blocks);
        std::unique_ptr<TensorSource> unpacked;
        if (family.unpack) unpacked = family.unpack(weights, config);
        test::GgufWriter file = test::family_gguf(unpacked ? *unpacked : weights, of, config);
        if (!config.ropes[0].long_frequencies.empty())
            for (const char* name : {"rope_factors_short.weight", "rope_factors_long.weight"})
                file.tensor(name, {2}, 0, file.number(1.5f) + file.number(2.5f));
        file.u32("general.sampling.top_k", 20);
        file.f32("general.sampling.temp", 0.5f);
        file.u32(std::string(of.architecture) + ".pooling_type", 3);
        files.push_back(file.bytes());
    }
    for (const auto& file : fuzz::golden_files("model_files/deepseek", ".gguf"))
        files.push_back(fuzz::content(file));
    return files;
}

}  // namespace

static std::vector<std::string> gguf_seeds() {
    test::GgufWriter other;
    other.version = 2;
    other.u32("general.alignment", 64);
    other.alignment = 64;
    other.key("list", 9, other.number<uint32_t>(12) + other.number<uint64_t>(1) + "12345678");
    other.tensor("q", {32, 2}, 8, std::string(68, '\x01'));
    test::GgufWriter part;
    part.split(0, 2, 2);
    part.tensor("a", {1}, 0, part.number(0.5f));
    std::vector<std::string> seeds = family_files();
    seeds.insert(seeds.end(), {model_file(0, other.number(0.5f)), model_file(1, "\x01\x3c"),
                               other.bytes(), part.bytes(), many_heads()});
    return seeds;
}

static int gguf_input(const uint8_t* data, size_t size) {
    const fuzz::MemoryFile input(data, size);
    try {
        const GgufFile file(input.path());
        unsigned sum = 0;
        for (const auto& [name, tensor] : file.tensors()) {
            if (!file.holds(tensor.data)) std::abort();
            for (size_t i = 0; i < tensor.bytes(); ++i)
                sum += static_cast<const uint8_t*>(tensor.data)[i];
        }
        if (sum == 1) file.forget(file.tensors().begin()->second);  // used, so that the reads stay
        gpt::GgufModel model(input.path());
        model.license();
        fuzz::attempt([&] { gpt::stored_type(model); });
        fuzz::attempt([&] { model.sampling_defaults(); });
        fuzz::attempt([&] { model.embedding_settings(); });
        fuzz::attempt([&] { model.chat_template(); });
        fuzz::attempt([&] { model.tokenizer(); });
        fuzz::attempt([&] {
            const Bpe bpe = model.bpe();
            bpe.decode(bpe.encode(" hello <|end|>"), true);
        });
        // What was accepted is in the file, so the vector is hardly larger than the input.
        const gpt::ParameterLayout layout(model.config());
        std::vector<float> values(static_cast<size_t>(layout.size()));
        layout.read(Tensor(values.data(), Dtype::f32, {layout.size()}), model);
    } catch (const Error&) {
    }
    return 0;
}

static const hark::fuzz::Target kGguf{"gguf", gguf_seeds, gguf_input};
