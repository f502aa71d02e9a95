#include "gpt/families/model_file.h"

#include "core/error.h"
#include "core/files/files.h"
#include "gpt/families/family.h"
#include "gpt/families/gguf_model.h"
#include "gpt/families/llmc_file.h"
#include "gpt/families/quantization.h"
#include "gpt/families/widened_tensors.h"

namespace hark::gpt {
namespace {

// The prefix that the folder's tensors have: the family's, or that of a model of several kinds of
// input, which keeps its text model under another name; embedding models' have none.
std::string prefix_of(const std::filesystem::path& path, const Family& family) {
    const std::string own = family.prefix;
    for (const std::string& prefix :
         {own, "language_model." + own, std::string("model.language_model."), std::string()}) {
        const SafetensorsDirectory tensors(path, prefix);
        if (tensors.has(part_name(family, Part::token_table))) return prefix;
    }
    return own;
}

// The model's matrices that are packed, and what they become.
Widening widening_of(const DecoderConfig& config, const Quantization& quantization,
                     SafetensorsDirectory& stored, const WidenedTensors& tensors) {
    Widening all{.format = quantization.name, .model_type = quantization.model_type};
    for (const TensorSpec& spec : tensor_specs(config)) {
        if (spec.columns == 0 || !tensors.is_packed(spec.name)) continue;
        const Dtype dtype = tensors.dtype_of(spec.name, spec.rows, spec.columns);
        stored.release_tensors();
        if (is_quantized(dtype)) {
            ++all.kept;
            continue;
        }
        ++all.widened;
        all.dtype = dtype;
        all.bytes += spec.rows * spec.columns * static_cast<int64_t>(size_of(dtype));
    }
    return all;
}

class HuggingFaceFolder : public ModelFile {
  public:
    explicit HuggingFaceFolder(const std::filesystem::path& path)
        : path_(path),
          config_(load_config(path)),
          quantization_(load_quantization(path)),
          tensors_(path, prefix_of(path, family_of(config_.family, path.string()))) {
        const Family& family = family_of(config_.family, path.string());
        if (quantization_) {
            // A family that unpacks its tensors has a format of its own, mxfp4.
            const bool is_own = !quantization_->format;
            require(is_own ? family.unpack != nullptr : !family.unpack && !family.conv1d,
                    path.string(), ": models of '", config_.family, "' are not read from ",
                    quantization_->name);
            if (!is_own)
                widened_ = std::make_unique<WidenedTensors>(tensors_, *quantization_->format,
                                                            quantization_->model_type);
        }
        // Files whose config says nothing of the head leave it out where it is tied.
        if (config_.family != "gpt2" && !tensors().has("lm_head.weight"))
            config_.tie_word_embeddings = true;
        if (widened_) widening_ = widening_of(config_, *quantization_, tensors_, *widened_);
        if (family.unpack) unpacked_ = family.unpack(tensors_, config_);
    }

    const char* format() const override { return "Hugging Face"; }
    const DecoderConfig& config() const override { return config_; }
    TensorSource& tensors() override {
        if (widened_) return *widened_;
        return unpacked_ ? *unpacked_ : tensors_;
    }
    std::optional<Widening> widening() const override { return widening_; }
    std::shared_ptr<const Tokenizer> tokenizer() const override { return Tokenizer::load(path_); }
    Bpe bpe() const override { return Bpe::from_directory(path_); }
    std::optional<ChatTemplate> chat_template() const override {
        return ChatTemplate::from_directory(path_);
    }
    SamplingDefaults sampling_defaults() const override { return read_sampling_defaults(path_); }
    EmbeddingSettings embedding_settings() const override { return read_embedding_settings(path_); }

  private:
    std::filesystem::path path_;
    DecoderConfig config_;
    std::optional<Quantization> quantization_;
    SafetensorsDirectory tensors_;
    std::unique_ptr<TensorSource> unpacked_;   // of tensors_, if the family needs it
    std::unique_ptr<WidenedTensors> widened_;  // of tensors_, if they are packed
    std::optional<Widening> widening_;
};

}  // namespace

Dtype stored_type(ModelFile& file) {
    if (const auto widening = file.widening()) return widening->model_type;
    for (const TensorSpec& spec : tensor_specs(file.config())) {
        if (spec.layer < 0 || !spec.is_matrix()) continue;
        const Tensor stored = take(file.tensors(), spec);
        file.tensors().release_tensors();
        return stored.dtype;
    }
    fail("internal error: a model without matrices");
}

std::unique_ptr<ModelFile> open_model(const std::filesystem::path& path) {
    if (std::filesystem::is_directory(path)) return std::make_unique<HuggingFaceFolder>(path);
    const std::string begin = first_bytes(path, 4);
    if (begin == kGgufMagic) return std::make_unique<GgufModel>(path);
    if (begin == std::string_view(reinterpret_cast<const char*>(&kLlmcMagic), 4))
        return std::make_unique<LlmcFile>(path);
    fail(path.string(),
         ": expected a language model: a Hugging Face directory, a GGUF file, which ",
         "begins with ", kGgufMagic, ", or GPT-2 in llm.c's format, which begins with the int32 ",
         kLlmcMagic, "; found a file that begins with ", as_hex(begin));
}

}  // namespace hark::gpt
