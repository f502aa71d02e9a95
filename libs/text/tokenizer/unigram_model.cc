#include "text/tokenizer/unigram_model.h"

#include <algorithm>
#include <cfloat>

#include "core/error.h"
#include "text/utf8.h"

namespace hark {
namespace {

constexpr double kUnknownPenalty = 10;  // below the least probable piece

}  // namespace

UnigramModel::UnigramModel(std::vector<UnigramPiece> pieces, UnigramOptions options)
    : pieces_(std::move(pieces)), options_(options) {
    std::vector<std::pair<std::string, int32_t>> texts;
    double least = 0;
    bool first = true;
    for (size_t i = 0; i < pieces_.size(); ++i) {
        const UnigramPiece& piece = pieces_[i];
        if (!ids_.emplace(piece.text, piece.id).second || piece.text.empty()) continue;
        texts.push_back({piece.text, static_cast<int32_t>(i)});
        if (piece.user_defined) continue;
        least = first ? piece.score : std::min(least, piece.score);
        best_score_ = first ? piece.score : std::max(best_score_, piece.score);
        first = false;
    }
    unknown_score_ = rounded(least - kUnknownPenalty);
    // Scores are logarithms; sentencepiece's search for the highest begins just above 0.
    if (options_.single_precision) best_score_ = std::max(best_score_, double{FLT_MIN});
    index_ = PrefixIndex(std::move(texts));
}

double UnigramModel::rounded(double score) const {
    return options_.single_precision ? static_cast<float>(score) : score;
}

double UnigramModel::score_of(int32_t piece, size_t length) const {
    const UnigramPiece& entry = pieces_[static_cast<size_t>(piece)];
    if (!entry.user_defined) return entry.score;
    return static_cast<double>(length) * best_score_ - 0.1;
}

void UnigramModel::extend(PathNode& node, double score, size_t begin, int32_t id) const {
    if (node.begin >= 0 && !(score > node.score)) return;
    node = {score, static_cast<int32_t>(begin), id};
}

void UnigramModel::find_path(std::string_view word, std::vector<PathNode>& path) const {
    path.assign(word.size() + 1, {});
    for (size_t at = 0; at < word.size();) {
        const double here = path[at].score;
        size_t next = at;
        next_code_point(word, next);
        bool covered = false;  // a piece has just this character
        index_.for_each_at(word, at, [&](size_t length, int32_t piece) {
            extend(path[at + length], rounded(score_of(piece, length) + here), at,
                   pieces_[static_cast<size_t>(piece)].id);
            covered = covered || length == next - at;
        });
        const double unknown = rounded(unknown_score_ + here);
        if (!covered) extend(path[next], unknown, at, options_.unknown);
        at = next;
    }
}

void UnigramModel::append_unknown(std::string_view run, std::vector<int32_t>& ids) const {
    if (options_.looks_up_unknown) {
        const auto found = ids_.find(run);
        if (found != ids_.end()) return ids.push_back(found->second);
    }
    const auto id_of = [&](char byte) {
        return options_.byte_ids[static_cast<unsigned char>(byte)];
    };
    if (options_.byte_fallback &&
        std::all_of(run.begin(), run.end(), [&](char byte) { return id_of(byte) >= 0; })) {
        for (const char byte : run) ids.push_back(id_of(byte));
        return;
    }
    require(options_.unknown >= 0, "the vocabulary has no piece for '", run,
            "' and no unknown token");
    ids.push_back(options_.unknown);
}

void UnigramModel::encode(std::string_view word, ModelWorkspace& space,
                          std::vector<int32_t>& ids) const {
    require(word.size() < INT32_MAX, "a text of ", word.size(), " bytes cannot be tokenised");
    find_path(word, space.path);
    // From the end to the beginning; spans are the pieces, unknown runs joined.
    space.spans.clear();
    space.ids.clear();
    for (size_t end = word.size(); end > 0;) {
        const PathNode& node = space.path[end];
        const auto begin = static_cast<size_t>(node.begin);
        const bool unknown = node.id == options_.unknown;
        if (unknown && !space.ids.empty() && space.ids.back() == options_.unknown)
            space.spans.back().first = static_cast<uint32_t>(begin);
        else {
            space.spans.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(end)});
            space.ids.push_back(node.id);
        }
        end = begin;
    }
    for (size_t i = space.ids.size(); i-- > 0;) {
        const auto [begin, end] = space.spans[i];
        if (space.ids[i] == options_.unknown)
            append_unknown(word.substr(begin, end - begin), ids);
        else
            ids.push_back(space.ids[i]);
    }
}

}  // namespace hark
