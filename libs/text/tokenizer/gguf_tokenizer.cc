// The tokenizer in a GGUF model's keys.
// Sources: ggml's docs/gguf.md, "Tokenizer"; gguf-py's constants.py, TokenType; llama.cpp's
// src/llama-vocab.cpp for the names of tokenizer.ggml.pre and what they imply.
#include <algorithm>
#include <array>
#include <map>

#include "core/error.h"
#include "formats/gguf.h"
#include "text/byte_alphabet.h"
#include "text/tokenizer/bpe_model.h"
#include "text/tokenizer/gguf_splits.h"
#include "text/tokenizer/parts.h"
#include "text/tokenizer/piece_model.h"
#include "text/tokenizer/piece_type.h"
#include "text/utf8.h"

namespace hark {
namespace {

const std::string kKey = "tokenizer.ggml.";

// Tokens whose text says that they end an answer. Source: llama.cpp src/llama-vocab.cpp.
constexpr std::array<std::string_view, 12> kEndTexts = {
    "<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>",   "<|return|>",
    "<|call|>",   "<|eom_id|>", "<|eom|>", "<EOT>",         "<|end_of_text|>", "<|eot|>"};

struct GgufTokens {
    std::vector<std::string_view> texts;
    std::vector<int64_t> types;
};

GgufTokens read_tokens(const GgufFile& file) {
    GgufTokens tokens{file.texts(kKey + "tokens"), {}};
    const size_t count = tokens.texts.size();
    require(count > 0 && count < INT32_MAX, file.name(), ": key '", kKey,
            "tokens': expected tokens, found ", count);
    tokens.types.assign(count, 1);
    const std::string types_key = kKey + "token_type";
    if (file.has(types_key)) tokens.types = file.integers(types_key);
    require(tokens.types.size() == count, file.name(), ": key '", types_key, "': expected ", count,
            " types, one per token, found ", tokens.types.size());
    return tokens;
}

bool flag(const GgufFile& file, const std::string& name, bool otherwise) {
    return file.has(kKey + name) ? file.boolean(kKey + name) : otherwise;
}

// Control and user-defined tokens are found in the text as it is.
void add_tokens(const GgufTokens& tokens, TokenizerParts& parts) {
    for (size_t id = 0; id < tokens.texts.size(); ++id) {
        const std::string text(tokens.texts[id]);
        const int64_t type = tokens.types[id];
        const bool special = type == kControl || type == kUnknown;
        parts.spellings.push_back(text);
        TokenText& entry = parts.decoding.tokens.emplace_back();
        entry.used = type != kUnused;
        entry.special = special;
        entry.text = text;
        if ((special || type == kUserDefined) && !text.empty() && is_valid_utf8(text))
            parts.added.push_back(
                {.content = text, .id = static_cast<int32_t>(id), .special = special});
    }
}

void read_special_ids(const GgufFile& file, const GgufTokens& tokens, bool add_bos,
                      std::optional<int32_t> bos, std::optional<int32_t> eos,
                      TokenizerParts& parts) {
    const auto last = static_cast<int64_t>(tokens.texts.size()) - 1;
    const auto id_of = [&](const char* name, std::optional<int32_t> otherwise) {
        const std::string key = kKey + name + "_token_id";
        if (!file.has(key)) return otherwise && *otherwise <= last ? otherwise : std::nullopt;
        return std::optional<int32_t>(static_cast<int32_t>(file.integer(key, 0, last)));
    };
    Tokenizer::SpecialIds& special = parts.special;
    special.bos = id_of("bos", bos);
    special.eos = id_of("eos", eos);
    special.unknown = id_of("unknown", std::nullopt);
    special.padding = id_of("padding", std::nullopt);
    for (const auto& end : {special.eos, id_of("eot", std::nullopt), id_of("eom", std::nullopt)})
        if (end) special.ends.push_back(*end);
    // Where <|return|> ends an answer, <|end|> ends a part of it (gpt-oss).
    const bool has_parts =
        std::find(tokens.texts.begin(), tokens.texts.end(), "<|return|>") != tokens.texts.end();
    for (size_t id = 0; id < tokens.texts.size(); ++id)
        if (tokens.types[id] == kControl && !(has_parts && tokens.texts[id] == "<|end|>") &&
            std::find(kEndTexts.begin(), kEndTexts.end(), tokens.texts[id]) != kEndTexts.end())
            special.ends.push_back(static_cast<int32_t>(id));
    std::sort(special.ends.begin(), special.ends.end());
    special.ends.erase(std::unique(special.ends.begin(), special.ends.end()), special.ends.end());
    special.add_bos = flag(file, "add_bos_token", add_bos) && special.bos;
    special.add_eos = flag(file, "add_eos_token", false) && special.eos;
    if (special.add_bos) parts.before = {*special.bos};
    if (special.add_eos) parts.after = {*special.eos};
}

// Byte-level BPE. Added tokens are not spelled in the byte alphabet.
void read_gpt2(const GgufFile& file, const GgufTokens& tokens, TokenizerParts& parts) {
    const std::string pre =
        file.has(kKey + "pre") ? std::string(file.text(kKey + "pre")) : std::string("gpt-2");
    const GgufSplit& split = gguf_split(pre, file.name());
    BpeModelParts model;
    for (size_t id = 0; id < tokens.texts.size(); ++id) {
        const std::string text(tokens.texts[id]);
        if (tokens.types[id] == kUnused) continue;
        const bool is_new = model.vocab.emplace(text, static_cast<int32_t>(id)).second;
        require(is_new, file.name(), ": token ", id, " ('", text, "') is there already");
        if (tokens.types[id] == 1) parts.decoding.tokens[id].text = bytes_from_alphabet(text);
    }
    MergeList merges(model.vocab);
    const auto texts = file.texts(kKey + "merges");
    for (size_t i = 0; i < texts.size(); ++i)
        merges.add(texts[i], concat(file.name(), ": merge ", i));
    model.merges = merges.table();
    for (const AddedToken& token : parts.added)
        if (token.special) model.vocab.erase(token.content);
    model.byte_level = true;
    model.ignore_merges = split.ignore_merges;
    parts.model = std::make_shared<BpeModel>(std::move(model));
    if (split.nfc) parts.normalizer.push_back(nfc_step());
    const bool prefix = flag(file, "add_space_prefix", false);
    if (prefix) parts.pre_tokenizer.push_back(prefix_space_step());
    for (const std::string_view pattern : split.patterns)
        parts.pre_tokenizer.push_back(split_step(Pattern::regex(std::string(pattern), file.name()),
                                                 SplitBehavior::isolated, false));
    parts.cuts_words = !prefix && !split.nfc && split.patterns.size() == 1 &&
                       split.patterns[0] == kGpt2Pattern &&
                       std::all_of(parts.added.begin(), parts.added.end(),
                                   [](const AddedToken& token) { return token.special; });
    read_special_ids(file, tokens, split.adds_bos, std::nullopt, std::nullopt, parts);
}

// sentencepiece's BPE: a piece's score is its place in the order of merges.
void read_llama(const GgufFile& file, const GgufTokens& tokens, TokenizerParts& parts) {
    const std::vector<double> scores = file.numbers(kKey + "scores");
    require(scores.size() == tokens.texts.size(), file.name(), ": key '", kKey,
            "scores': expected ", tokens.texts.size(), " scores, one per token, found ",
            scores.size());
    TokenIds vocab;
    std::vector<ScoredPiece> pieces;
    const NormalizeStep to_space = replace_step(Pattern::literal(std::string(kMetaspace)), " ");
    const NormalizeStep to_metaspace = replace_step(Pattern::literal(" "), std::string(kMetaspace));
    int32_t unknown = -1;
    for (size_t i = 0; i < tokens.texts.size(); ++i) {
        const std::string text(tokens.texts[i]);
        const auto id = static_cast<int32_t>(i);
        const int64_t type = tokens.types[i];
        vocab.emplace(text, id);
        TokenText& entry = parts.decoding.tokens[i];
        if (type == kUnknown) unknown = id;
        if (type == 1) {
            require(scores[i] == scores[i], file.name(), ": token ", i, ": its score is NaN");
            pieces.push_back({text, id, static_cast<float>(scores[i]), false});
            if (is_valid_utf8(entry.text)) to_space(entry.text);
        } else if (type == kUserDefined && text.find(' ') != text.npos && is_valid_utf8(text)) {
            // Found where text has its spaces in either spelling, as sentencepiece finds it.
            pieces.push_back({text, id, 0, true});
            to_metaspace(pieces.back().text);
            std::erase_if(parts.added, [id](const AddedToken& token) { return token.id == id; });
        } else if (type == kByte) {
            entry.byte = static_cast<int16_t>(byte_of_token(text));
        }
    }
    const auto byte_ids = byte_token_ids(vocab);
    const bool bytes =
        std::all_of(byte_ids.begin(), byte_ids.end(), [](int32_t id) { return id >= 0; });
    parts.model = std::make_shared<PieceModel>(pieces, PieceModelOptions{unknown, bytes, byte_ids},
                                               file.name());
    const bool prefix = flag(file, "add_space_prefix", true);
    parts.normalizer.push_back(to_metaspace);
    if (prefix) parts.normalizer.push_back(prepend_step(std::string(kMetaspace)));
    parts.decoding.rules.bytes = DecodingRules::Bytes::each;
    parts.decoding.rules.strips = prefix ? 1 : 0;
    read_special_ids(file, tokens, true, 1, 2, parts);
    if (!parts.special.unknown && unknown >= 0) parts.special.unknown = unknown;
}

}  // namespace

Tokenizer Tokenizer::from_gguf(const GgufFile& file) {
    const std::string_view kind = file.text(kKey + "model");
    require(kind == "gpt2" || kind == "llama", file.name(), ": key '", kKey,
            "model': the tokenizer '", kind, "' is not supported: expected gpt2 or llama");
    const GgufTokens tokens = read_tokens(file);
    TokenizerParts parts;
    add_tokens(tokens, parts);
    kind == "gpt2" ? read_gpt2(file, tokens, parts) : read_llama(file, tokens, parts);
    return Tokenizer(std::move(parts));
}

}  // namespace hark
