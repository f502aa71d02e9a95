#include "hub/gguf_vocabulary.h"

#include <map>

#include "core/error.h"
#include "core/files/files.h"
#include "core/json/json.h"
#include "text/byte_alphabet.h"
#include "text/tokenizer/gguf_splits.h"
#include "text/tokenizer/pattern.h"
#include "text/tokenizer/piece_type.h"
#include "text/tokenizer/token_model.h"

namespace hark::models {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const std::string kKey = "tokenizer.ggml.";

// The steps of a normalizer or pre-tokenizer: those of a Sequence, or it alone.
std::vector<json> steps_of(const json& root, const char* name, const char* list) {
    if (!root.contains(name) || root[name].is_null()) return {};
    const json& step = root[name];
    if (step.value("type", "") != "Sequence") return {step};
    return step.value(list, std::vector<json>());
}

struct Token {
    std::string text;
    int32_t type = kUnused;
};

std::vector<Token> tokens_of(const json& root, int64_t n_vocab, const std::string& where) {
    std::vector<Token> tokens(static_cast<size_t>(n_vocab));
    for (int64_t id = 0; id < n_vocab; ++id)
        tokens[static_cast<size_t>(id)].text = concat("[PAD", id, "]");
    const auto put = [&](int64_t id, const std::string& text, int32_t type) {
        require(id >= 0 && id < n_vocab, where, ": token '", text, "': expected an id below ",
                n_vocab, ", the rows of the model's table, found ", id);
        tokens[static_cast<size_t>(id)] = {text, type};
    };
    const json& model = root.at("model");
    for (const auto& [text, id] : model.at("vocab").items()) put(id, text, kNormal);
    for (const json& token : root.value("added_tokens", json::array()))
        put(token.at("id"), token.at("content"),
            token.value("special", false) ? kControl : kUserDefined);
    if (model.contains("unk_token") && model["unk_token"].is_string())
        for (Token& token : tokens)
            if (token.text == model["unk_token"]) token.type = kUnknown;
    return tokens;
}

// "a b", from either form that tokenizer.json has.
std::vector<std::string> merges_of(const json& root) {
    std::vector<std::string> merges;
    for (const json& merge : root.at("model").at("merges"))
        merges.push_back(merge.is_string() ? merge.get<std::string>()
                                           : merge.at(0).get<std::string>() + " " +
                                                 merge.at(1).get<std::string>());
    return merges;
}

// Byte-level BPE: the name of its split.
void add_byte_level(GgufOutput& out, const json& root, const std::string& where) {
    std::vector<std::string> patterns;
    for (const json& step : steps_of(root, "pre_tokenizer", "pretokenizers")) {
        const std::string type = step.value("type", "");
        if (type == "Split" && step.at("pattern").contains("Regex") &&
            step.value("behavior", "") == "Isolated" && !step.value("invert", false))
            patterns.push_back(step["pattern"]["Regex"]);
        else if (type == "Digits" && step.value("individual_digits", false))
            patterns.push_back("\\p{N}");
        else if (type == "ByteLevel" && !step.value("add_prefix_space", false)) {
            if (step.value("use_regex", true)) patterns.push_back(std::string(kGpt2Pattern));
        } else
            fail(where, ": the pre-tokenizer ", type, " has no place in a GGUF file");
    }
    bool nfc = false;
    for (const json& step : steps_of(root, "normalizer", "normalizers")) {
        require(step.value("type", "") == "NFC", where, ": the normalizer ", step.value("type", ""),
                " has no place in a GGUF file");
        nfc = true;
    }
    const char* pre = gguf_split_name(patterns, root["model"].value("ignore_merges", false), nfc);
    require(pre != nullptr, where, ": GGUF has no name for the way in which this text is split");
    out.text(kKey + "model", "gpt2");
    out.text(kKey + "pre", pre);
    out.texts(kKey + "merges", merges_of(root));
}

// sentencepiece's BPE: what an earlier merge makes has a higher score.
void add_pieces(GgufOutput& out, const json& root, std::vector<Token>& tokens) {
    std::map<std::string, float> scores;
    const std::vector<std::string> merges = merges_of(root);
    for (size_t i = 0; i < merges.size(); ++i) {
        std::string piece = merges[i];
        piece.erase(piece.find(' '), 1);
        scores.emplace(piece, -static_cast<float>(i));
    }
    std::vector<float> all;
    for (Token& token : tokens) {
        if (token.type == kNormal && token.text.size() == 6 && token.text.starts_with("<0x"))
            token.type = kByte;
        // llama.cpp finds these in the text itself, before spaces are marked.
        for (size_t at;
             token.type == kUserDefined && (at = token.text.find(kMetaspace)) != token.text.npos;)
            token.text.replace(at, kMetaspace.size(), " ");
        const auto found = scores.find(token.text);
        const bool merged = token.type == kNormal && found != scores.end();
        const float last = -static_cast<float>(merges.size());
        all.push_back(merged ? found->second : token.type == kNormal ? last : 0);
    }
    bool prefix = false;
    for (const json& step : steps_of(root, "normalizer", "normalizers"))
        prefix |= step.value("type", "") == "Prepend";
    for (const json& step : steps_of(root, "pre_tokenizer", "pretokenizers"))
        prefix |= step.value("type", "") == "Metaspace" &&
                  step.value("prepend_scheme", "always") != "never";
    out.text(kKey + "model", "llama");
    out.text(kKey + "pre", "default");
    out.reals(kKey + "scores", all);
    out.flag(kKey + "add_space_prefix", prefix);
}

void add_special_ids(GgufOutput& out, const hark::Tokenizer& tokenizer,
                     const std::vector<int32_t>& eos) {
    const hark::Tokenizer::SpecialIds& ids = tokenizer.special_ids();
    const auto add = [&](const char* name, std::optional<int32_t> id) {
        if (id) out.count(kKey + name + "_token_id", *id);
    };
    add("bos", ids.bos);
    add("eos", ids.eos || eos.empty() ? ids.eos : eos.front());
    add("unknown", ids.unknown);
    add("padding", ids.padding);
    out.flag(kKey + "add_bos_token", ids.add_bos);
    out.flag(kKey + "add_eos_token", ids.add_eos);
}

// chat_template.jinja, else the field of tokenizer_config.json or chat_template.json: a text, or
// the list's "default".
std::string template_of(const fs::path& folder) {
    if (fs::exists(folder / "chat_template.jinja"))
        return read_file(folder / "chat_template.jinja");
    for (const char* name : {"tokenizer_config.json", "chat_template.json"}) {
        const fs::path file = folder / name;
        if (!fs::exists(file)) continue;
        const json value =
            parse_json(read_file(file), file.string()).value("chat_template", json());
        if (value.is_string()) return value;
        if (value.is_array())
            for (const json& entry : value)
                if (entry.value("name", "") == "default") return entry.value("template", "");
    }
    return "";
}

}  // namespace

void add_vocabulary(GgufOutput& out, const fs::path& folder, int64_t n_vocab,
                    const std::vector<int32_t>& eos) {
    const fs::path file = folder / "tokenizer.json";
    const std::string where = file.string();
    require(fs::exists(file), where, ": expected the tokenizer of the model, found none");
    const json root = parse_json(read_file(file), where);
    try {
        require(root.at("model").value("type", "") == "BPE", where,
                ": expected a tokenizer of the type BPE, found ", root["model"].value("type", ""));
        std::vector<Token> tokens = tokens_of(root, n_vocab, where);
        if (root["model"].value("byte_fallback", false))
            add_pieces(out, root, tokens);
        else
            add_byte_level(out, root, where);
        std::vector<std::string> texts;
        std::vector<int32_t> types;
        for (Token& token : tokens) {
            texts.push_back(std::move(token.text));
            types.push_back(token.type);
        }
        out.texts(kKey + "tokens", texts);
        out.integers(kKey + "token_type", types);
    } catch (const json::exception& why) {
        fail(where, ": ", why.what());
    }
    add_special_ids(out, *hark::Tokenizer::load(folder), eos);
    const std::string chat = template_of(folder);
    if (!chat.empty()) out.text("tokenizer.chat_template", chat);
}

}  // namespace hark::models
