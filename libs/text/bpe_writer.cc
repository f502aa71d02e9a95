#include "text/bpe_writer.h"

#include <map>

#include "core/files/files.h"
#include "core/json/json.h"
#include "text/byte_alphabet.h"
#include "text/tokens/documents.h"

namespace hark {
namespace {

using nlohmann::ordered_json;

ordered_json added_token(const std::string& content, int32_t id, bool special) {
    return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
            {"rstrip", false}, {"normalized", false}, {"special", special}};
}

ordered_json byte_level(bool as_decoder) {
    return {{"type", "ByteLevel"},
            {"add_prefix_space", as_decoder},
            {"trim_offsets", true},
            {"use_regex", true}};
}

// The tokens outside the vocabulary, by id.
std::map<int32_t, std::string> added_of(const Bpe& bpe) {
    std::map<int32_t, std::string> added;
    for (const auto& [content, id] : bpe.specials()) added[id] = content;
    return added;
}

}  // namespace

void write_hugging_face(const Bpe& bpe, const std::string& tokenizer_class,
                        const std::filesystem::path& directory) {
    const std::map<int32_t, std::string> added = added_of(bpe);
    ordered_json vocab = ordered_json::object(), merges = ordered_json::array();
    ordered_json added_tokens = ordered_json::array(), others = ordered_json::object();
    std::string merges_text = "#version: 0.2\n";
    for (int32_t id = 0; id < bpe.vocab_size(); ++id)
        if (bpe.has(id) && !added.contains(id)) vocab[spell_bytes(bpe.bytes_of(id))] = id;
    for (const auto& [left, right] : bpe.merges()) {
        const std::string a = spell_bytes(bpe.bytes_of(left)), b = spell_bytes(bpe.bytes_of(right));
        merges.push_back(ordered_json::array({a, b}));
        merges_text += a + " " + b + "\n";
    }
    for (const auto& [id, content] : added) {
        added_tokens.push_back(added_token(content, id, bpe.is_special(id)));
        if (content != kEndOfText) others[content] = id;
    }
    const ordered_json root = {{"version", "1.0"},
                               {"truncation", nullptr},
                               {"padding", nullptr},
                               {"added_tokens", added_tokens},
                               {"normalizer", nullptr},
                               {"pre_tokenizer", byte_level(false)},
                               {"post_processor", nullptr},
                               {"decoder", byte_level(true)},
                               {"model",
                                {{"type", "BPE"},
                                 {"dropout", nullptr},
                                 {"unk_token", nullptr},
                                 {"continuing_subword_prefix", nullptr},
                                 {"end_of_word_suffix", nullptr},
                                 {"fuse_unk", false},
                                 {"byte_fallback", false},
                                 {"ignore_merges", bpe.ignores_merges()},
                                 {"vocab", vocab},
                                 {"merges", merges}}}};
    const ordered_json config = {{"tokenizer_class", tokenizer_class},
                                 {"add_prefix_space", false},
                                 {"bos_token", kEndOfText},
                                 {"eos_token", kEndOfText},
                                 {"unk_token", kEndOfText}};
    // vocab.json has it among the others, as GPT-2's has.
    if (const auto end = bpe.special(std::string(kEndOfText)))
        vocab[std::string(kEndOfText)] = *end;
    write_file(directory / "vocab.json", vocab.dump());
    write_file(directory / "merges.txt", merges_text);
    if (!others.empty()) write_file(directory / "added_tokens.json", others.dump());
    write_file(directory / "tokenizer_config.json", config.dump(2) + "\n");
    write_file(directory / "tokenizer.json", root.dump(2) + "\n");
}

}  // namespace hark
