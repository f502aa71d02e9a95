#include "whisper/model_file.h"

#include "whisper/ggml_file.h"

namespace hark::whisper {
namespace {

class HuggingFaceFolder : public ModelFile {
  public:
    explicit HuggingFaceFolder(const std::filesystem::path& path)
        : path_(path), config_(load_config(path)), tensors_(path, "model.") {}

    const char* format() const override { return "Hugging Face"; }
    const Config& config() const override { return config_; }
    TensorSource& tensors() override { return tensors_; }
    Tokenizer tokenizer() const override { return Tokenizer(path_, config_.n_vocab); }

  private:
    std::filesystem::path path_;
    Config config_;
    SafetensorsDirectory tensors_;
};

}  // namespace

std::unique_ptr<ModelFile> open_model(const std::filesystem::path& path) {
    std::error_code failed;
    if (std::filesystem::is_regular_file(path, failed) && GgmlFile::begins(path))
        return std::make_unique<GgmlFile>(path);
    return std::make_unique<HuggingFaceFolder>(path);
}

}  // namespace hark::whisper
