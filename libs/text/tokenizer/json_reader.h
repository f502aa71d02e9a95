// The values of tokenizer.json and its companions, with errors that name the file and the key.
#pragma once

#include <string>
#include <vector>

#include "core/json/json.h"
#include "text/tokenizer/parts.h"

namespace hark {

class JsonReader {
  public:
    explicit JsonReader(std::string where) : where_(std::move(where)) {}
    const std::string& where() const { return where_; }

    // Values of an object's keys; they throw Error for a value of another kind.
    bool flag(const nlohmann::json& object, const char* key, bool otherwise) const;
    int64_t integer(const nlohmann::json& object, const char* key, int64_t otherwise, int64_t min,
                    int64_t max) const;
    std::string text(const nlohmann::json& object, const char* key) const;
    // The same of a key that may be absent or null.
    std::string text_or(const nlohmann::json& object, const char* key,
                        const std::string& otherwise) const;
    // The list under a key; an empty one if it is absent or null.
    const nlohmann::json& list(const nlohmann::json& object, const char* key) const;
    // Throws Error unless the key is absent, null, false, 0 or "".
    void require_absent(const nlohmann::json& object, const char* key) const;
    // {"type": ...}: the kind of a normalizer, pre-tokenizer, decoder or post-processor.
    std::string kind(const nlohmann::json& object, const std::string& part) const;
    [[noreturn]] void refuse(const std::string& part, const std::string& kind) const;
    // {"String": ...} or {"Regex": ...}.
    Pattern pattern(const nlohmann::json& object) const;

  private:
    std::string where_;
};

// Calls take(part) for a part of a pipeline, or for each of those that a Sequence holds in `key`.
template <class Take>
void for_each_part(const JsonReader& reader, const nlohmann::json& part, const std::string& name,
                   const char* key, const Take& take) {
    if (part.is_null()) return;
    const std::string kind = reader.kind(part, name);
    if (kind != "Sequence") return take(part, kind);
    for (const nlohmann::json& inner : reader.list(part, key))
        for_each_part(reader, inner, name, key, take);
}

// A tokenizer.json's parts other than its model; each may be null. They throw Error naming what is
// not supported.
Normalizer read_normalizer(const JsonReader& reader, const nlohmann::json& normalizer);
struct PreTokenizerParts {
    PreTokenSteps steps;
    bool byte_level = false;  // the model's tokens are spelled in the byte alphabet
    bool gpt2_only = false;   // the only step is GPT-2's split
};
PreTokenizerParts read_pre_tokenizer(const JsonReader& reader, const nlohmann::json& pre_tokenizer);
// Fills parts.decoding from parts.spellings and parts.added.
void read_decoder(const JsonReader& reader, const nlohmann::json& decoder, TokenizerParts& parts);
// Fills parts.before and parts.after.
void read_post_processor(const JsonReader& reader, const nlohmann::json& post_processor,
                         TokenizerParts& parts);

}  // namespace hark
