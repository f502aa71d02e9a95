#include "gpt/families/gguf_model.h"

#include <map>

#include "core/error.h"
#include "gpt/train/parameters.h"

namespace hark::gpt {
namespace {

const std::string kArchitecture = "general.architecture", kEos = "tokenizer.ggml.eos_token_id";

// "h.3.attn.c_attn.weight" -> "blk.3.attn_qkv.weight"; an empty name if GGUF has no such layer.
std::string name_in_file(const std::string& name) {
    static const std::map<std::string, std::string> kLayers = {
        {"wte", "token_embd"},       {"wpe", "position_embd"},       {"ln_f", "output_norm"},
        {"lm_head", "output"},       {"ln_1", "attn_norm"},          {"ln_2", "ffn_norm"},
        {"attn.c_attn", "attn_qkv"}, {"attn.c_proj", "attn_output"}, {"mlp.c_fc", "ffn_up"},
        {"mlp.c_proj", "ffn_down"}};
    std::string block, layer = name;
    if (name.starts_with("h.")) {
        const size_t begin = name.find('.', 2);
        if (begin == name.npos) return "";
        block = concat("blk", name.substr(1, begin));
        layer = name.substr(begin + 1);
    }
    const size_t end = layer.rfind('.');
    const auto found = kLayers.find(layer.substr(0, end));
    return found == kLayers.end() ? "" : block + found->second + layer.substr(end);
}

Config read_config(const GgufFile& file) {
    const std::string_view architecture = file.text(kArchitecture);
    require(architecture == "gpt2", file.name(), ": expected the architecture gpt2, found '",
            architecture, "'");
    const auto size = [&](const char* key, int64_t max) {
        return file.integer(concat("gpt2.", key), 1, max);
    };
    Config config;
    config.n_positions = size("context_length", 1 << 20);
    config.n_embd = size("embedding_length", 1 << 16);
    config.n_layer = size("block_count", 1024);
    config.n_head = size("attention.head_count", 1024);
    config.n_inner = size("feed_forward_length", 1 << 18);
    require(config.n_embd % config.n_head == 0, file.name(),
            ": expected heads that divide the channels, found ", config.n_head, " and ",
            config.n_embd);
    const double epsilon = file.number("gpt2.attention.layer_norm_epsilon");
    require(epsilon > 0 && epsilon < 1, file.name(),
            ": key 'gpt2.attention.layer_norm_epsilon': expected a number between 0 and 1, found ",
            epsilon);
    config.layer_norm_epsilon = static_cast<float>(epsilon);
    // The vocabulary is as large as its table.
    const auto table = file.tensors().find(name_in_file("wte.weight"));
    require(table != file.tensors().end(), file.name(), ": expected a tensor '",
            name_in_file("wte.weight"), "', found none");
    config.n_vocab = table->second.rows();
    require(config.n_vocab <= 1 << 24, file.name(), ": expected at most ", 1 << 24,
            " tokens, found ", config.n_vocab);
    config.tie_word_embeddings = !file.tensors().contains(name_in_file("lm_head.weight"));
    if (file.has(kEos))
        config.eos_token_ids = {static_cast<int32_t>(file.integer(kEos, 0, config.n_vocab - 1))};
    return config;
}

}  // namespace

GgufModel::GgufModel(const std::filesystem::path& path) : file_(path), config_(read_config(file_)) {
    const ParameterLayout layout(config_);
    for (const ParameterLayout::Entry& entry : layout.entries())
        entry.columns > 0 ? take(entry.name, {entry.stored_rows, entry.columns})
                          : take(entry.name, {entry.rows});
    taken_.clear();
}

bool GgufModel::has(const std::string& name) const {
    return file_.tensors().contains(name_in_file(name));
}

Tensor GgufModel::take(const std::string& name, std::initializer_list<int64_t> shape) {
    const std::string stored = name_in_file(name);
    const auto found = file_.tensors().find(stored);
    require(found != file_.tensors().end(), file_.name(), ": expected a tensor '", stored, "' for ",
            name, ", found none");
    const Tensor& tensor = found->second;
    const Tensor expected(nullptr, tensor.dtype, shape);
    require(tensor.rank == expected.rank && tensor.shape == expected.shape, file_.name(),
            ": tensor '", stored, "': expected ", expected, ", found ", tensor);
    taken_.push_back(tensor);
    return tensor;
}

void GgufModel::forget_taken() {
    for (const Tensor& tensor : taken_) file_.forget(tensor);
    taken_.clear();
}

}  // namespace hark::gpt
