// Text to token ids and back, one interface for every family of tokenizers: byte-level BPE, BPE and
// unigram models of sentencepiece, from tokenizer.json, tokenizer.model, GGUF and rank files.
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

class Bpe;
class GgufFile;
struct TokenizerParts;

// A part of a prompt. In trusted ones, a chat template's own text, the text of a special token is
// that token; in others, a person's, it is text.
struct PromptPiece {
    std::string text;
    bool trusted = false;
};

struct EncodeOptions {
    bool parse_specials = false;  // the text of a special token is that token
    bool add_specials = false;    // put the model's own tokens around the text, such as <s>
};

class Tokenizer {
  public:
    // Encodes one text after another; for one thread.
    class Encoder {
      public:
        explicit Encoder(const Tokenizer& tokenizer);
        ~Encoder();
        // Appends the ids of the next part of a text, which `begins` it or continues it, without
        // special tokens. Parts laid end to end have the ids of the whole where last_cut() cut
        // them.
        void encode(std::string_view part, std::vector<int32_t>& ids, bool begins);
        // Appends the ids of a text, or of pieces that are one text.
        void encode(std::string_view text, std::vector<int32_t>& ids, const EncodeOptions& options);
        void encode(std::span<const PromptPiece> pieces, std::vector<int32_t>& ids,
                    bool add_specials);

      private:
        struct State;
        std::unique_ptr<State> state_;
    };
    // Turns a text's ids back, in parts.
    class Decoder {
      public:
        Decoder(const Tokenizer& tokenizer, bool with_specials);
        ~Decoder();
        // The text that is known once `ids` have come; its bytes need not be whole code points
        // (Utf8Stream makes them so). Throws Error for an id that has no token.
        std::string push(std::span<const int32_t> ids);
        // What is left; the next ids are another text's.
        std::string finish();

      private:
        struct State;
        std::unique_ptr<State> state_;
    };

    // What the files say of a model's own tokens.
    struct SpecialIds {
        std::optional<int32_t> bos, eos, unknown, padding;
        std::vector<int32_t> ends;              // tokens that end an answer, eos among them
        bool add_bos = false, add_eos = false;  // what `add_specials` puts around a text
    };

    explicit Tokenizer(TokenizerParts parts);
    Tokenizer(Tokenizer&&) noexcept;
    Tokenizer& operator=(Tokenizer&&) noexcept;
    ~Tokenizer();

    // Reads a directory's tokenizer.json (with tokenizer_config.json), tokenizer.model,
    // spiece.model or vocab.json and merges.txt, or one file: these, a tiktoken rank file (with
    // <|endoftext|> after its ranks), llm.c's tokenizer.bin, a GGUF model. Files are told apart by
    // their content. Throws Error naming the file, and what of it is not supported.
    static std::unique_ptr<Tokenizer> load(const std::filesystem::path& path);
    // The same from what has been read; `where` names it in messages. `config` is
    // tokenizer_config.json's text, or empty.
    static Tokenizer parse_json(std::string_view text, std::string_view config,
                                const std::string& where);
    static Tokenizer parse_sentencepiece(std::string_view model, const std::string& where);
    static Tokenizer from_gguf(const GgufFile& file);
    static Tokenizer from_bpe(const Bpe& bpe, const std::string& where);

    // One more than the largest id. A model's table may be larger: it is often padded.
    int32_t vocab_size() const;
    // Whether an id has a token.
    bool has(int32_t id) const;
    // Whether a token gives no text unless it is asked for.
    bool is_special(int32_t id) const;
    // The id of a token as the file spells it: "<|im_end|>"; nullopt if there is none.
    std::optional<int32_t> id_of(std::string_view token) const;
    // The token as the file spells it. Throws Error for an id that has none.
    const std::string& token(int32_t id) const;
    // The bytes that the token is in a text, a special token's as the file spells it. They need not
    // be whole code points. Throws Error for an id that has none.
    std::string bytes_of(int32_t id) const;
    const SpecialIds& special_ids() const;
    // The token between documents: <|endoftext|>, else the end-of-text token.
    std::optional<int32_t> end_of_text() const;

    // The last place where a text that continues can be cut; 0 if it must not be cut.
    size_t last_cut(std::string_view text) const;
    std::unique_ptr<Encoder> encoder() const;
    std::unique_ptr<Decoder> decoder(bool with_specials = true) const;

    // Invalid UTF-8 is read as U+FFFD, as Python decodes it with errors="replace".
    std::vector<int32_t> encode(std::string_view text, const EncodeOptions& options = {}) const;
    std::vector<int32_t> encode(std::span<const PromptPiece> pieces, bool add_specials) const;
    // The text of all ids, valid UTF-8.
    std::string decode(std::span<const int32_t> ids, bool with_specials = false) const;

  private:
    struct Inside;
    std::unique_ptr<const Inside> inside_;
};

}  // namespace hark
