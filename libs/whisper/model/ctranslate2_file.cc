#include "whisper/model/ctranslate2_file.h"

#include "core/error.h"
#include "core/files/files.h"
#include "core/json/json.h"
#include "text/bpe_builder.h"
#include "text/lines.h"
#include "whisper/model/alignment_heads.h"
#include "whisper/model/ctranslate2_tensors.h"

namespace hark::whisper {
namespace {

int64_t layers_of(const Ctranslate2Variables& file, const std::string& part) {
    int64_t n = 0;
    while (file.find(concat(part, "/layer_", n, "/ffn/linear_0/weight"))) ++n;
    return n;
}

Config config_of(const Ctranslate2Variables& file, const std::filesystem::path& directory) {
    Config config;
    config.n_mels = file.dim("encoder/conv1/weight", 1);
    config.n_audio_ctx = file.dim("encoder/position_encodings/encodings", 0);
    config.n_audio_state = file.dim("encoder/conv1/weight", 0);
    config.n_audio_head = file.number("encoder/num_heads");
    config.n_audio_layer = layers_of(file, "encoder");
    config.n_audio_mlp = file.dim("encoder/layer_0/ffn/linear_0/weight", 0);
    config.n_vocab = file.dim("decoder/embeddings/weight", 0);
    config.n_text_ctx = file.dim("decoder/position_encodings/encodings", 0);
    config.n_text_state = file.dim("decoder/embeddings/weight", 1);
    config.n_text_head = file.number("decoder/num_heads");
    config.n_text_layer = layers_of(file, "decoder");
    config.n_text_mlp = file.dim("decoder/layer_0/ffn/linear_0/weight", 0);
    check_config(config, file.name());
    const std::filesystem::path path = directory / "config.json";
    config.alignment_heads =
        parse_alignment_heads(read_file(path, size_t{1} << 22), config, path.string());
    return config;
}

// The tokens of vocabulary.json (a list) or vocabulary.txt (one per line).
std::vector<std::string> listed_tokens(const std::filesystem::path& path) {
    const std::string text = read_file(path, kMaxTokenizerFile), where = path.string();
    std::vector<std::string> tokens;
    if (path.extension() == ".txt") {
        for_each_line(text, [&](std::string_view line, size_t) { tokens.emplace_back(line); });
        return tokens;
    }
    const nlohmann::json root = parse_json(text, where);
    require(root.is_array(), where, ": expected a list of tokens");
    for (const nlohmann::json& token : root) {
        require(token.is_string(), where, ": token ", tokens.size(), ": expected text");
        tokens.push_back(token.get<std::string>());
    }
    return tokens;
}

class Ctranslate2Folder : public ModelFile {
  public:
    explicit Ctranslate2Folder(const std::filesystem::path& path)
        : path_(path),
          file_(path / "model.bin", "WhisperSpec", 3),
          config_(config_of(file_, path)),
          tensors_(file_) {}

    const char* format() const override { return "CTranslate2"; }
    const Config& config() const override { return config_; }
    TensorSource& tensors() override { return tensors_; }
    Tokenizer tokenizer() const override {
        for (const char* name : {"tokenizer.json", "vocabulary.json", "vocabulary.txt"}) {
            const std::filesystem::path path = path_ / name;
            std::error_code failed;
            if (!std::filesystem::exists(path, failed)) continue;
            if (std::string(name) == "tokenizer.json")
                return load_vocabulary(path, config_.n_vocab);
            return {Bpe::from_token_list(listed_tokens(path), path.string()), "", config_.n_vocab,
                    path.string()};
        }
        fail(path_.string(),
             ": expected tokenizer.json, vocabulary.json, vocabulary.txt or --tokenizer; found "
             "none");
    }

  private:
    std::filesystem::path path_;
    Ctranslate2Variables file_;
    Config config_;
    Ctranslate2Tensors tensors_;
};

}  // namespace

std::unique_ptr<ModelFile> open_ctranslate2(const std::filesystem::path& directory) {
    return std::make_unique<Ctranslate2Folder>(directory);
}

}  // namespace hark::whisper
