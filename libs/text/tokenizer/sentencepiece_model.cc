// sentencepiece's model files: a protocol buffer with pieces and how text is normalised.
// Source: google/sentencepiece, src/sentencepiece_model.proto and src/normalizer.cc.
#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "text/tokenizer/charsmap.h"
#include "text/tokenizer/parts.h"
#include "text/tokenizer/piece_model.h"
#include "text/tokenizer/piece_type.h"
#include "text/tokenizer/protobuf.h"
#include "text/tokenizer/unigram_model.h"
#include "text/utf8.h"

namespace hark {
namespace {

constexpr size_t kMaxPieces = size_t{1} << 24;
constexpr std::string_view kUnknownText = " \xE2\x81\x87 ";  // U+2047

struct Piece {
    std::string text;
    float score = 0;
    uint64_t type = kNormal;
};

// Fields that matter, with the defaults of the format.
struct ModelFile {
    std::vector<Piece> pieces;
    uint64_t kind = 1;  // 1: unigram, 2: BPE
    bool byte_fallback = false;
    std::string charsmap;
    bool dummy_prefix = true, remove_extra_spaces = true, escape_spaces = true;
    bool space_suffix = false;
    std::string unknown_text{kUnknownText};
};

// Calls use(field) for each field of a message; false if its bytes are none.
template <class Use>
bool for_each_field(std::string_view message, const Use& use) {
    ProtobufFields fields(message);
    while (fields.next()) use(fields);
    return !fields.broken;
}

bool read_piece(std::string_view message, Piece& piece) {
    return for_each_field(message, [&](const ProtobufFields& field) {
        if (field.number == 1 && field.kind == 2) piece.text = field.content;
        if (field.number == 2 && field.kind == 5) piece.score = field.as_float();
        if (field.number == 3 && field.kind == 0) piece.type = field.value;
    });
}

bool read_trainer(std::string_view message, ModelFile& model) {
    return for_each_field(message, [&](const ProtobufFields& field) {
        if (field.number == 3 && field.kind == 0) model.kind = field.value;
        if (field.number == 24 && field.kind == 0) model.space_suffix = field.value != 0;
        if (field.number == 35 && field.kind == 0) model.byte_fallback = field.value != 0;
        if (field.number == 44 && field.kind == 2) model.unknown_text = field.content;
    });
}

bool read_normalizer_spec(std::string_view message, ModelFile& model) {
    return for_each_field(message, [&](const ProtobufFields& field) {
        if (field.number == 2 && field.kind == 2) model.charsmap = field.content;
        if (field.number == 3 && field.kind == 0) model.dummy_prefix = field.value != 0;
        if (field.number == 4 && field.kind == 0) model.remove_extra_spaces = field.value != 0;
        if (field.number == 5 && field.kind == 0) model.escape_spaces = field.value != 0;
    });
}

ModelFile read_model(std::string_view bytes, const std::string& where) {
    ModelFile model;
    bool sound = true;
    const bool whole = for_each_field(bytes, [&](const ProtobufFields& field) {
        if (field.kind != 2) return;
        if (field.number == 1 && model.pieces.size() < kMaxPieces)
            sound = read_piece(field.content, model.pieces.emplace_back()) && sound;
        if (field.number == 2) sound = read_trainer(field.content, model) && sound;
        if (field.number == 3) sound = read_normalizer_spec(field.content, model) && sound;
    });
    require(whole && sound && !model.pieces.empty() && model.pieces.size() < kMaxPieces, where,
            ": expected tokenizer.json, a tiktoken rank file or a sentencepiece model, found none ",
            "of them");
    return model;
}

// Text as the pieces spell it. User-defined pieces are left as they are.
class SpaceNormalizer {
  public:
    SpaceNormalizer(const ModelFile& model, Charsmap charsmap)
        : charsmap_(std::move(charsmap)),
          space_(model.escape_spaces ? kMetaspace : " "),
          dummy_prefix_(model.dummy_prefix),
          removes_(model.remove_extra_spaces) {
        std::vector<std::pair<std::string, int32_t>> user_defined;
        for (const Piece& piece : model.pieces)
            if (piece.type == kUserDefined && !piece.text.empty())
                user_defined.push_back({piece.text, 0});
        std::sort(user_defined.begin(), user_defined.end());
        user_defined.erase(std::unique(user_defined.begin(), user_defined.end()),
                           user_defined.end());
        user_defined_ = PrefixIndex(std::move(user_defined));
    }

    void operator()(std::string& text) const {
        std::string made = dummy_prefix_ ? std::string(space_) : std::string();
        bool after_space = removes_, any = !removes_ && !text.empty();
        for (size_t at = 0; at < text.size();) {
            auto [part, length] = next(std::string_view(text).substr(at));
            at += length;
            while (after_space && part.starts_with(' ')) part.remove_prefix(1);
            if (part.empty()) continue;
            any = true;
            for (const char c : part) c == ' ' ? made += space_ : made += c;
            after_space = removes_ && part.ends_with(' ');
        }
        while (removes_ && made.ends_with(space_)) made.resize(made.size() - space_.size());
        text = any ? made : std::string();
    }

  private:
    Charsmap::Found next(std::string_view text) const {
        const size_t user_defined = user_defined_.longest_at(text, 0).first;
        if (user_defined > 0) return {text.substr(0, user_defined), user_defined};
        const Charsmap::Found found = charsmap_.find(text);
        if (found.length > 0) return found;
        size_t length = 0;
        next_code_point(text, length);
        return {text.substr(0, length), length};
    }

    Charsmap charsmap_;
    PrefixIndex user_defined_;
    std::string_view space_;
    bool dummy_prefix_, removes_;
};

std::shared_ptr<const TokenModel> make_model(const ModelFile& file, const TokenIds& vocab,
                                             int32_t unknown, const std::string& where) {
    const auto byte_ids = byte_token_ids(vocab);
    std::vector<UnigramPiece> unigram;
    std::vector<ScoredPiece> scored;
    for (size_t i = 0; i < file.pieces.size(); ++i) {
        const Piece& piece = file.pieces[i];
        const bool user_defined = piece.type == kUserDefined;
        if ((piece.type != kNormal && !user_defined) || !is_valid_utf8(piece.text)) continue;
        const auto id = static_cast<int32_t>(i);
        if (file.kind == 1) unigram.push_back({piece.text, id, piece.score, user_defined});
        if (file.kind == 2) scored.push_back({piece.text, id, piece.score, user_defined});
    }
    if (file.kind == 2)
        return std::make_shared<PieceModel>(
            scored, PieceModelOptions{unknown, file.byte_fallback, byte_ids}, where);
    return std::make_shared<UnigramModel>(
        std::move(unigram), UnigramOptions{unknown, file.byte_fallback, byte_ids, true, false});
}

void fill_decoding(const ModelFile& file, TokenizerParts& parts) {
    DecodingRules& rules = parts.decoding.rules;
    rules.bytes = DecodingRules::Bytes::each;
    if (file.dummy_prefix || file.remove_extra_spaces) {
        rules.strips = file.remove_extra_spaces ? SIZE_MAX : 1;
        rules.strips_first_token_only = !file.remove_extra_spaces;
    }
    const NormalizeStep to_space = replace_step(Pattern::literal(std::string(kMetaspace)), " ");
    for (size_t id = 0; id < file.pieces.size(); ++id) {
        const Piece& piece = file.pieces[id];
        TokenText& token = parts.decoding.tokens[id];
        token.used = true;
        token.special = piece.type == kControl;
        token.text = piece.type == kUnknown ? file.unknown_text : piece.text;
        token.strips = piece.type != kUnknown;
        if (piece.type == kByte) token.byte = static_cast<int16_t>(byte_of_token(piece.text));
        if (piece.type != kUnknown && piece.type != kControl) to_space(token.text);
    }
}

}  // namespace

Tokenizer Tokenizer::parse_sentencepiece(std::string_view bytes, const std::string& where) {
    const ModelFile file = read_model(bytes, where);
    require(file.kind == 1 || file.kind == 2, where, ": expected a sentencepiece model of kind ",
            "unigram (1) or bpe (2), found kind ", file.kind);
    require(!file.space_suffix, where, ": treat_whitespace_as_suffix is not supported");
    TokenizerParts parts;
    TokenIds vocab;
    int32_t unknown = -1;
    for (size_t i = 0; i < file.pieces.size(); ++i) {
        const Piece& piece = file.pieces[i];
        const auto id = static_cast<int32_t>(i);
        require(std::isfinite(piece.score), where, ": piece ", i, ": its score is not a number");
        require(!piece.text.empty() && vocab.emplace(piece.text, id).second, where, ": piece ", i,
                " ('", piece.text, "') is empty or there already");
        if (piece.type == kUnknown) unknown = id;
        if (piece.type == kControl)
            parts.added.push_back({.content = piece.text, .id = id, .special = true});
        parts.spellings.push_back(piece.text);
    }
    require(unknown >= 0, where, ": expected a piece for what is unknown, found none");
    parts.decoding.tokens.resize(file.pieces.size());
    fill_decoding(file, parts);
    parts.normalizer = {SpaceNormalizer(file, Charsmap(file.charsmap, where))};
    parts.model = make_model(file, vocab, unknown, where);
    parts.special.unknown = unknown;
    parts.special.bos = find_token(parts, "<s>");
    if (!parts.special.bos) parts.special.bos = find_token(parts, "<bos>");
    parts.special.eos = find_token(parts, "</s>");
    if (!parts.special.eos) parts.special.eos = find_token(parts, "<eos>");
    parts.special.padding = find_token(parts, "<pad>");
    if (parts.special.eos) parts.special.ends = {*parts.special.eos};
    // As transformers' Llama and Gemma classes do: the file itself does not say.
    parts.special.add_bos = parts.special.bos.has_value();
    if (parts.special.bos) parts.before = {*parts.special.bos};
    return Tokenizer(std::move(parts));
}

}  // namespace hark
