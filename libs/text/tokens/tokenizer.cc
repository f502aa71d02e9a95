#include "text/tokens/tokenizer.h"

#include "core/files.h"
#include "text/bpe_builder.h"
#include "text/bpe_encoder.h"
#include "text/split.h"
#include "text/tokens/sentencepiece.h"

namespace hark {
namespace {

class BpeTokenizer : public Tokenizer {
  public:
    explicit BpeTokenizer(Bpe bpe) : bpe_(std::move(bpe)) {}

    int32_t vocab_size() const override { return bpe_.vocab_size(); }
    std::optional<int32_t> end_of_text() const override {
        const auto found = bpe_.special("<|endoftext|>");
        return found ? found : bpe_.special("</s>");
    }
    size_t last_cut(std::string_view text) const override { return last_word_cut(text); }
    std::unique_ptr<Encoder> encoder() const override { return std::make_unique<Encoding>(bpe_); }
    std::unique_ptr<Decoder> decoder() const override { return std::make_unique<Decoding>(bpe_); }

  private:
    class Encoding : public Encoder {
      public:
        explicit Encoding(const Bpe& bpe) : encoder_(bpe) {}
        void encode(std::string_view part, std::vector<int32_t>& ids, bool begins) override {
            encoder_.encode(part, ids, begins);
        }

      private:
        BpeEncoder encoder_;
    };
    class Decoding : public Decoder {
      public:
        explicit Decoding(const Bpe& bpe) : bpe_(bpe) {}
        std::string push(std::span<const int32_t> ids) override { return bpe_.decode(ids, true); }
        std::string finish() override { return {}; }

      private:
        const Bpe& bpe_;
    };

    Bpe bpe_;
};

std::unique_ptr<Tokenizer> load_file(const std::filesystem::path& file) {
    const std::string text = read_vocabulary(file);
    if (auto bpe = parse_vocabulary(text, file))
        return std::make_unique<BpeTokenizer>(std::move(*bpe));
    return load_sentencepiece(text, file.string());
}

}  // namespace

std::unique_ptr<Tokenizer> Tokenizer::load(const std::filesystem::path& path) {
    if (!std::filesystem::is_directory(path)) return load_file(path);
    for (const char* name : {"tokenizer.model", "spiece.model"})
        if (std::filesystem::exists(path / name)) return load_file(path / name);
    return std::make_unique<BpeTokenizer>(Bpe::from_directory(path));
}

}  // namespace hark
