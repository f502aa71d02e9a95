#include "text/tokenizer.h"

#include <algorithm>

#include "core/error.h"
#include "text/split.h"
#include "text/tokenizer/parts.h"
#include "text/tokenizer/word_cache.h"
#include "text/utf8.h"

namespace hark {

struct Tokenizer::Inside {
    TokenizerParts parts;
    TokenIds ids;
    AddedTokenFinder raw;               // tokens found in the text as it is
    AddedTokenFinder raw_and_specials;  // and every special one
    AddedTokenFinder normalized;        // tokens found in normalised text
};

Tokenizer::Tokenizer(TokenizerParts parts) {
    auto inside = std::make_unique<Inside>();
    std::vector<AddedToken> raw, all, in_normalized;
    for (const AddedToken& token : parts.added) {
        if (!token.normalized || token.special) all.push_back(token);
        if (!token.normalized) {
            raw.push_back(token);
            continue;
        }
        in_normalized.push_back(token);
        in_normalized.back().content = hark::normalized(parts.normalizer, token.content);
    }
    inside->raw = AddedTokenFinder(std::move(raw));
    inside->raw_and_specials = AddedTokenFinder(std::move(all));
    inside->normalized = AddedTokenFinder(std::move(in_normalized));
    for (size_t id = 0; id < parts.spellings.size(); ++id)
        if (parts.decoding.tokens[id].used)
            inside->ids.emplace(parts.spellings[id], static_cast<int32_t>(id));
    // What spells an added token is that token, whatever the model has.
    for (const AddedToken& token : parts.added) inside->ids[token.content] = token.id;
    inside->parts = std::move(parts);
    inside_ = std::move(inside);
}

Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

int32_t Tokenizer::vocab_size() const {
    return static_cast<int32_t>(inside_->parts.spellings.size());
}

bool Tokenizer::has(int32_t id) const {
    return id >= 0 && id < vocab_size() && inside_->parts.decoding.tokens[id].used;
}

bool Tokenizer::is_special(int32_t id) const {
    return has(id) && inside_->parts.decoding.tokens[id].special;
}

std::optional<int32_t> Tokenizer::id_of(std::string_view token) const {
    const auto found = inside_->ids.find(token);
    return found == inside_->ids.end() ? std::nullopt : std::optional<int32_t>(found->second);
}

const std::string& Tokenizer::token(int32_t id) const {
    require(has(id), "token id ", id, " is not in the vocabulary of ", vocab_size());
    return inside_->parts.spellings[id];
}

std::string Tokenizer::bytes_of(int32_t id) const {
    require(has(id), "token id ", id, " is not in the vocabulary of ", vocab_size());
    const DecodingTable& decoding = inside_->parts.decoding;
    const TokenText& token = decoding.tokens[static_cast<size_t>(id)];
    const bool is_byte = token.byte >= 0 && decoding.rules.bytes != DecodingRules::Bytes::none;
    return is_byte ? std::string(1, static_cast<char>(token.byte)) : token.text;
}

const Tokenizer::SpecialIds& Tokenizer::special_ids() const { return inside_->parts.special; }

std::optional<int32_t> Tokenizer::end_of_text() const {
    if (const auto id = id_of("<|endoftext|>")) return id;
    if (special_ids().eos) return special_ids().eos;
    return id_of("</s>");
}

size_t Tokenizer::last_cut(std::string_view text) const {
    return inside_->parts.cuts_words ? last_word_cut(text) : 0;
}

std::unique_ptr<Tokenizer::Encoder> Tokenizer::encoder() const {
    return std::make_unique<Encoder>(*this);
}

std::unique_ptr<Tokenizer::Decoder> Tokenizer::decoder(bool with_specials) const {
    return std::make_unique<Decoder>(*this, with_specials);
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
    std::vector<int32_t> ids;
    Encoder(*this).encode(text, ids, options);
    return ids;
}

std::vector<int32_t> Tokenizer::encode(std::span<const PromptPiece> pieces,
                                       bool add_specials) const {
    std::vector<int32_t> ids;
    Encoder(*this).encode(pieces, ids, add_specials);
    return ids;
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool with_specials) const {
    Decoder decoder(*this, with_specials);
    const std::string bytes = decoder.push(ids);
    return replace_invalid(bytes + decoder.finish());
}

struct Tokenizer::Encoder::State {
    const Inside& inside;
    ModelWorkspace space;
    WordCache cache;

    void words(const TextChunk& word, std::vector<int32_t>& ids);
    void segment(std::string_view text, bool first, const TrustedRanges& trusted,
                 std::vector<int32_t>& ids);
    void encode(std::string_view text, const TrustedRanges& trusted, bool begins,
                std::vector<int32_t>& ids);
};

void Tokenizer::Encoder::State::words(const TextChunk& word, std::vector<int32_t>& ids) {
    const TokenModel& model = *inside.parts.model;
    for (size_t at = 0; at < word.text.size();) {
        const size_t end = model.part_end(word.text, at);
        const std::string_view part = word.text.substr(at, end - at);
        cache.append(part, ids, [&] { model.encode(part, space, ids); });
        at = end;
    }
}

// Text between the tokens that were found in the raw text.
void Tokenizer::Encoder::State::segment(std::string_view text, bool first,
                                        const TrustedRanges& trusted, std::vector<int32_t>& ids) {
    const std::string made =
        inside.parts.normalizer.empty() ? std::string() : normalized(inside.parts.normalizer, text);
    if (!inside.parts.normalizer.empty()) text = made;
    const EmitText encode_word = [&](const TextChunk& word) { words(word, ids); };
    inside.normalized.split(text, trusted, [&](size_t begin, size_t end, const AddedToken* token) {
        if (token) return ids.push_back(token->id);
        pre_tokenize(inside.parts.pre_tokenizer,
                     {text.substr(begin, end - begin), first && begin == 0}, encode_word);
    });
}

void Tokenizer::Encoder::State::encode(std::string_view text, const TrustedRanges& trusted,
                                       bool begins, std::vector<int32_t>& ids) {
    // Places in normalised text are not those in the text: if only parts of it are trusted, every
    // special token is found in the text as it is.
    const bool mixed = !trusted.none() && !trusted.everything();
    const AddedTokenFinder& finder = mixed ? inside.raw_and_specials : inside.raw;
    const TrustedRanges& later = mixed ? TrustedRanges() : trusted;
    finder.split(text, trusted, [&](size_t begin, size_t end, const AddedToken* token) {
        if (token) return ids.push_back(token->id);
        segment(text.substr(begin, end - begin), begins && begin == 0, later, ids);
    });
}

Tokenizer::Encoder::Encoder(const Tokenizer& tokenizer)
    : state_(new State{*tokenizer.inside_, {}, {}}) {}
Tokenizer::Encoder::~Encoder() = default;

void Tokenizer::Encoder::encode(std::string_view part, std::vector<int32_t>& ids, bool begins) {
    const std::string valid = is_valid_utf8(part) ? std::string() : replace_invalid(part);
    state_->encode(valid.empty() ? part : valid, {}, begins, ids);
}

void Tokenizer::Encoder::encode(std::string_view text, std::vector<int32_t>& ids,
                                const EncodeOptions& options) {
    const TokenizerParts& parts = state_->inside.parts;
    const std::string valid = is_valid_utf8(text) ? std::string() : replace_invalid(text);
    const auto trusted = options.parse_specials ? TrustedRanges::all() : TrustedRanges();
    if (options.add_specials) ids.insert(ids.end(), parts.before.begin(), parts.before.end());
    state_->encode(valid.empty() ? text : valid, trusted, true, ids);
    if (options.add_specials) ids.insert(ids.end(), parts.after.begin(), parts.after.end());
}

void Tokenizer::Encoder::encode(std::span<const PromptPiece> pieces, std::vector<int32_t>& ids,
                                bool add_specials) {
    std::string text;
    TrustedRanges trusted;
    bool everything = true;
    for (const PromptPiece& piece : pieces) {
        const size_t begin = text.size();
        text += replace_invalid(piece.text);
        everything = everything && (piece.trusted || piece.text.empty());
        if (!piece.trusted || text.size() == begin) continue;
        if (!trusted.none() && trusted.ranges.back().second == begin)
            trusted.ranges.back().second = text.size();
        else
            trusted.ranges.push_back({begin, text.size()});
    }
    if (everything) trusted = TrustedRanges::all();
    const TokenizerParts& parts = state_->inside.parts;
    if (add_specials) ids.insert(ids.end(), parts.before.begin(), parts.before.end());
    state_->encode(text, trusted, true, ids);
    if (add_specials) ids.insert(ids.end(), parts.after.begin(), parts.after.end());
}

struct Tokenizer::Decoder::State {
    TokenTextStream stream;
};

Tokenizer::Decoder::Decoder(const Tokenizer& tokenizer, bool with_specials)
    : state_(new State{TokenTextStream(tokenizer.inside_->parts.decoding, with_specials)}) {}
Tokenizer::Decoder::~Decoder() = default;

std::string Tokenizer::Decoder::push(std::span<const int32_t> ids) {
    std::string out;
    for (const int32_t id : ids) state_->stream.push(id, out);
    return out;
}

std::string Tokenizer::Decoder::finish() {
    std::string out;
    state_->stream.finish(out);
    return out;
}

}  // namespace hark
