#include "whisper/model/tokenizer.h"

#include <algorithm>
#include <set>

#include "core/cli/suggest.h"
#include "core/error.h"
#include "core/files/files.h"
#include "core/json/json.h"
#include "text/bpe_builder.h"
#include "text/regex.h"
#include "text/utf8.h"
#include "whisper/model/languages.h"

namespace hark::whisper {
namespace {

using nlohmann::json;

constexpr int kTimestamps = 1501;  // <|0.00|> to <|30.00|>

// Looks tokens up by content first, then by a key of generation_config.json.
class Finder {
  public:
    Finder(const Bpe& bpe, const std::string& generation_json, int64_t n_vocab, std::string where)
        : bpe_(bpe), n_vocab_(n_vocab), where_(std::move(where)) {
        if (generation_json.empty()) return;
        generation_ = parse_json(generation_json, where_);
        require(generation_.is_object(), where_, ": generation_config.json is not a JSON object");
    }

    int32_t find(const std::vector<std::string>& contents, const std::vector<std::string>& keys) {
        for (const std::string& content : contents)
            if (const auto id = bpe_.special(content)) return checked(*id, content);
        const json* value = &generation_;
        for (const std::string& key : keys) {
            if (!value->is_object() || !value->contains(key)) return -1;
            value = &(*value)[key];
        }
        return keys.empty() || !value->is_number_integer()
                   ? -1
                   : checked(value->get<int64_t>(), keys[0]);
    }
    int32_t need(const std::vector<std::string>& contents, const std::vector<std::string>& keys) {
        const int32_t id = find(contents, keys);
        require(id >= 0, where_, ": expected a token ", contents[0],
                " in the vocabulary or in generation_config.json, found none");
        return id;
    }
    int32_t checked(int64_t id, const std::string& what) const {
        require(id >= 0 && id < n_vocab_, where_, ": the id of ", what,
                ": expected one below vocab_size ", n_vocab_, ", found ", id);
        return static_cast<int32_t>(id);
    }
    const json& generation() const { return generation_; }

  private:
    const Bpe& bpe_;
    json generation_;
    int64_t n_vocab_;
    std::string where_;
};

// lang_to_id if the file has it, else the contents <|xx|> between sot and the tasks.
std::map<std::string, int32_t> find_languages(const Finder& finder, const Bpe& bpe,
                                              const SpecialTokens& special) {
    std::map<std::string, int32_t> languages;
    const json& table = finder.generation().is_object()
                            ? finder.generation().value("lang_to_id", json::object())
                            : json::object();
    const auto code_of = [](const std::string& content) {
        const bool framed =
            content.size() > 4 && content.starts_with("<|") && content.ends_with("|>");
        return framed ? content.substr(2, content.size() - 4) : "";
    };
    if (table.is_object())
        for (const auto& [content, id] : table.items())
            if (const std::string code = code_of(content); !code.empty() && id.is_number_integer())
                languages[code] = finder.checked(id.get<int64_t>(), content);
    if (!languages.empty()) return languages;
    const int32_t end = std::min(special.translate, special.transcribe);
    for (const auto& [content, id] : bpe.specials())
        if (const std::string code = code_of(content);
            id > special.sot && id < end && !code.empty())
            languages[code] = finder.checked(id, content);
    return languages;
}

bool is_multilingual(const json& generation, const Bpe& bpe, int64_t n_vocab) {
    if (generation.is_object()) {
        if (generation.contains("is_multilingual") && generation["is_multilingual"].is_boolean())
            return generation["is_multilingual"].get<bool>();
        if (generation.contains("lang_to_id")) return true;
    }
    return n_vocab != kEnglishVocab && bpe.special("<|transcribe|>").has_value();
}

// DIR/generation_config.json's text, or "".
std::string generation_of(const std::filesystem::path& directory) {
    const std::filesystem::path generation = directory / "generation_config.json";
    std::error_code failed;
    return std::filesystem::exists(generation, failed) ? read_file(generation, size_t{1} << 22)
                                                       : "";
}

}  // namespace

SpecialTokens find_special_tokens(const Bpe& bpe, const std::string& generation_json,
                                  int64_t n_vocab, const std::string& where) {
    Finder finder(bpe, generation_json, n_vocab, where);
    SpecialTokens special;
    special.multilingual = is_multilingual(finder.generation(), bpe, n_vocab);
    special.eot = finder.need({"<|endoftext|>"}, {"eos_token_id"});
    special.sot = finder.need({"<|startoftranscript|>"}, {"decoder_start_token_id"});
    special.no_timestamps = finder.need({"<|notimestamps|>"}, {"no_timestamps_token_id"});
    special.sot_prev = finder.need({"<|startofprev|>"}, {"prev_sot_token_id"});
    special.transcribe = finder.find({"<|transcribe|>"}, {"task_to_id", "transcribe"});
    special.translate = finder.find({"<|translate|>"}, {"task_to_id", "translate"});
    special.sot_lm = finder.find({"<|startoflm|>"}, {});
    special.no_speech = finder.find({"<|nospeech|>", "<|nocaptions|>"}, {});
    special.timestamp_begin = finder.find({"<|0.00|>"}, {});
    // In files that list no timestamps, they follow <|notimestamps|>.
    if (special.timestamp_begin < 0)
        special.timestamp_begin = finder.checked(int64_t{special.no_timestamps} + 1, "<|0.00|>");
    if (special.multilingual) {
        finder.need({"<|transcribe|>"}, {"task_to_id", "transcribe"});
        special.languages = find_languages(finder, bpe, special);
        require(!special.languages.empty(), where, ": expected language tokens, found none");
    }
    require(special.eot < special.timestamp_begin && special.sot < special.timestamp_begin, where,
            ": expected the timestamps after all other tokens, found <|0.00|> at ",
            special.timestamp_begin);
    return special;
}

Tokenizer::Tokenizer(const std::filesystem::path& directory, int64_t n_vocab)
    : Tokenizer(Bpe::from_directory(directory), generation_of(directory), n_vocab,
                directory.string()) {}

Tokenizer::Tokenizer(Bpe bpe, const std::string& generation_json, int64_t n_vocab,
                     const std::string& where)
    : bpe_(std::move(bpe)) {
    // LogitConstraints index logits by token id, so each id must be one of the model's.
    require(bpe_.vocab_size() <= n_vocab, where, ": the tokenizer has ids up to ",
            bpe_.vocab_size() - 1, ", the model's vocab_size is ", n_vocab);
    special_ = find_special_tokens(bpe_, generation_json, n_vocab, where);
}

std::string Tokenizer::decode(std::span<const int32_t> ids) const {
    std::vector<int32_t> text;
    for (int32_t id : ids)
        if (id < special_.timestamp_begin) text.push_back(id);
    return replace_invalid(bpe_.decode(text, true));
}

int32_t Tokenizer::single(const std::string& text) const {
    const std::vector<int32_t> ids = encode(text);
    require(ids.size() == 1, "expected '", text, "' to be one token, found ", ids.size());
    return ids[0];
}

std::vector<int32_t> Tokenizer::sot_sequence(const std::string& language, Task task) const {
    if (!special_.multilingual) return {special_.sot};
    const int32_t task_token = task == Task::transcribe ? special_.transcribe : special_.translate;
    require(task_token >= 0, "this model has no token for the task of translation");
    return {special_.sot, language_token(language), task_token};
}

int32_t Tokenizer::language_token(const std::string& language) const {
    const auto found = special_.languages.find(language);
    if (found != special_.languages.end()) return found->second;
    std::string codes;
    std::vector<std::string> known;
    for (const auto& [code, id] : special_.languages) {
        codes += (codes.empty() ? "" : " ") + code;
        for (const std::string& name : language_names(code)) known.push_back(name);
    }
    const std::string hint = did_you_mean(language, known);
    fail("this model does not know the language '", language, "'",
         hint.empty() ? concat("; it knows ", codes.empty() ? "en" : codes) : hint);
}

std::vector<int32_t> Tokenizer::non_speech_tokens() const {
    static const std::vector<std::string> kSymbols = {
        "\"",  "#",  "(",  ")",   "*",   "+",   "/",   ":",  ";",   "<",  "=",  ">",
        "@",   "[",  "\\", "]",   "^",   "_",   "`",   "{",  "|",   "}",  "~",  "「",
        "」",  "『", "』", "<<",  ">>",  "<<<", ">>>", "--", "---", "-(", "-[", "('",
        "(\"", "((", "))", "(((", ")))", "[[",  "]]",  "{{", "}}",  "♪♪", "♪♪♪"};
    // Two or three tokens each in most vocabularies: the first one is suppressed.
    static const std::vector<std::string> kNotes = {"♩", "♪", "♫", "♬", "♭", "♮", "♯"};
    std::set<int32_t> ids = {encode(" -").at(0), encode(" '").at(0)};
    for (const std::vector<std::string>* list : {&kSymbols, &kNotes})
        for (const std::string& symbol : *list)
            for (const std::string& text : {symbol, " " + symbol}) {
                const std::vector<int32_t> tokens = encode(text);
                if (tokens.size() == 1 || list == &kNotes) ids.insert(tokens.at(0));
            }
    return {ids.begin(), ids.end()};
}

std::vector<int32_t> Tokenizer::matching_tokens(const std::string& pattern) const {
    const Regex regex(pattern);
    std::vector<int32_t> ids;
    for (int32_t id = 0; id < std::min(special_.eot, bpe_.vocab_size()); ++id) {
        const std::string text = bpe_.decode({&id, 1});
        if (replace_invalid(text) == text && regex.matches(text)) ids.push_back(id);
    }
    return ids;
}

Tokenizer official_tokenizer(Bpe ranks, int64_t n_vocab, const std::string& where) {
    std::vector<std::string> languages = language_codes();
    const std::vector<std::string> after_languages = {"translate",   "transcribe", "startoflm",
                                                      "startofprev", "nospeech",   "notimestamps"};
    const int64_t base = ranks.vocab_size();
    const int64_t others = 2 + static_cast<int64_t>(after_languages.size()) + kTimestamps;
    const int64_t count = n_vocab - base - others;
    require(0 < count && count <= static_cast<int64_t>(languages.size()), where,
            ": a vocabulary of ", base, " tokens does not fit a model with n_vocab ", n_vocab,
            ": expected from ", n_vocab - others - static_cast<int64_t>(languages.size()), " to ",
            n_vocab - others - 1, " before the special tokens");
    languages.resize(static_cast<size_t>(count));
    const auto add = [&](const std::string& name) {
        ranks.add_special("<|" + name + "|>", ranks.vocab_size());
    };
    add("endoftext");
    add("startoftranscript");
    for (const std::string& language : languages) add(language);
    for (const std::string& name : after_languages) add(name);
    for (int i = 0; i < kTimestamps; ++i) {
        char time[16];
        std::snprintf(time, sizeof time, "%d.%02d", i / 50, i % 50 * 2);
        add(time);
    }
    return {std::move(ranks), "", n_vocab, where};
}

Tokenizer load_vocabulary(const std::filesystem::path& path, int64_t n_vocab) {
    std::error_code failed;
    if (std::filesystem::is_directory(path, failed)) return {path, n_vocab};
    const std::string text = read_file(path, kMaxTokenizerFile), where = path.string();
    if (text.starts_with('{')) return {Bpe::parse_tokenizer_json(text, where), "", n_vocab, where};
    return official_tokenizer(Bpe::parse_tiktoken(text, where), n_vocab, where);
}

}  // namespace hark::whisper
