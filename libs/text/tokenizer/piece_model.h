// Byte-pair encoding by the scores of pieces, as sentencepiece and GGUF's "llama" kind have it:
// two neighbours merge if together they are a piece, the pair of the highest score first.
// Source: sentencepiece, bpe_model.cc.
#pragma once

#include <span>

#include "text/tokenizer/prefix_index.h"
#include "text/tokenizer/token_model.h"

namespace hark {

struct ScoredPiece {
    std::string text;
    int32_t id = 0;
    float score = 0;
    bool user_defined = false;  // is found in the text and merges with nothing
};

struct PieceModelOptions {
    int32_t unknown = -1;
    bool byte_fallback = false;  // what is no piece becomes <0xXX> tokens
    std::array<int32_t, 256> byte_ids{};
};

class PieceModel : public TokenModel {
  public:
    // Throws Error beginning with `where` for a piece too long to merge.
    PieceModel(std::span<const ScoredPiece> pieces, PieceModelOptions options,
               const std::string& where);
    void encode(std::string_view word, ModelWorkspace& space,
                std::vector<int32_t>& ids) const override;
    size_t part_end(std::string_view word, size_t at) const override;

  private:
    int32_t symbol_of(std::string_view text);
    void collect_pairs(std::span<const ScoredPiece> pieces);
    void append_unknown(std::string_view run, std::vector<int32_t>& ids) const;

    PieceModelOptions options_;
    TokenIds symbols_;         // pieces, and characters that are in pieces alone
    int32_t first_extra_ = 0;  // symbols from here on are such characters
    int32_t next_symbol_ = 0;
    PairTable pairs_;
    PrefixIndex user_defined_;
    bool cuts_ = true;  // no piece has kMetaspace after another character
};

}  // namespace hark
