// Hugging Face's tokenizer.json: a pipeline of parts, each named by its type.
// Source: huggingface/tokenizers, tokenizers/src/tokenizer/mod.rs.
#include <algorithm>

#include "core/error.h"
#include "core/json/json.h"
#include "text/tokenizer/bpe_model.h"
#include "text/tokenizer/json_reader.h"
#include "text/tokenizer/unigram_model.h"

namespace hark {

using nlohmann::json;

namespace {

constexpr int64_t kMaxId = INT32_MAX - 1;

// The vocabulary, which `model` then has no more: it is the largest part of the file.
TokenIds vocabulary_of(const JsonReader& reader, json& model) {
    TokenIds vocab;
    const json entries = model.contains("vocab") ? std::move(model["vocab"]) : json();
    require(entries.is_object(), reader.where(), ": expected model.vocab as an object, found ",
            entries.type_name());
    for (const auto& [token, id] : entries.items()) {
        const bool whole = id.is_number_unsigned() && id.get<uint64_t>() <= kMaxId;
        require(whole, reader.where(), ": token '", token, "': expected an id from 0 on, found ",
                id.is_number() ? id.dump() : id.type_name());
        vocab.emplace(token, id.get<int32_t>());
    }
    return vocab;
}

// The merges, which `model` then has no more.
PairTable merges_of(const JsonReader& reader, json& model, const TokenIds& vocab) {
    MergeList merges(vocab);
    size_t number = 0;
    for (const json& merge : reader.list(model, "merges")) {
        const std::string at = concat(reader.where(), ": merge ", number++);
        const bool pair =
            merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string();
        require(pair || merge.is_string(), at, ": expected two tokens, found ", merge.type_name());
        if (pair)
            merges.add(merge[0].get<std::string>(), merge[1].get<std::string>(), at);
        else
            merges.add(merge.get<std::string>(), at);
    }
    model.erase("merges");
    return merges.table();
}

std::shared_ptr<const TokenModel> read_bpe(const JsonReader& reader, json& model, bool byte_level,
                                           TokenIds& vocab) {
    for (const char* key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"})
        reader.require_absent(model, key);
    vocab = vocabulary_of(reader, model);
    BpeModelParts parts;
    parts.merges = merges_of(reader, model, vocab);
    parts.byte_level = byte_level;
    parts.ignore_merges = reader.flag(model, "ignore_merges", false);
    parts.byte_fallback = !byte_level && reader.flag(model, "byte_fallback", false);
    parts.fuse_unknown = reader.flag(model, "fuse_unk", false);
    const std::string unknown = reader.text_or(model, "unk_token", "");
    if (const auto found = vocab.find(unknown); !unknown.empty() && found != vocab.end())
        parts.unknown = found->second;
    parts.vocab = vocab;
    return std::make_shared<BpeModel>(std::move(parts));
}

std::shared_ptr<const TokenModel> read_unigram(const JsonReader& reader, const json& model,
                                               TokenIds& vocab) {
    std::vector<UnigramPiece> pieces;
    for (const json& entry : reader.list(model, "vocab")) {
        require(
            entry.is_array() && entry.size() == 2 && entry[0].is_string() && entry[1].is_number(),
            reader.where(), ": piece ", pieces.size(), ": expected a text and a score");
        const auto id = static_cast<int32_t>(pieces.size());
        pieces.push_back({entry[0].get<std::string>(), id, entry[1].get<double>(), false});
        vocab.emplace(pieces.back().text, id);
    }
    UnigramOptions options;
    options.unknown = static_cast<int32_t>(
        reader.integer(model, "unk_id", -1, 0, static_cast<int64_t>(pieces.size()) - 1));
    options.byte_fallback = reader.flag(model, "byte_fallback", false);
    options.byte_ids = byte_token_ids(vocab);
    options.looks_up_unknown = true;
    return std::make_shared<UnigramModel>(std::move(pieces), options);
}

std::vector<AddedToken> read_added(const JsonReader& reader, const json& root) {
    std::vector<AddedToken> added;
    for (const json& token : reader.list(root, "added_tokens")) {
        AddedToken made;
        made.content = reader.text(token, "content");
        made.id = static_cast<int32_t>(reader.integer(token, "id", -1, 0, kMaxId));
        require(made.id >= 0, reader.where(), ": the added token '", made.content, "' has no id");
        made.special = reader.flag(token, "special", false);
        made.left_strip = reader.flag(token, "lstrip", false);
        made.right_strip = reader.flag(token, "rstrip", false);
        made.single_word = reader.flag(token, "single_word", false);
        made.normalized = reader.flag(token, "normalized", !made.special);
        added.push_back(std::move(made));
    }
    return added;
}

}  // namespace

Tokenizer Tokenizer::parse_json(std::string_view text, std::string_view config,
                                const std::string& where) {
    const JsonReader reader(where);
    json root = parse_json_object(text, where);
    require(root.contains("model") && root["model"].is_object(), where,
            ": expected an object named model");
    const auto part = [&](const char* key) { return root.contains(key) ? root[key] : json(); };
    const PreTokenizerParts pre = read_pre_tokenizer(reader, part("pre_tokenizer"));
    TokenizerParts parts;
    TokenIds vocab;
    const std::string type = reader.text_or(root["model"], "type", "BPE");
    if (type == "BPE")
        parts.model = read_bpe(reader, root["model"], pre.byte_level, vocab);
    else if (type == "Unigram")
        parts.model = read_unigram(reader, root["model"], vocab);
    else
        reader.refuse("model", type);
    require(type == "BPE" || !pre.byte_level, where,
            ": the pre-tokenizer ByteLevel with a unigram model is not supported");
    parts.normalizer = read_normalizer(reader, part("normalizer"));
    parts.pre_tokenizer = pre.steps;
    parts.added = read_added(reader, root);
    place_tokens(vocab, where, parts);
    read_decoder(reader, part("decoder"), parts);
    read_post_processor(reader, part("post_processor"), parts);
    parts.cuts_words = pre.gpt2_only && parts.normalizer.empty() &&
                       std::all_of(parts.added.begin(), parts.added.end(),
                                   [](const AddedToken& token) { return token.special; });
    if (!config.empty()) apply_tokenizer_config(config, where, parts);
    return Tokenizer(std::move(parts));
}

}  // namespace hark
