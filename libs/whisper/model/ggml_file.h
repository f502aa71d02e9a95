// Whisper models in whisper.cpp's own format, ggml-*.bin; docs/formats.md has its layout.
// Source: whisper.cpp src/whisper.cpp (whisper_model_load) and models/convert-pt-to-ggml.py.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/files/byte_cursor.h"
#include "core/files/mapped_file.h"
#include "whisper/model/model_file.h"

namespace hark::whisper {

// official_tokenizer() from the file's vocabulary: the bytes of its tokens, by rank. Throws Error
// that begins with `where` if two tokens are equal, which some converters write.
Tokenizer ggml_tokenizer(const std::vector<std::string>& tokens, int64_t n_vocab,
                         const std::string& where);

class GgmlFile : public ModelFile, private TensorSource {
  public:
    // Reads all but the tensors' data. Throws Error naming the file, what was expected and what was
    // found: sizes, mel filters, types; duplicate or truncated tensors.
    explicit GgmlFile(const std::filesystem::path& path);

    static constexpr std::string_view kMagic = "lmgg";  // a file's first bytes

    const char* format() const override { return "ggml"; }
    const Config& config() const override { return config_; }
    TensorSource& tensors() override { return *this; }
    // Throws Error if two tokens are equal: a converter has lost their bytes.
    Tokenizer tokenizer() const override;

  private:
    struct Place {
        size_t offset = 0;
        Tensor view;  // of the mapped file, not aligned
    };

    Tensor take(const std::string& name, std::initializer_list<int64_t> shape) override;
    bool has(const std::string& name) const override;
    std::string where() const override { return file_.name(); }
    void release_tensors() override;

    void read_header(ByteCursor& in);
    void read_tokens(ByteCursor& in);
    void read_tensor(ByteCursor& in);

    MappedFile file_;
    Config config_;
    int32_t block_version_ = 0;
    std::vector<std::string> tokens_;      // by rank, without special tokens
    std::map<std::string, Place> places_;  // by openai-whisper's names
    std::vector<Place> taken_;
    std::vector<std::unique_ptr<std::byte[]>> buffers_;  // aligned copies
};

}  // namespace hark::whisper
