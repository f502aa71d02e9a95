#include "gpt/embed/embed_tokens.h"

#include <algorithm>

#include "core/error.h"
#include "gpt/answers/prompts.h"
#include "text/tokenizer.h"

namespace hark::gpt {
namespace {

// Of more tokens than `longest`, the text's last ones are removed, the tokenizer's own stay.
void cut(const Tokenizer& tokenizer, const EmbedStreamOptions& options, const std::string& text,
         std::vector<int32_t>& ids) {
    const std::vector<int32_t> plain =
        tokenizer.encode(options.before_text + text, {.parse_specials = true});
    const int64_t around = std::ssize(ids) - std::ssize(plain);
    int64_t before = 0;
    while (before < around && !std::equal(plain.begin(), plain.end(), ids.begin() + before))
        ++before;
    const auto end = ids.begin() + before + std::ssize(plain);
    ids.erase(end - std::min(std::ssize(ids) - options.longest, std::ssize(plain)), end);
}

}  // namespace

std::vector<int32_t> embed_tokens(const Tokenizer& tokenizer, const EmbedStreamOptions& options,
                                  Prompt& text) {
    if (!text.error.empty()) return {};
    std::vector<int32_t> ids = tokenizer.encode(options.before_text + text.text,
                                                {.parse_specials = true, .add_specials = true});
    if (ids.empty()) text.fail("invalid_value", "the text has no tokens");
    if (std::ssize(ids) <= options.longest) return ids;
    if (options.truncate) {
        cut(tokenizer, options, text.text, ids);
        return ids;
    }
    text.fail("context_length_exceeded",
              concat("the text has ", ids.size(), " tokens, the model takes ", options.longest,
                     "; cut it with --truncate"));
    return {};
}

}  // namespace hark::gpt
