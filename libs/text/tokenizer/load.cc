// A tokenizer by the kind of file at a path.
#include "core/error.h"
#include "core/files/files.h"
#include "formats/gguf.h"
#include "text/bpe_builder.h"
#include "text/byte_alphabet.h"
#include "text/tokenizer/bpe_model.h"
#include "text/tokenizer/parts.h"

namespace hark {
namespace {

std::unique_ptr<Tokenizer> owned(Tokenizer tokenizer) {
    return std::make_unique<Tokenizer>(std::move(tokenizer));
}

std::unique_ptr<Tokenizer> load_file(const std::filesystem::path& file) {
    const std::string text = read_vocabulary(file), where = file.string();
    if (text == kGgufMagic) return owned(Tokenizer::from_gguf(GgufFile(file)));
    if (text.starts_with('{')) return owned(Tokenizer::parse_json(text, "", where));
    if (const auto bpe = parse_vocabulary(text, file))
        return owned(Tokenizer::from_bpe(*bpe, where));
    return owned(Tokenizer::parse_sentencepiece(text, where));
}

std::unique_ptr<Tokenizer> load_directory(const std::filesystem::path& directory) {
    const auto path = directory / "tokenizer.json", config = directory / "tokenizer_config.json";
    if (std::filesystem::exists(path))
        return owned(Tokenizer::parse_json(
            read_file(path, kMaxTokenizerFile),
            std::filesystem::exists(config) ? read_file(config, kMaxTokenizerFile) : std::string(),
            path.string()));
    for (const char* name : {"tokenizer.model", "spiece.model"})
        if (std::filesystem::exists(directory / name)) return load_file(directory / name);
    return owned(Tokenizer::from_bpe(Bpe::from_directory(directory), directory.string()));
}

}  // namespace

std::unique_ptr<Tokenizer> Tokenizer::load(const std::filesystem::path& path) {
    return std::filesystem::is_directory(path) ? load_directory(path) : load_file(path);
}

Tokenizer Tokenizer::from_bpe(const Bpe& bpe, const std::string&) {
    TokenizerParts parts;
    BpeModelParts model;
    for (int32_t id = 0; id < bpe.vocab_size(); ++id) {
        TokenText& entry = parts.decoding.tokens.emplace_back();
        entry.used = bpe.has(id);
        entry.special = bpe.is_special(id);
        if (entry.used) entry.text = bpe.bytes_of(id);
        parts.spellings.push_back(entry.special ? entry.text : spell_bytes(entry.text));
        if (entry.used && !entry.special) model.vocab.emplace(parts.spellings.back(), id);
    }
    for (const auto& [content, id] : bpe.specials())
        parts.added.push_back({.content = content, .id = id, .special = true});
    model.merges = bpe.merge_table();
    model.byte_level = true;
    model.ignore_merges = bpe.ignores_merges();
    parts.model = std::make_shared<BpeModel>(std::move(model));
    if (bpe.prefix_space()) parts.pre_tokenizer.push_back(prefix_space_step());
    parts.pre_tokenizer.push_back(split_step(Pattern::gpt2(), SplitBehavior::isolated, false));
    parts.cuts_words = !bpe.prefix_space();
    parts.special.eos = bpe.special("<|endoftext|>");
    if (parts.special.eos) parts.special.ends = {*parts.special.eos};
    return Tokenizer(std::move(parts));
}

}  // namespace hark
