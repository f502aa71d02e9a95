#include "text/bpe_encoder.h"

#include "text/split.h"
#include "text/utf8.h"

namespace hark {

void BpeEncoder::encode(std::string_view text, std::vector<int32_t>& ids, bool begins) {
    std::string copy;
    if (begins && bpe_.prefix_space_ && !text.starts_with(' '))
        text = copy = std::string(1, ' ').append(text);
    if (!is_valid_utf8(text)) text = copy = replace_invalid(text);
    for (size_t at = 0; at < text.size();) {
        const size_t end = word_end(text, at);
        const std::string_view word = text.substr(at, end - at);
        cache_.append(word, ids, [&] { merge_word(word, ids); });
        at = end;
    }
}

void BpeEncoder::merge_word(std::string_view word, std::vector<int32_t>& ids) {
    if (!bpe_.words_.empty()) {
        const auto whole = bpe_.words_.find(std::string(word));
        if (whole != bpe_.words_.end()) return ids.push_back(whole->second);
    }
    merger_.symbols().clear();
    for (const char byte : word)
        merger_.symbols().push_back(bpe_.byte_ids_[static_cast<unsigned char>(byte)]);
    merger_.merge(bpe_.merges_);
    merger_.for_each([&](int32_t id, int32_t) { ids.push_back(id); });
}

}  // namespace hark
