#include "text/tokenizer/parts.h"

#include <algorithm>
#include <array>

#include "core/error.h"
#include "core/json/json.h"
#include "text/tokenizer/json_reader.h"

namespace hark {

using nlohmann::json;

namespace {

// "bos_token": a text, an object with a content, or null.
std::optional<int32_t> named_token(const json& config, const char* key, TokenizerParts& parts) {
    const json value = config.value(key, json());
    const json content = value.is_object() ? value.value("content", json()) : value;
    return content.is_string() ? find_token(parts, content.get<std::string>()) : std::nullopt;
}

// transformers' classes that build the post-processor from add_bos_token and add_eos_token.
bool heeds_add_bos(const std::string& tokenizer_class) {
    static constexpr std::array<std::string_view, 3> kClasses = {"LlamaTokenizer", "GemmaTokenizer",
                                                                 "CodeLlamaTokenizer"};
    return std::any_of(kClasses.begin(), kClasses.end(), [&](std::string_view name) {
        return tokenizer_class == name || tokenizer_class == std::string(name) + "Fast";
    });
}

}  // namespace

void check_largest_id(int64_t largest, size_t tokens, const std::string& where) {
    require(largest < static_cast<int64_t>(2 * tokens + 1024), where, ": the id ", largest,
            " is out of range for ", tokens, " tokens");
}

void place_tokens(const TokenIds& vocab, const std::string& where, TokenizerParts& parts) {
    int64_t largest = -1;
    for (const auto& [token, id] : vocab) largest = std::max<int64_t>(largest, id);
    for (const AddedToken& token : parts.added) largest = std::max<int64_t>(largest, token.id);
    check_largest_id(largest, vocab.size() + parts.added.size(), where);
    parts.spellings.resize(static_cast<size_t>(largest + 1));
    parts.decoding.tokens.resize(parts.spellings.size());
    for (const auto& [token, id] : vocab) {
        TokenText& entry = parts.decoding.tokens[static_cast<size_t>(id)];
        require(!entry.used, where, ": two tokens have the id ", id);
        entry.used = true;
        parts.spellings[static_cast<size_t>(id)] = token;
    }
    for (const AddedToken& token : parts.added) {
        const auto known = vocab.find(token.content);
        TokenText& entry = parts.decoding.tokens[static_cast<size_t>(token.id)];
        const std::string& spelling = parts.spellings[static_cast<size_t>(token.id)];
        const bool fits = known != vocab.end() ? known->second == token.id
                                               : !entry.used || spelling == token.content;
        require(fits, where, ": the added token '", token.content, "' has the id ", token.id,
                ", which the vocabulary gives otherwise");
        entry.used = true;
        entry.special = entry.special || token.special;
        parts.spellings[static_cast<size_t>(token.id)] = token.content;
    }
}

std::optional<int32_t> find_token(const TokenizerParts& parts, std::string_view token) {
    for (size_t id = 0; id < parts.spellings.size(); ++id)
        if (parts.decoding.tokens[id].used && parts.spellings[id] == token)
            return static_cast<int32_t>(id);
    return std::nullopt;
}

void apply_tokenizer_config(std::string_view text, const std::string& where,
                            TokenizerParts& parts) {
    const JsonReader reader(where);
    const json config = parse_json_object(text, where);
    Tokenizer::SpecialIds& special = parts.special;
    special.bos = named_token(config, "bos_token", parts);
    special.eos = named_token(config, "eos_token", parts);
    special.unknown = named_token(config, "unk_token", parts);
    special.padding = named_token(config, "pad_token", parts);
    if (special.eos) special.ends = {*special.eos};
    if (heeds_add_bos(reader.text_or(config, "tokenizer_class", ""))) {
        parts.before.clear();
        parts.after.clear();
        if (special.bos && reader.flag(config, "add_bos_token", true))
            parts.before = {*special.bos};
        if (special.eos && reader.flag(config, "add_eos_token", false))
            parts.after = {*special.eos};
    }
    special.add_bos = special.bos && !parts.before.empty() && parts.before[0] == *special.bos;
    special.add_eos = special.eos && !parts.after.empty() && parts.after.back() == *special.eos;
}

}  // namespace hark
