// Hugging Face's tokenizer files: tokenizer.json, or vocab.json, merges.txt and their companions.

#include "core/error.h"
#include "core/files/files.h"
#include "core/json/json.h"
#include "text/bpe_builder.h"
#include "text/lines.h"

namespace hark {
namespace {

using nlohmann::json;

int32_t id_from(const json& value, const std::string& token, const std::string& where) {
    require(value.is_number_unsigned() && value.get<uint64_t>() < INT32_MAX, where, ": token '",
            token, "': expected an id from 0 on, found ",
            value.is_number() ? value.dump() : value.type_name());
    return value.get<int32_t>();
}

void add_vocabulary(const json& vocab, BpeBuilder& builder, const std::string& where) {
    require(vocab.is_object(), where, ": expected the vocabulary as an object, found ",
            vocab.type_name());
    for (const auto& [token, id] : vocab.items()) builder.token(token, id_from(id, token, where));
}

void require_absent(const json& object, const char* key, const std::string& where) {
    if (!object.contains(key)) return;
    const json& value = object[key];
    require(value.is_null() || value == "" || value == false, where, ": ", key,
            " is not supported: expected none, found ", json_text(value).substr(0, 80));
}

bool flag_in(const json& object, const char* key, bool otherwise, const std::string& where) {
    if (!object.contains(key) || object[key].is_null()) return otherwise;
    require(object[key].is_boolean(), where, ": ", key, ": expected true or false, found ",
            object[key].type_name());
    return object[key].get<bool>();
}

// Only GPT-2's pattern is ours; another tokenizer's text would be cut wrongly without a word.
bool prefix_space_of(const json& root, const std::string& where) {
    require_absent(root, "normalizer", where);
    const json pre = root.value("pre_tokenizer", json());
    const json type = pre.is_object() ? pre.value("type", json()) : json();
    require(type == "ByteLevel" && flag_in(pre, "use_regex", true, where), where,
            ": expected the pre-tokenizer ByteLevel with GPT-2's pattern, found ",
            type.is_string() ? type.get<std::string>() : std::string(pre.type_name()));
    return flag_in(pre, "add_prefix_space", true, where);
}

void add_merges(const json& merges, BpeBuilder& builder, const std::string& where) {
    require(merges.is_array(), where, ": expected model.merges as an array, found ",
            merges.type_name());
    for (size_t i = 0; i < merges.size(); ++i) {
        const json& merge = merges[i];
        const std::string at = concat(where, ": merge ", i);
        if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
            builder.merge(merge[0].get<std::string>(), merge[1].get<std::string>(), at);
            continue;
        }
        require(merge.is_string(), at, ": expected two tokens, found ", merge.type_name());
        builder.merge(merge.get<std::string>(), at);
    }
}

void read_added_tokens(const json& tokens, BpeBuilder& builder, const std::string& where) {
    require(tokens.is_array(), where, ": expected added_tokens as an array, found ",
            tokens.type_name());
    for (const json& token : tokens) {
        require(token.is_object() && token.contains("content") && token["content"].is_string() &&
                    token.contains("id"),
                where, ": an added token needs an id and a content");
        const auto content = token["content"].get<std::string>();
        builder.added(content, id_from(token["id"], content, where),
                      flag_in(token, "special", false, where));
    }
}

void add_merges_text(std::string_view text, BpeBuilder& builder, const std::string& where) {
    for_each_line(text, [&](std::string_view line, size_t number) {
        if (line.empty() || line.starts_with("#version")) return;
        builder.merge(line, concat(where, ": line ", number));
    });
}

// {"bos_token": "<|endoftext|>", "eos_token": {"content": ...}, "additional_special_tokens": [...]}
void read_special_names(const json& value, BpeBuilder& builder) {
    if (value.is_string()) builder.special(value.get<std::string>());
    if (value.is_object() && value.contains("content") && value["content"].is_string())
        builder.special(value["content"].get<std::string>());
    if (value.is_array())
        for (const json& name : value) read_special_names(name, builder);
}

// The files that name special tokens next to a vocab.json.
void read_companions(const std::filesystem::path& directory, BpeBuilder& builder) {
    const auto read = [&](const char* name, auto&& take) {
        const std::filesystem::path path = directory / name;
        if (!std::filesystem::exists(path)) return;
        const json root = parse_json_object(read_file(path, kMaxTokenizerFile), path.string());
        take(root, path.string());
    };
    read("added_tokens.json", [&](const json& root, const std::string& where) {
        for (const auto& [content, id] : root.items())
            builder.added(content, id_from(id, content, where), true);
    });
    read("tokenizer_config.json", [&](const json& root, const std::string& where) {
        const json decoder = root.value("added_tokens_decoder", json::object());
        require(decoder.is_object(), where, ": expected added_tokens_decoder as an object");
        for (const auto& [id, token] : decoder.items()) {
            require(token.is_object(), where, ": expected added_tokens_decoder '", id,
                    "' as an object");
            json entry = token;
            entry["id"] = json::parse(id, nullptr, false);
            read_added_tokens(json::array({entry}), builder, where);
        }
    });
    read("special_tokens_map.json", [&](const json& root, const std::string&) {
        for (const auto& [role, value] : root.items()) read_special_names(value, builder);
    });
}

}  // namespace

Bpe Bpe::parse_tokenizer_json(std::string_view text, const std::string& where) {
    const json root = parse_json_object(text, where);
    require(root.contains("model") && root["model"].is_object(), where,
            ": expected an object named model");
    const json& model = root["model"];
    const json type = model.value("type", json("BPE"));
    require(type == "BPE", where, ": expected a model of type BPE, found ",
            type.is_string() ? type.get<std::string>() : std::string(type.type_name()));
    for (const char* key : {"dropout", "unk_token", "continuing_subword_prefix",
                            "end_of_word_suffix", "byte_fallback"})
        require_absent(model, key, where);
    require(model.contains("vocab") && model.contains("merges"), where,
            ": expected model.vocab and model.merges");
    const bool prefix_space = prefix_space_of(root, where);
    BpeBuilder builder(where);
    add_vocabulary(model["vocab"], builder, where);
    add_merges(model["merges"], builder, where);
    if (root.contains("added_tokens")) read_added_tokens(root["added_tokens"], builder, where);
    return builder.finish(prefix_space, flag_in(model, "ignore_merges", false, where));
}

Bpe Bpe::parse_vocab_and_merges(std::string_view vocab, const std::string& vocab_where,
                                std::string_view merges, const std::string& merges_where) {
    BpeBuilder builder(vocab_where);
    add_vocabulary(parse_json_object(vocab, vocab_where), builder, vocab_where);
    add_merges_text(merges, builder, merges_where);
    return builder.finish(false, false);
}

Bpe Bpe::from_directory(const std::filesystem::path& directory) {
    const std::filesystem::path whole = directory / "tokenizer.json";
    if (std::filesystem::exists(whole))
        return parse_tokenizer_json(read_file(whole, kMaxTokenizerFile), whole.string());
    const std::filesystem::path vocab = directory / "vocab.json", merges = directory / "merges.txt";
    require(std::filesystem::exists(vocab) && std::filesystem::exists(merges), directory.string(),
            ": expected tokenizer.json, or vocab.json and merges.txt; found neither");
    BpeBuilder builder(vocab.string());
    add_vocabulary(parse_json_object(read_file(vocab, kMaxTokenizerFile), vocab.string()), builder,
                   vocab.string());
    add_merges_text(read_file(merges, kMaxTokenizerFile), builder, merges.string());
    read_companions(directory, builder);
    return builder.finish(false, false);
}

}  // namespace hark
