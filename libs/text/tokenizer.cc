#include "text/tokenizer.h"

#include <algorithm>

#include "core/error.h"
#include "core/files.h"
#include "text/bpe_builder.h"
#include "text/bpe_encoder.h"
#include "text/sentencepiece.h"
#include "text/split.h"

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

bool is_rank_file(std::string_view text) {
    const std::string_view line = text.substr(0, text.find('\n'));
    const size_t space = line.find(' ');
    return space != line.npos && space + 1 < line.size() &&
           std::all_of(line.begin(), line.begin() + static_cast<ptrdiff_t>(space),
                       [](unsigned char c) {
                           return std::isalnum(c) || c == '+' || c == '/' || c == '=';
                       }) &&
           std::all_of(line.begin() + static_cast<ptrdiff_t>(space) + 1, line.end(),
                       [](unsigned char c) { return std::isdigit(c) || c == '\r'; });
}

// A rank file does not say by which pattern its text is split; ours is GPT-2's.
Bpe read_ranks(std::string_view text, const std::string& where) {
    Bpe bpe = Bpe::parse_tiktoken(text, where);
    for (const auto& [ranks, name] :
         {std::pair(100'256, "cl100k_base"), {128'000, "Llama 3"}, {199'998, "o200k_base"}})
        require(bpe.vocab_size() != ranks, where, ": found ", ranks, " ranks, those of ", name,
                ", whose text is not split by GPT-2's pattern, the only one that is known here");
    bpe.add_special("<|endoftext|>", bpe.vocab_size());
    return bpe;
}

std::unique_ptr<Tokenizer> load_file(const std::filesystem::path& file) {
    const std::string where = file.string();
    const std::string text = read_file(file, kMaxTokenizerFile);
    if (text.starts_with('{'))
        return std::make_unique<BpeTokenizer>(Bpe::parse_tokenizer_json(text, where));
    if (is_rank_file(text)) return std::make_unique<BpeTokenizer>(read_ranks(text, where));
    return load_sentencepiece(text, where);
}

}  // namespace

std::unique_ptr<Tokenizer> Tokenizer::load(const std::filesystem::path& path) {
    if (!std::filesystem::is_directory(path)) return load_file(path);
    for (const char* name : {"tokenizer.model", "spiece.model"})
        if (std::filesystem::exists(path / name)) return load_file(path / name);
    return std::make_unique<BpeTokenizer>(Bpe::from_directory(path));
}

}  // namespace hark
