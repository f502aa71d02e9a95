// The opposite of gguf_vocabulary.cc. Sources: huggingface/tokenizers, the parts' serialization;
// transformers convert_slow_tokenizer.py, generate_merges.
#include "hub/hugging_face_vocabulary.h"

#include <algorithm>
#include <tuple>

#include "core/error.h"
#include "core/files/files.h"
#include "core/json/json.h"
#include "text/tokenizer/gguf_splits.h"
#include "text/tokenizer/pattern.h"
#include "text/tokenizer/piece_type.h"
#include "text/tokenizer/token_model.h"
#include "text/utf8.h"

namespace hark::models {
namespace {

using nlohmann::json;

const std::string kTokenizerKey = "tokenizer.ggml.";

struct FileTokens {
    std::vector<std::string> texts;
    std::vector<int64_t> types;
    bool prefix = false;  // a space is put before a text
};

FileTokens read_tokens(const GgufFile& file, bool default_prefix) {
    FileTokens tokens;
    for (const std::string_view text : file.texts(kTokenizerKey + "tokens"))
        tokens.texts.emplace_back(text);
    tokens.types.assign(tokens.texts.size(), kNormal);
    if (file.has(kTokenizerKey + "token_type"))
        tokens.types = file.integers(kTokenizerKey + "token_type");
    const std::string prefix = kTokenizerKey + "add_space_prefix";
    tokens.prefix = file.has(prefix) ? file.boolean(prefix) : default_prefix;
    return tokens;
}

// All of them are in the vocabulary, where each has its own id. UNUSED ones are left out.
json vocabulary_of(const FileTokens& tokens, const std::string& where) {
    json vocab = json::object();
    for (size_t id = 0; id < tokens.texts.size(); ++id) {
        if (tokens.types[id] == kUnused) continue;
        require(is_valid_utf8(tokens.texts[id]), where, ": token ", id,
                ": tokenizer.json has no place for one that is not UTF-8");
        vocab[tokens.texts[id]] = id;
    }
    return vocab;
}

// `by_spaces`: a token with spaces is found once the normalizer has marked them, as in the file.
json added_tokens(const FileTokens& tokens, bool by_spaces) {
    json added = json::array();
    for (size_t id = 0; id < tokens.texts.size(); ++id) {
        const int64_t type = tokens.types[id];
        const std::string& text = tokens.texts[id];
        const bool special = type == kControl || type == kUnknown;
        if ((!special && type != kUserDefined) || text.empty()) continue;
        const bool has_spaces = type == kUserDefined && text.find(' ') != text.npos;
        added.push_back({{"id", id},
                         {"content", text},
                         {"single_word", false},
                         {"lstrip", false},
                         {"rstrip", false},
                         {"normalized", by_spaces && has_spaces},
                         {"special", special}});
    }
    return added;
}

json byte_level(bool use_regex, bool prefix) {
    return {{"type", "ByteLevel"},
            {"add_prefix_space", prefix},
            {"trim_offsets", true},
            {"use_regex", use_regex}};
}

json bpe_model(json vocab, json merges) {
    return {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", nullptr},
            {"end_of_word_suffix", nullptr},
            {"fuse_unk", false},
            {"byte_fallback", false},
            {"ignore_merges", false},
            {"vocab", std::move(vocab)},
            {"merges", std::move(merges)}};
}

// Byte-level BPE: its split by name.
void add_byte_level(json& root, const GgufFile& file) {
    const std::string pre = file.has(kTokenizerKey + "pre")
                                ? std::string(file.text(kTokenizerKey + "pre"))
                                : std::string("gpt-2");
    const GgufSplit& split = gguf_split(pre, file.name());
    const FileTokens tokens = read_tokens(file, false);
    const bool ends_in_gpt2 = split.patterns.back() == kGpt2Pattern;
    require(!tokens.prefix || (ends_in_gpt2 && split.patterns.size() == 1), file.name(), ": key '",
            kTokenizerKey, "add_space_prefix': tokenizer.json has no place for it with the split ",
            pre);
    json steps = json::array();
    for (const std::string_view pattern : split.patterns) {
        if (pattern == kGpt2Pattern) continue;
        if (pattern == "\\p{N}")
            steps.push_back({{"type", "Digits"}, {"individual_digits", true}});
        else
            steps.push_back({{"type", "Split"},
                             {"pattern", {{"Regex", pattern}}},
                             {"behavior", "Isolated"},
                             {"invert", false}});
    }
    steps.push_back(byte_level(ends_in_gpt2, tokens.prefix));
    root["normalizer"] = split.nfc ? json{{"type", "NFC"}} : json();
    root["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", steps}};
    root["decoder"] = byte_level(true, true);
    json merges = json::array();
    for (const std::string_view merge : file.texts(kTokenizerKey + "merges")) {
        const size_t space = merge.find(' ', 1);
        require(space != merge.npos, file.name(), ": merge ", merges.size(),
                ": expected two tokens, found '", merge, "'");
        merges.push_back({merge.substr(0, space), merge.substr(space + 1)});
    }
    root["model"] = bpe_model(vocabulary_of(tokens, file.name()), std::move(merges));
    root["model"]["ignore_merges"] = split.ignore_merges;
    root["added_tokens"] = added_tokens(tokens, false);
}

// The two parts of each way to make a piece of two others, best first: by score, then as
// transformers orders equal ones, the longer left part first.
json merges_by_score(const FileTokens& tokens, const std::vector<double>& scores) {
    TokenIds pieces;
    for (size_t id = 0; id < tokens.texts.size(); ++id)
        if (tokens.types[id] == kNormal) pieces.emplace(tokens.texts[id], static_cast<int32_t>(id));
    struct Merge {
        double score = 0;
        size_t left_length = 0, right_length = 0;  // in code points
        std::string left, right;
        auto key() const { return std::tie(score, left_length, right_length); }
    };
    std::vector<Merge> all;
    for (size_t id = 0; id < tokens.texts.size(); ++id) {
        if (tokens.types[id] != kNormal) continue;
        const std::string_view text = tokens.texts[id];
        const size_t length = count_code_points(text);
        size_t at = 0;
        for (size_t left = 1; left < length; ++left) {
            next_code_point(text, at);
            const std::string_view first = text.substr(0, at), second = text.substr(at);
            if (pieces.contains(first) && pieces.contains(second))
                all.push_back(
                    {scores[id], left, length - left, std::string(first), std::string(second)});
        }
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const Merge& a, const Merge& b) { return a.key() > b.key(); });
    json merges = json::array();
    for (Merge& merge : all) merges.push_back({std::move(merge.left), std::move(merge.right)});
    return merges;
}

json replace_step(const char* type, std::string_view from, std::string_view to) {
    return {{"type", type}, {"pattern", {{"String", from}}}, {"content", to}};
}

// sentencepiece's BPE, whose scores are the order of merges.
void add_pieces(json& root, const GgufFile& file) {
    FileTokens tokens = read_tokens(file, true);
    const bool by_spaces = !tokens.prefix;
    for (size_t id = 0; id < tokens.texts.size(); ++id)
        require(by_spaces || tokens.types[id] != kUserDefined ||
                    tokens.texts[id].find(' ') == std::string::npos,
                file.name(), ": the token '", tokens.texts[id],
                "' with a space cannot be written for a tokenizer that prepends one");
    json normalizers = json::array();
    if (tokens.prefix) normalizers.push_back({{"type", "Prepend"}, {"prepend", kMetaspace}});
    normalizers.push_back(replace_step("Replace", " ", kMetaspace));
    root["normalizer"] = {{"type", "Sequence"}, {"normalizers", normalizers}};
    json decoders = json::array(
        {replace_step("Replace", kMetaspace, " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}});
    if (tokens.prefix)
        decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
    root["decoder"] = {{"type", "Sequence"}, {"decoders", decoders}};
    TokenIds ids;
    json unknown;
    for (size_t id = 0; id < tokens.texts.size(); ++id) {
        ids.emplace(tokens.texts[id], static_cast<int32_t>(id));
        if (tokens.types[id] == kUnknown) unknown = tokens.texts[id];
    }
    json vocab = vocabulary_of(tokens, file.name());
    root["model"] = bpe_model(std::move(vocab),
                              merges_by_score(tokens, file.numbers(kTokenizerKey + "scores")));
    root["model"]["unk_token"] = unknown;
    root["model"]["fuse_unk"] = true;
    const auto bytes = byte_token_ids(ids);
    root["model"]["byte_fallback"] =
        std::all_of(bytes.begin(), bytes.end(), [](int32_t id) { return id >= 0; });
    root["added_tokens"] = added_tokens(tokens, by_spaces);
}

// What is put around a text.
json post_processor(const hark::Tokenizer& tokens) {
    const hark::Tokenizer::SpecialIds& ids = tokens.special_ids();
    if (!ids.add_bos && !ids.add_eos) return nullptr;
    json specials = json::object();
    const auto special = [&](std::optional<int32_t> id) {
        const std::string& token = tokens.token(*id);
        specials[token] = {{"id", token}, {"ids", {*id}}, {"tokens", {token}}};
        return json{{"SpecialToken", {{"id", token}, {"type_id", 0}}}};
    };
    const auto around = [&](std::initializer_list<const char*> texts) {
        json list = json::array();
        int type = 0;
        for (const char* text : texts) {
            if (ids.add_bos) list.push_back(special(ids.bos));
            list.push_back({{"Sequence", {{"id", text}, {"type_id", type++}}}});
            if (ids.add_eos) list.push_back(special(ids.eos));
        }
        return list;
    };
    json single = around({"A"}), pair = around({"A", "B"});
    return {{"type", "TemplateProcessing"},
            {"single", std::move(single)},
            {"pair", std::move(pair)},
            {"special_tokens", std::move(specials)}};
}

json config_of(const GgufFile& file, const hark::Tokenizer& tokens, int64_t n_positions) {
    // The class that takes tokenizer.json as it is.
    json config = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                   {"model_max_length", n_positions},
                   {"clean_up_tokenization_spaces", false}};
    const hark::Tokenizer::SpecialIds& ids = tokens.special_ids();
    for (const auto& [name, id] : {std::pair{"bos_token", ids.bos},
                                   {"eos_token", ids.eos},
                                   {"unk_token", ids.unknown},
                                   {"pad_token", ids.padding}})
        if (id) config[name] = tokens.token(*id);
    const std::string chat = "tokenizer.chat_template";
    if (file.has(chat)) config["chat_template"] = file.text(chat);
    return config;
}

}  // namespace

void write_vocabulary(const GgufFile& file, const hark::Tokenizer& tokens, int64_t n_positions,
                      const std::filesystem::path& directory) {
    json root = {{"version", "1.0"},
                 {"truncation", nullptr},
                 {"padding", nullptr},
                 {"pre_tokenizer", nullptr}};
    file.text(kTokenizerKey + "model") == "llama" ? add_pieces(root, file)
                                                  : add_byte_level(root, file);
    root["post_processor"] = post_processor(tokens);
    write_file(directory / "tokenizer.json", json_text(root, 1) + "\n");
    write_file(directory / "tokenizer_config.json",
               json_text(config_of(file, tokens, n_positions), 2) + "\n");
}

}  // namespace hark::models
