// One face for the kinds of tokenizers: byte-level BPE and sentencepiece.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hark {

class Tokenizer {
  public:
    // Encodes one text after another; for one thread.
    class Encoder {
      public:
        virtual ~Encoder() = default;
        // Appends the ids of the next part of a text, which `begins` it or continues it. Parts
        // laid end to end have the ids of the whole where last_cut() cut them.
        virtual void encode(std::string_view part, std::vector<int32_t>& ids, bool begins) = 0;
    };
    // Turns a text's ids back, in parts.
    class Decoder {
      public:
        virtual ~Decoder() = default;
        // The text that is known once `ids` have come; its bytes need not be whole code points.
        // Throws Error for an id that has no token.
        virtual std::string push(std::span<const int32_t> ids) = 0;
        // What is left; the next ids are another text's.
        virtual std::string finish() = 0;
    };

    virtual ~Tokenizer() = default;

    // Reads what Bpe::load() does, or a sentencepiece model, alone or as tokenizer.model or
    // spiece.model of a directory; files are told by their content. Throws Error naming the file.
    static std::unique_ptr<Tokenizer> load(const std::filesystem::path& path);

    virtual int32_t vocab_size() const = 0;
    // The token between documents: <|endoftext|>, else </s>.
    virtual std::optional<int32_t> end_of_text() const = 0;
    // The last place where a text that continues can be cut; 0 if it must not be cut.
    virtual size_t last_cut(std::string_view text) const = 0;
    virtual std::unique_ptr<Encoder> encoder() const = 0;
    virtual std::unique_ptr<Decoder> decoder() const = 0;
};

}  // namespace hark
