// Token files and ids as text, back to text.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "text/tokens/documents.h"
#include "text/tokenizer.h"

namespace hark {

// Takes ids in order and hands text to `write`. Writes <|endoftext|> between documents; a token
// before the first document gives nothing.
class TokenDecoder {
  public:
    using Write = std::function<void(std::string_view)>;
    TokenDecoder(const Tokenizer& tokenizer, Write write);

    // Throws Error for an id that has no token.
    void push(std::span<const int32_t> ids);
    // What comes next belongs to another document.
    void end_document();
    void finish();

  private:
    void text(std::span<const int32_t> ids);

    std::unique_ptr<Tokenizer::Decoder> decoder_;
    std::optional<int32_t> end_of_text_;
    Write write_;
    bool at_start_ = true;  // nothing has come yet
    bool between_ = false;  // a document has ended, and nothing has come after it
};

// Reads "-", standard input, or a file. Throws Error that names it, what was expected and what was
// found; the text before the error is written.
void decode_token_file(const std::string& path, TokenDecoder& decoder);
// The same of ids as text: a line per document, spaces between its ids.
void decode_ids_text(const std::string& path, TokenDecoder& decoder);

}  // namespace hark
