#include "gpt/families/model_file.h"

#include "core/error.h"
#include "core/files.h"
#include "gpt/families/gguf_model.h"
#include "gpt/families/llmc_file.h"

namespace hark::gpt {
namespace {

class HuggingFaceFolder : public ModelFile {
  public:
    explicit HuggingFaceFolder(const std::filesystem::path& path)
        : path_(path), config_(load_config(path)), tensors_(path, "transformer.") {}

    const char* format() const override { return "Hugging Face"; }
    const Config& config() const override { return config_; }
    TensorSource& tensors() override { return tensors_; }
    Bpe tokenizer() const override { return Bpe::from_directory(path_); }

  private:
    std::filesystem::path path_;
    Config config_;
    SafetensorsDirectory tensors_;
};

}  // namespace

std::unique_ptr<ModelFile> open_model(const std::filesystem::path& path) {
    if (std::filesystem::is_directory(path)) return std::make_unique<HuggingFaceFolder>(path);
    const std::string begin = first_bytes(path, 4);
    if (begin == kGgufMagic) return std::make_unique<GgufModel>(path);
    if (begin == std::string_view(reinterpret_cast<const char*>(&kLlmcMagic), 4))
        return std::make_unique<LlmcFile>(path);
    fail(path.string(), ": expected a GPT-2 model: a Hugging Face directory, a GGUF file, which ",
         "begins with ", kGgufMagic, ", or llm.c's, which begins with the int32 ", kLlmcMagic,
         "; found a file that begins with ", as_hex(begin));
}

}  // namespace hark::gpt
