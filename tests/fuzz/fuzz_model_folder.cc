// Folders of language models as Hugging Face has them, and GGUF in two parts, by the letters of
// kFiles.
#include <cstdio>
#include <set>

#include "formats/gguf.h"
#include "fuzz/attempt.h"
#include "fuzz/input_folder.h"
#include "fuzz/small_families.h"
#include "fuzz/target.h"
#include "gpt/answers/request.h"
#include "gpt/families/llmc_file.h"
#include "gpt/families/model_file.h"
#include "support/byte_vocabulary.h"
#include "support/gguf_writer.h"
#include "support/packed_folder.h"
#include "text/byte_alphabet.h"

using namespace hark;
using namespace hark::fuzz;

namespace {

const std::map<char, std::string> kFiles = {{'a', "additional_chat_templates/tool_use.jinja"},
                                            {'b', "sentence_bert_config.json"},
                                            {'c', "config.json"},
                                            {'d', "added_tokens.json"},
                                            {'g', "generation_config.json"},
                                            {'h', "chat_template.json"},
                                            {'j', "chat_template.jinja"},
                                            {'k', "special_tokens_map.json"},
                                            {'l', "tokenizer.model"},
                                            {'m', "modules.json"},
                                            {'n', "tokenizer_config.json"},
                                            {'o', "1_Pooling/config.json"},
                                            {'p', "config_sentence_transformers.json"},
                                            {'r', "merges.txt"},
                                            {'t', "tokenizer.json"},
                                            {'v', "vocab.json"},
                                            {'P', "m-00001-of-00002.gguf"},
                                            {'Q', "m-00002-of-00002.gguf"},
                                            {'W', "model.safetensors"}};

std::string part(char letter, const std::string& text) {
    return fuzz::InputFolder::part(letter, text);
}

void read_tensors(gpt::ModelFile& file) {
    unsigned sum = 0;
    for (const gpt::TensorSpec& spec : gpt::tensor_specs(file.config())) {
        const Tensor tensor = gpt::take(file.tensors(), spec);
        for (size_t i = 0; i < tensor.bytes(); ++i)
            sum += static_cast<const uint8_t*>(tensor.data)[i];
        file.tensors().release_tensors();
    }
    if (sum == 1) std::puts("");  // used, so that the reads stay
}

// The family's tensors under the names and in the shapes that it asks for.
std::string weights_of(const nlohmann::json& config, bool has_blocks, bool packs = false) {
    const gpt::DecoderConfig shape = gpt::parse_config(config.dump(), "seed");
    const gpt::Family& family = gpt::family_of(shape.family, "seed");
    fuzz::AskedWeights weights(false, has_blocks);
    std::unique_ptr<TensorSource> unpacked;
    if (family.unpack) unpacked = family.unpack(weights, shape);
    for (const gpt::TensorSpec& spec : gpt::tensor_specs(shape))
        gpt::take(unpacked ? *unpacked : weights, spec);
    std::set<std::string> seen;
    std::vector<test::StoredTensor> tensors;
    for (const auto& [name, tensor] : weights.asked) {
        if (!seen.insert(name).second) continue;
        const std::vector<int64_t> dims(tensor.shape.begin(), tensor.shape.begin() + tensor.rank);
        const std::string module = family.prefix + name.substr(0, name.rfind('.'));
        if (packs && module.ends_with("_proj")) {  // bitsandbytes, 8 bits
            const std::string scales(4 * static_cast<size_t>(dims[0]), '\x3c');
            tensors.push_back({module + ".weight", "I8", dims,
                               std::string(static_cast<size_t>(tensor.size()), '\x05')});
            tensors.push_back({module + ".SCB", "F32", {dims[0]}, scales});
            continue;
        }
        tensors.push_back({family.prefix + name, tensor.dtype == Dtype::u8 ? "U8" : "F32", dims,
                           std::string(static_cast<const char*>(tensor.data), tensor.bytes())});
    }
    return part('W', test::safetensors_bytes(tensors));
}

// A vocabulary of all bytes.
nlohmann::json byte_tokens() {
    nlohmann::json tokens;
    for (int byte = 0; byte < 256; ++byte)
        tokens[spell_bytes(std::string(1, static_cast<char>(byte)))] = byte;
    return tokens;
}

}  // namespace

static std::vector<std::string> model_folder_seeds() {
    std::vector<std::string> seeds;
    const nlohmann::json cases = golden("families.json");
    for (const auto& [name, reference] : cases.items()) {
        const bool has_blocks = name.ends_with("mxfp4");
        nlohmann::json config = small_family(reference["config"], has_blocks ? 32 : 8);
        const std::string weights = weights_of(config, has_blocks);
        if (has_blocks) config["quantization_config"] = {{"quant_method", "mxfp4"}};
        seeds.push_back(part('c', config.dump()) + weights);
    }
    nlohmann::json packed = small_family(cases["llama"]["config"]);
    packed["quantization_config"] = {{"quant_method", "bitsandbytes"}, {"load_in_8bit", true}};
    seeds.push_back(part('c', packed.dump()) + weights_of(packed, false, true));
    const std::string config = part('c', small_family(cases["llama"]["config"]).dump());
    const std::string tokenizer =
        R"({"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]}})";
    seeds.push_back(
        config + part('g', R"({"eos_token_id":[1,2],"temperature":0.6,"top_k":20,"top_p":0.9})") +
        part('m', R"([{"type":"a.Transformer","path":""},{"type":"a.Pooling","path":)"
                  R"("1_Pooling"},{"type":"a.Normalize","path":"2"}])") +
        part('o', R"({"pooling_mode_cls_token":false,"pooling_mode_mean_tokens":true})") +
        part('p', R"({"prompts":{"query":"Q: "},"default_prompt_name":"query"})") +
        part('b', R"({"max_seq_length":12})") + part('t', tokenizer) +
        part('n', R"({"eos_token":"a","bos_token":{"content":"b"},"extra_special_tokens":)"
                  R"({"x_token":"c"},"chat_template":[{"name":"default","template":"{{ 1 }}"}]})") +
        part('k', R"({"unk_token":"a"})"));
    seeds.push_back(
        config + part('j', "{{ bos_token }}") + part('a', "{{ tools }}") +
        part('v', byte_tokens().dump()) + part('d', R"({"<x>":256})") +
        part('n', R"({"added_tokens_decoder":{"257":{"content":"<y>","special":true}}})") +
        part('k', R"({"unk_token":"<x>","b":{"content":"<y>"},"c":["<x>"]})") +
        part('r', "#version: 0.2\n") +
        part('o', R"({"pooling_mode":"lasttoken","include_prompt":true})") +
        part('m', R"([{"type":"Pooling","path":"1_Pooling"}])"));
    seeds.push_back(config + part('h', R"({"chat_template":"{{ messages }}"})") +
                    part('l', test::byte_vocabulary()) + part('m', R"([{"type":"Dense"}])"));
    seeds.push_back(config + part('o', "{}") +
                    part('m', R"([{"type":"Pooling","path":"1_Pooling"}])"));
    seeds.push_back(
        part('l',
             nlohmann::json{
                 {"model",
                  {{"type", "BPE"}, {"vocab", byte_tokens()}, {"merges", nlohmann::json::array()}}},
                 {"pre_tokenizer", {{"type", "ByteLevel"}}}}
                 .dump()));
    seeds.push_back(part('P', gpt::LlmcHeader{}.text()));
    for (const uint16_t second : {1, 0}) {
        test::GgufWriter files[2];
        files[0].split(0, 2, 2);
        files[0].tensor("a", {1}, 0, "aaaa");
        files[1].split(second, 2, 2);
        files[1].tensor("b", {1}, 0, "bbbb");
        seeds.push_back(part('P', files[0].bytes()) + part('Q', files[1].bytes()));
    }
    return seeds;
}

static int model_folder_input(const uint8_t* data, size_t size) {
    static fuzz::InputFolder folder(kFiles);
    const std::filesystem::path& path = folder.holding(data, size);
    fuzz::attempt([&] { ChatTemplate::from_directory(path); });
    fuzz::attempt([&] { Tokenizer::load(path); });
    fuzz::attempt([&] { Bpe::load(path); });
    fuzz::attempt([&] { Tokenizer::load(path / "tokenizer.model"); });
    fuzz::attempt([&] { Bpe::load(path / "tokenizer.model"); });
    fuzz::attempt([&] { gpt::GenerateSettings().options(gpt::read_sampling_defaults(path)); });
    fuzz::attempt([&] { gpt::read_embedding_settings(path); });
    fuzz::attempt([&] { gpt::open_model(path / "m-00001-of-00002.gguf"); });
    fuzz::attempt([&] {
        const GgufFile file(path / "m-00001-of-00002.gguf");
        for (const auto& [name, tensor] : file.tensors()) file.forget(tensor);
    });
    fuzz::attempt([&] {
        const std::unique_ptr<gpt::ModelFile> file = gpt::open_model(path);
        if (file->format() != std::string("Hugging Face")) std::abort();
        fuzz::attempt([&] { file->tokenizer(); });
        fuzz::attempt([&] { file->bpe(); });
        fuzz::attempt([&] { file->chat_template(); });
        fuzz::attempt([&] { file->sampling_defaults(); });
        fuzz::attempt([&] { file->embedding_settings(); });
        gpt::stored_type(*file);
        read_tensors(*file);
    });
    return 0;
}

static const hark::fuzz::Target kModelFolder{"model_folder", model_folder_seeds,
                                             model_folder_input};
