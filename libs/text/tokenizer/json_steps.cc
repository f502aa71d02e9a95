// tokenizer.json's normalizer, pre-tokenizer and post-processor.
#include <map>

#include "core/error.h"
#include "text/tokenizer/json_reader.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace hark {

using nlohmann::json;

namespace {

SplitBehavior behavior_of(const JsonReader& reader, const json& step, const char* otherwise) {
    static const std::map<std::string, SplitBehavior> kBehaviors = {
        {"Isolated", SplitBehavior::isolated},
        {"Removed", SplitBehavior::removed},
        {"MergedWithPrevious", SplitBehavior::merged_with_previous},
        {"MergedWithNext", SplitBehavior::merged_with_next},
        {"Contiguous", SplitBehavior::contiguous}};
    const std::string name = reader.text_or(step, "behavior", otherwise);
    const auto found = kBehaviors.find(name);
    require(found != kBehaviors.end(), reader.where(), ": the split's behavior '", name,
            "' is not supported");
    return found->second;
}

// Older files have add_prefix_space in the scheme's place.
std::shared_ptr<const PreTokenStep> metaspace(const JsonReader& reader, const json& step) {
    const bool prefix = reader.flag(step, "add_prefix_space", true);
    const std::string scheme = reader.text_or(step, "prepend_scheme", prefix ? "always" : "never");
    const std::string replacement = reader.text_or(step, "replacement", std::string(kMetaspace));
    require(count_code_points(replacement) == 1, reader.where(),
            ": replacement: expected one character, found '", replacement, "'");
    require(scheme == "always" || scheme == "first" || scheme == "never", reader.where(),
            ": the prepend_scheme '", scheme, "' is not supported");
    return metaspace_step(replacement,
                          scheme == "always"  ? PrependScheme::always
                          : scheme == "first" ? PrependScheme::first
                                              : PrependScheme::never,
                          reader.flag(step, "split", true));
}

void add_step(const JsonReader& reader, const json& step, const std::string& kind,
              PreTokenizerParts& parts) {
    require(!parts.byte_level, reader.where(), ": the pre-tokenizer '", kind,
            "' after ByteLevel is not supported");
    const auto split = [&](Pattern pattern, SplitBehavior behavior, bool invert) {
        parts.steps.push_back(split_step(std::move(pattern), behavior, invert));
    };
    if (kind == "ByteLevel") {
        parts.byte_level = true;
        if (reader.flag(step, "add_prefix_space", true)) parts.steps.push_back(prefix_space_step());
        const bool splits = reader.flag(step, "use_regex", true);
        parts.gpt2_only = splits && parts.steps.empty();
        if (splits) split(Pattern::gpt2(), SplitBehavior::isolated, false);
    } else if (kind == "Split") {
        split(reader.pattern(step), behavior_of(reader, step, ""),
              reader.flag(step, "invert", false));
    } else if (kind == "Digits") {
        split(Pattern::regex("\\p{N}", reader.where()),
              reader.flag(step, "individual_digits", false) ? SplitBehavior::isolated
                                                            : SplitBehavior::contiguous,
              false);
    } else if (kind == "Punctuation") {
        // ASCII's marks count, also those that Unicode takes for symbols.
        split(Pattern::regex("[\\p{P}$+<=>^`|~]", reader.where()),
              behavior_of(reader, step, "Isolated"), false);
    } else if (kind == "Metaspace") {
        parts.steps.push_back(metaspace(reader, step));
    } else {
        reader.refuse("pre-tokenizer", kind);
    }
}

NormalizeStep normalize_step(const JsonReader& reader, const json& step, const std::string& kind) {
    if (kind == "NFC") return nfc_step();
    if (kind == "NFD") return nfd_step();
    if (kind == "NFKC") return nfkc_step();
    if (kind == "NFKD") return nfkd_step();
    if (kind == "Prepend") return prepend_step(reader.text(step, "prepend"));
    if (kind == "Replace") return replace_step(reader.pattern(step), reader.text(step, "content"));
    if (kind == "Lowercase") return lowercase_step();
    if (kind == "Strip")
        return strip_step(reader.flag(step, "strip_left", true),
                          reader.flag(step, "strip_right", true));
    reader.refuse("normalizer", kind);
}

// {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}
std::vector<int32_t> template_ids(const JsonReader& reader, const json& processor,
                                  const std::string& name, size_t vocabulary) {
    const json& tokens =
        processor.contains("special_tokens") ? processor["special_tokens"] : json();
    require(tokens.is_object() && tokens.contains(name), reader.where(),
            ": the post-processor's template needs the special token '", name,
            "', which special_tokens lacks");
    std::vector<int32_t> ids;
    for (const json& id : reader.list(tokens[name], "ids")) {
        const json value = {{"ids", id}};
        ids.push_back(static_cast<int32_t>(
            reader.integer(value, "ids", -1, 0, static_cast<int64_t>(vocabulary) - 1)));
        require(ids.back() >= 0, reader.where(), ": ids: expected a token id, found null");
    }
    return ids;
}

void add_template(const JsonReader& reader, const json& processor, TokenizerParts& parts) {
    std::vector<int32_t> before, after;
    bool text_seen = false;
    for (const json& item : reader.list(processor, "single")) {
        require(item.is_object() && item.size() == 1, reader.where(),
                ": single: expected objects with SpecialToken or Sequence");
        if (item.contains("Sequence")) {
            require(!text_seen, reader.where(),
                    ": a template with the text twice is not supported");
            text_seen = true;
            continue;
        }
        require(item.contains("SpecialToken"), reader.where(), ": single: '", item.begin().key(),
                "' is not supported");
        const std::string name = reader.text(item["SpecialToken"], "id");
        const auto ids = template_ids(reader, processor, name, parts.spellings.size());
        auto& side = text_seen ? after : before;
        side.insert(side.end(), ids.begin(), ids.end());
    }
    parts.before.insert(parts.before.begin(), before.begin(), before.end());
    parts.after.insert(parts.after.end(), after.begin(), after.end());
}

}  // namespace

Normalizer read_normalizer(const JsonReader& reader, const json& normalizer) {
    Normalizer steps;
    for_each_part(reader, normalizer, "normalizer", "normalizers",
                  [&](const json& step, const std::string& kind) {
                      steps.push_back(normalize_step(reader, step, kind));
                  });
    return steps;
}

PreTokenizerParts read_pre_tokenizer(const JsonReader& reader, const json& pre_tokenizer) {
    PreTokenizerParts parts;
    for_each_part(
        reader, pre_tokenizer, "pre-tokenizer", "pretokenizers",
        [&](const json& step, const std::string& kind) { add_step(reader, step, kind, parts); });
    return parts;
}

void read_post_processor(const JsonReader& reader, const json& post_processor,
                         TokenizerParts& parts) {
    for_each_part(reader, post_processor, "post-processor", "processors",
                  [&](const json& processor, const std::string& kind) {
                      if (kind == "TemplateProcessing")
                          return add_template(reader, processor, parts);
                      // It changes offsets only.
                      if (kind != "ByteLevel") reader.refuse("post-processor", kind);
                  });
}

}  // namespace hark
