#include "text/tokenizer/piece_model.h"

#include <algorithm>

#include "core/error.h"
#include "text/utf8.h"

namespace hark {
namespace {

// The bound keeps a hostile file from costing the square of its size.
constexpr size_t kMaxPiece = 512;
constexpr int32_t kNoSymbol = INT32_MIN;  // a character that no piece has

bool is_one_character(std::string_view text) {
    size_t at = 0;
    next_code_point(text, at);
    return at == text.size();
}

}  // namespace

PieceModel::PieceModel(std::span<const ScoredPiece> pieces, PieceModelOptions options,
                       const std::string& where)
    : options_(options) {
    std::vector<std::pair<std::string, int32_t>> user_defined;
    for (const ScoredPiece& piece : pieces) {
        next_symbol_ = std::max(next_symbol_, piece.id + 1);
        if (piece.text.empty() || !is_valid_utf8(piece.text)) continue;
        require(piece.user_defined || piece.text.size() <= kMaxPiece, where, ": token ", piece.id,
                ": expected a piece of at most ", kMaxPiece, " bytes, found ", piece.text.size());
        if (!symbols_.emplace(piece.text, piece.id).second) continue;
        if (has_inner_metaspace(piece.text)) cuts_ = false;
        if (piece.user_defined) user_defined.push_back({piece.text, piece.id});
    }
    first_extra_ = next_symbol_;
    cuts_ = cuts_ && symbols_.contains(kMetaspace);
    user_defined_ = PrefixIndex(std::move(user_defined));
    collect_pairs(pieces);
}

// A piece's id, or a number of its own for a character that is no piece.
int32_t PieceModel::symbol_of(std::string_view text) {
    const auto found = symbols_.find(text);
    if (found != symbols_.end()) return found->second;
    if (!is_one_character(text)) return kNoSymbol;
    return symbols_.emplace(std::string(text), next_symbol_++).first->second;
}

// Every cut of every piece into two symbols is a pair; its rank is the place of the piece's score.
void PieceModel::collect_pairs(std::span<const ScoredPiece> pieces) {
    std::vector<float> scores;
    for (const ScoredPiece& piece : pieces) scores.push_back(piece.score);
    std::sort(scores.begin(), scores.end(), std::greater<>());
    scores.erase(std::unique(scores.begin(), scores.end()), scores.end());
    std::unordered_map<uint64_t, PairTable::Merge> pairs;
    for (const ScoredPiece& piece : pieces) {
        const std::string_view text = piece.text;
        const auto known = symbols_.find(text);
        if (known == symbols_.end() || known->second != piece.id || text.size() > kMaxPiece)
            continue;
        const auto rank =
            std::lower_bound(scores.begin(), scores.end(), piece.score, std::greater<>()) -
            scores.begin();
        size_t cut = 0;
        for (next_code_point(text, cut); cut < text.size(); next_code_point(text, cut)) {
            const int32_t left = symbol_of(text.substr(0, cut));
            const int32_t right = left == kNoSymbol ? kNoSymbol : symbol_of(text.substr(cut));
            if (right != kNoSymbol)
                pairs[pair_key(left, right)] = {static_cast<int32_t>(rank), piece.id};
        }
    }
    pairs_ = PairTable(pairs);
}

size_t PieceModel::part_end(std::string_view word, size_t at) const {
    return cuts_ ? metaspace_part_end(word, at) : word.size();
}

// A user-defined piece is a symbol that has no pairs: its id's complement.
void PieceModel::encode(std::string_view word, ModelWorkspace& space,
                        std::vector<int32_t>& ids) const {
    std::vector<int32_t>& symbols = space.merger.symbols();
    symbols.clear();
    space.spans.clear();
    for (size_t at = 0; at < word.size();) {
        const auto [length, user_defined] = user_defined_.longest_at(word, at);
        size_t end = at + length;
        if (length == 0) {
            next_code_point(word, end);
            const auto found = symbols_.find(word.substr(at, end - at));
            symbols.push_back(found == symbols_.end() ? kNoSymbol : found->second);
        } else {
            symbols.push_back(~user_defined);
        }
        space.spans.push_back({static_cast<uint32_t>(at), static_cast<uint32_t>(end)});
        at = end;
    }
    space.merger.merge(pairs_);
    size_t unknown_begin = word.size();  // a run of unknown characters; it has an end if it began
    const auto end_run = [&](size_t end) {
        if (unknown_begin < end)
            append_unknown(word.substr(unknown_begin, end - unknown_begin), ids);
        unknown_begin = word.size();
    };
    space.merger.for_each([&](int32_t id, int32_t first) {
        const size_t begin = space.spans[static_cast<size_t>(first)].first;
        if (id == kNoSymbol || id >= first_extra_) {
            unknown_begin = std::min(unknown_begin, begin);
            return;
        }
        end_run(begin);
        ids.push_back(id < 0 ? ~id : id);
    });
    end_run(word.size());
}

void PieceModel::append_unknown(std::string_view run, std::vector<int32_t>& ids) const {
    if (!options_.byte_fallback) {
        require(options_.unknown >= 0, "the vocabulary has no piece for '", run,
                "' and no unknown token");
        return ids.push_back(options_.unknown);
    }
    for (const char byte : run) {
        const int32_t id = options_.byte_ids[static_cast<unsigned char>(byte)];
        if (id >= 0)
            ids.push_back(id);
        else if (options_.unknown >= 0)
            ids.push_back(options_.unknown);
    }
}

}  // namespace hark
