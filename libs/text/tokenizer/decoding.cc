#include "text/tokenizer/decoding.h"

#include "core/error.h"
#include "text/utf8.h"

namespace hark {
namespace {

// Each byte that begins no code point is U+FFFD.
std::string replace_each_byte(std::string_view bytes) {
    std::string text;
    for (size_t at = 0; at < bytes.size();) {
        size_t length = std::min<size_t>(4, bytes.size() - at);
        while (length > 0 && !(is_valid_utf8(bytes.substr(at, length)) &&
                               count_code_points(bytes.substr(at, length)) == 1))
            --length;
        text += length > 0 ? bytes.substr(at, length) : kReplacementCharacter;
        at += length > 0 ? length : 1;
    }
    return text;
}

std::string replace_all_bytes(std::string_view bytes) {
    if (is_valid_utf8(bytes)) return std::string(bytes);
    std::string text;
    for (size_t i = 0; i < bytes.size(); ++i) text += kReplacementCharacter;
    return text;
}

}  // namespace

void TokenTextStream::put(std::string_view text, bool strips, std::string& out) {
    const DecodingRules& rules = table_.rules;
    while (strips && strips_ && stripped_ < rules.strips && text.starts_with(rules.stripped)) {
        text.remove_prefix(rules.stripped.size());
        ++stripped_;
        if (rules.strips_first_token_only) strips_ = false;
    }
    if (!text.empty()) strips_ = false;
    out += text;
}

void TokenTextStream::end_bytes(std::string& out) {
    if (bytes_.empty()) return;
    const bool each = table_.rules.bytes == DecodingRules::Bytes::each;
    put(each ? replace_each_byte(bytes_) : replace_all_bytes(bytes_), true, out);
    bytes_.clear();
}

void TokenTextStream::push(int32_t id, std::string& out) {
    const bool known = id >= 0 && static_cast<size_t>(id) < table_.tokens.size() &&
                       table_.tokens[static_cast<size_t>(id)].used;
    require(known, "token id ", id, " is not in the vocabulary of ", table_.tokens.size());
    const TokenText& token = table_.tokens[static_cast<size_t>(id)];
    if (token.special && !with_specials_) {
        // sentencepiece's control tokens end a run of bytes.
        if (table_.rules.bytes == DecodingRules::Bytes::each) end_bytes(out);
        return;
    }
    if (token.byte >= 0 && table_.rules.bytes != DecodingRules::Bytes::none) {
        bytes_.push_back(static_cast<char>(token.byte));
        first_ = false;
        return;
    }
    end_bytes(out);
    if (table_.rules.joined_by_spaces && !first_) put(" ", true, out);
    put(first_ && table_.rules.first_differs ? token.first_text : token.text, token.strips, out);
    first_ = false;
}

void TokenTextStream::finish(std::string& out) {
    end_bytes(out);
    first_ = strips_ = true;
    stripped_ = 0;
}

}  // namespace hark
