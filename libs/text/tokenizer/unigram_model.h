// The unigram model: of all ways to cut a word into pieces the one with the highest sum of scores.
// Sources: Kudo 2018, "Subword Regularization"; sentencepiece, unigram_model.cc (EncodeOptimized);
// huggingface/tokenizers, tokenizers/src/models/unigram/model.rs.
#pragma once

#include <span>

#include "text/tokenizer/prefix_index.h"
#include "text/tokenizer/token_model.h"

namespace hark {

struct UnigramPiece {
    std::string text;
    int32_t id = 0;
    double score = 0;
    bool user_defined = false;  // is always taken where it fits
};

struct UnigramOptions {
    int32_t unknown = -1;
    bool byte_fallback = false;
    std::array<int32_t, 256> byte_ids{};  // of <0xXX>; -1: none
    bool single_precision = false;        // sums as sentencepiece keeps them
    // A run of unknown characters that is a piece as a whole is that piece, as in tokenizer.json.
    bool looks_up_unknown = false;
};

class UnigramModel : public TokenModel {
  public:
    UnigramModel(std::vector<UnigramPiece> pieces, UnigramOptions options);
    void encode(std::string_view word, ModelWorkspace& space,
                std::vector<int32_t>& ids) const override;

  private:
    double rounded(double score) const;
    double score_of(int32_t piece, size_t length) const;
    void extend(PathNode& node, double score, size_t begin, int32_t id) const;
    void find_path(std::string_view word, std::vector<PathNode>& path) const;
    void append_unknown(std::string_view run, std::vector<int32_t>& ids) const;

    std::vector<UnigramPiece> pieces_;
    PrefixIndex index_;
    TokenIds ids_;
    UnigramOptions options_;
    double unknown_score_ = 0;
    double best_score_ = 0;
};

}  // namespace hark
