// Whisper models in whisper.cpp's own format, ggml-*.bin.
// Source: whisper.cpp src/whisper.cpp (whisper_model_load) and models/convert-pt-to-ggml.py.
//
//     u32 magic 'ggml'; i32 n_vocab, n_audio_ctx, n_audio_state, n_audio_head, n_audio_layer,
//         n_text_ctx, n_text_state, n_text_head, n_text_layer, n_mels, ftype
//     i32 n_mels, i32 201, f32 mel filters (n_mels, 201)
//     i32 tokens; of each: u32 length, bytes
//     to the end, of each tensor: i32 dimensions, i32 length of the name, i32 ggml_type,
//         i32 lengths (innermost first), name, data
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/byte_cursor.h"
#include "core/mapped_file.h"
#include "whisper/model/model_file.h"

namespace hark::whisper {

// The official models' tokenizer (official_tokenizer) of a vocabulary that such a file carries: the
// bytes of its tokens, by rank. Throws Error that begins with `where` where two are the same, as
// some converters leave them.
Tokenizer ggml_tokenizer(const std::vector<std::string>& tokens, int64_t n_vocab,
                         const std::string& where);

class GgmlFile : public ModelFile, private TensorSource {
  public:
    // Reads all but the tensors' data. Throws Error naming the file, what was expected and what
    // was found: a size out of range, another mel filter bank, a type that is not known, a tensor
    // that is there twice or goes on behind the file's end.
    explicit GgmlFile(const std::filesystem::path& path);

    static constexpr std::string_view kMagic = "lmgg";  // a file's first bytes

    const char* format() const override { return "ggml"; }
    const Config& config() const override { return config_; }
    TensorSource& tensors() override { return *this; }
    // Throws Error also where tokens are the same: bytes that a converter has lost.
    Tokenizer tokenizer() const override;

  private:
    struct Place {
        size_t offset = 0;
        Tensor view;  // where it lies in the file, not aligned
    };

    Tensor take(const std::string& name, std::initializer_list<int64_t> shape) override;
    bool has(const std::string& name) const override;
    std::string where() const override { return file_.name(); }
    void forget_taken() override;

    void read_header(ByteCursor& in);
    void read_tokens(ByteCursor& in);
    void read_tensor(ByteCursor& in);

    MappedFile file_;
    Config config_;
    int32_t block_version_ = 0;
    std::vector<std::string> tokens_;      // by id, as far as ranks go
    std::map<std::string, Place> places_;  // by openai-whisper's names
    std::vector<Place> taken_;
    std::vector<std::unique_ptr<std::byte[]>> buffers_;  // aligned copies
};

}  // namespace hark::whisper
