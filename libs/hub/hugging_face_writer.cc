#include "hub/hugging_face_writer.h"

#include "core/error.h"
#include "core/files/files.h"
#include "core/files/io.h"
#include "core/json/json.h"
#include "core/profile/profile.h"
#include "formats/safetensors.h"
#include "gpt/families/embedding_settings.h"
#include "gpt/families/family.h"
#include "gpt/families/model_folder.h"
#include "hub/gpt_oss_folder.h"
#include "hub/hugging_face_settings.h"
#include "hub/hugging_face_vocabulary.h"
#include "hub/tensor_list.h"
#include "text/bpe_writer.h"
#include "whisper/model/config_text.h"

namespace hark::models {
namespace {

namespace fs = std::filesystem;

constexpr const char* kGenerationConfig = "generation_config.json";
constexpr const char* kPreprocessorConfig = "preprocessor_config.json";
constexpr const char* kWeightsFile = "model.safetensors";

std::string stored_name(const ModelHandle& model, const std::string& name) {
    if (model.whisper) return "model." + name;
    if (name == "lm_head.weight") return name;
    return gpt::family_of(model.gpt->config().family, "convert").prefix + name;
}

// The product of all heads' keys and values from those of each head: rows of keys, which the file
// has turned, then of values.
std::vector<float> joined_heads(TensorSource& source, const std::string& name,
                                const gpt::DecoderConfig& c) {
    constexpr std::string_view kProduct = "kv_b_proj";
    const gpt::LatentConfig& of = c.latent;
    std::vector<float> all;
    for (int64_t head = 0; head < c.n_head; ++head) {
        const auto append = [&](const char* product, int64_t rows, int64_t columns, bool is_key) {
            std::string part = name;
            part.replace(part.find(kProduct), kProduct.size(), concat(product, head));
            std::vector<float> values = values_of(source, {part, {rows, columns}, true});
            if (is_key) values = turned(values, rows, columns);
            all.insert(all.end(), values.begin(), values.end());
        };
        append("k_b_proj.", of.channels, of.plain, true);
        append("v_b_proj.", of.value, of.channels, false);
    }
    return all;
}

// The file's values of a tensor of the folder. `norm_offset`: what its norms have more.
std::vector<float> folder_values(const ModelHandle& model, const ModelTensor& tensor,
                                 float norm_offset) {
    if (model.gpt && model.gpt->config().latent.by_head &&
        tensor.kind == std::string_view("attention_kv_b"))
        return joined_heads(model.tensors(), tensor.name, model.gpt->config());
    std::vector<float> values = values_of(model.tensors(), tensor);
    if (tensor.norm)
        for (float& value : values) value -= norm_offset;
    return values;
}

// All tensors of the model's folder. Of gpt-oss the experts come last.
std::vector<FolderTensor> folder_tensors(const ModelHandle& model,
                                         const std::vector<ModelTensor>& tensors, Dtype dtype,
                                         float norm_offset) {
    std::vector<FolderTensor> all;
    const bool stacks = model.gpt && model.gpt->config().family == kGptOss;
    for (const ModelTensor& tensor : tensors) {
        if (stacks && tensor.name.find(".experts.") != tensor.name.npos) continue;
        all.push_back({tensor.name, dtype, tensor.shape, [=, &model](ByteWriter& out) {
                           const ProfileSpan span("convert");
                           write_values(out, folder_values(model, tensor, norm_offset), dtype,
                                        concat(model.tensors().where(), ": ", tensor.name));
                       }});
    }
    if (stacks)
        for (FolderTensor& tensor : gpt_oss_experts(*model.gpt, dtype))
            all.push_back(std::move(tensor));
    return all;
}

void write_weights(const ModelHandle& model, const std::vector<ModelTensor>& tensors, Dtype dtype,
                   float norm_offset, const fs::path& path) {
    const std::vector<FolderTensor> all = folder_tensors(model, tensors, dtype, norm_offset);
    SafetensorsHeader header;
    header.metadata["format"] = "pt";  // transformers asks for it
    for (const FolderTensor& tensor : all) {
        uint64_t bytes = size_of(tensor.dtype);
        for (const int64_t n : tensor.shape) bytes *= static_cast<uint64_t>(n);
        header.tensors.push_back({stored_name(model, tensor.name), safetensors_name(tensor.dtype),
                                  tensor.shape, header.data_bytes, header.data_bytes + bytes});
        header.data_bytes += bytes;
    }
    AtomicFile out(path);
    ByteWriter writer(out.fd(), out.name());
    writer.write(format_safetensors_header(header));
    for (const FolderTensor& tensor : all) tensor.write(writer);
    writer.flush();
    out.commit();
}

// Copies the files of a folder of the same format, with another type in its config. has_blocks:
// experts stay mxfp4, and the config says so.
void copy_description(const fs::path& from, Dtype dtype, bool has_blocks, const fs::path& to) {
    const fs::path config = from / gpt::kConfigFile;
    auto root = nlohmann::ordered_json::parse(read_file(config, size_t{1} << 20), nullptr, false);
    require(root.is_object(), config.string(), ": not a JSON object");
    // Of a model of several kinds of input only that of text is written.
    if (root.contains("text_config") && root["text_config"].is_object()) {
        nlohmann::ordered_json text = root["text_config"];
        for (const char* key : {"tie_word_embeddings", "bos_token_id", "eos_token_id"})
            if (!text.contains(key) && root.contains(key)) text[key] = root[key];
        root = text;
    }
    root.erase("dtype");                // the same key in newer files
    root.erase("quantization_config");  // other weights are written as plain numbers
    if (has_blocks) root["quantization_config"] = gpt_oss_quantization();
    root["torch_dtype"] = whisper::torch_name(dtype);
    write_file(to / gpt::kConfigFile, root.dump(2) + "\n");
    const auto copy = [&](const std::string& name) {
        if (fs::exists(from / name)) write_file(to / name, read_file(from / name));
    };
    for (const char* name : gpt::kTokenizerFiles) copy(name);
    copy(kGenerationConfig);
    copy(kPreprocessorConfig);
    for (const std::string& name : gpt::embedding_files(from)) {
        fs::create_directories((to / name).parent_path());
        copy(name);
    }
}

void write_whisper(const whisper::ModelFile& file, const std::string& tokenizer_path, Dtype dtype,
                   const fs::path& directory) {
    const whisper::Tokenizer tokenizer = whisper_tokenizer(file, tokenizer_path);
    const whisper::Config& config = file.config();
    write_file(directory / gpt::kConfigFile,
               whisper::format_config(config, tokenizer.special(), dtype));
    write_file(directory / kGenerationConfig, whisper::format_generation_config(config, tokenizer));
    write_file(directory / kPreprocessorConfig, whisper::format_preprocessor_config(config));
    write_hugging_face(tokenizer.bpe(), "WhisperTokenizer", directory);
}

void write_gpt2(const gpt::ModelFile& file, const std::string& tokenizer_path, Dtype dtype,
                const fs::path& directory) {
    write_file(directory / gpt::kConfigFile, gpt::format_config(file.config(), dtype));
    const Bpe bpe = tokenizer_path.empty() ? file.bpe() : Bpe::load(tokenizer_path);
    require(bpe.vocab_size() <= file.config().n_vocab, tokenizer_path,
            ": too many tokens for the model (got ", bpe.vocab_size(), ", expected at most ",
            file.config().n_vocab, ")");
    write_hugging_face(bpe, "GPT2TokenizerFast", directory);
}

// Of another family. Gemma's norms in a GGUF file are 1 + w.
void write_from_gguf(const ModelHandle& model, const fs::path& from, Dtype dtype,
                     const fs::path& directory) {
    const GgufFile file(from);
    const gpt::DecoderConfig written = write_settings(file, *model.gpt, dtype, directory);
    write_vocabulary(file, *model.gpt->tokenizer(), written.n_positions, directory);
    write_weights(model, tensor_list(written), dtype,
                  written.norm_offset - model.gpt->config().norm_offset, directory / kWeightsFile);
}

}  // namespace

whisper::Tokenizer whisper_tokenizer(const whisper::ModelFile& file,
                                     const std::string& tokenizer_path) {
    return tokenizer_path.empty() ? file.tokenizer()
                                  : whisper::load_vocabulary(tokenizer_path, file.config().n_vocab);
}

void write_hugging_face_model(const ModelHandle& model, const fs::path& from,
                              const std::string& tokenizer_path, Dtype dtype,
                              const fs::path& directory) {
    const bool same = std::string(model.format()) == "Hugging Face";
    const bool has_own = model.gpt && model.gpt->config().family != "gpt2";
    require_usage(!has_own || tokenizer_path.empty(), "--tokenizer does not go with ",
                  from.string(), ": the model's own is written");
    if (has_own && !same) return write_from_gguf(model, from, dtype, directory);
    if (same && tokenizer_path.empty())
        copy_description(from, dtype, model.gpt && has_mxfp4_experts(*model.gpt), directory);
    else if (model.whisper)
        write_whisper(*model.whisper, tokenizer_path, dtype, directory);
    else
        write_gpt2(*model.gpt, tokenizer_path, dtype, directory);
    write_weights(model, tensor_list(model), dtype, 0, directory / kWeightsFile);
}

}  // namespace hark::models
