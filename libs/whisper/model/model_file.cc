#include "whisper/model/model_file.h"

#include "core/error.h"
#include "core/files/files.h"
#include "whisper/model/ctranslate2_file.h"
#include "whisper/model/ggml_file.h"
#include "whisper/model/openai_file.h"

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
    if (std::filesystem::is_directory(path, failed)) {
        if (std::filesystem::exists(path / "model.bin", failed)) return open_ctranslate2(path);
        return std::make_unique<HuggingFaceFolder>(path);
    }
    const std::string begin = first_bytes(path, 4);
    if (begin == "PK\x03\x04") return open_openai(path);
    if (begin == GgmlFile::kMagic) return std::make_unique<GgmlFile>(path);
    fail(path.string(),
         ": expected a Whisper model: a directory of Hugging Face's or CTranslate2's, ",
         "OpenAI's .pt, which is a zip archive, or whisper.cpp's ggml file; found a file that ",
         "begins with ", as_hex(begin));
}

}  // namespace hark::whisper
