#include "gpt/model_file.h"

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
    return std::make_unique<HuggingFaceFolder>(path);
}

}  // namespace hark::gpt
