#include "gpt/embed/embed_stream.h"

#include <algorithm>
#include <limits>

#include "core/error.h"

namespace hark::gpt {
namespace {

// Rows that are gathered: a GPU's pass.
constexpr int64_t kTokensAtOnce = 2048;

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

EmbedStream::EmbedStream(Embedder& embedder, const Tokenizer& tokenizer,
                         const EmbedStreamOptions& options, Console& console, UseVector use)
    : embedder_(embedder),
      tokenizer_(tokenizer),
      options_(options),
      console_(console),
      use_(std::move(use)) {}

void EmbedStream::add(Prompt text) {
    std::vector<int32_t> ids = embed_tokens(tokenizer_, options_, text);
    rows_ += std::ssize(ids);
    waiting_.push_back({std::move(text), std::move(ids)});
    if (rows_ >= kTokensAtOnce) finish();
}

void EmbedStream::finish() {
    std::vector<std::vector<int32_t>> texts;
    for (const Waiting& one : waiting_)
        if (one.text.error.empty()) texts.push_back(one.ids);
    std::vector<std::vector<float>> vectors = embedder_(texts);
    const std::vector<float> none(static_cast<size_t>(embedder_.dimensions()),
                                  std::numeric_limits<float>::quiet_NaN());
    size_t next = 0;
    for (Waiting& one : waiting_) {
        const std::string& error = one.text.error;
        const bool failed = !error.empty();
        if (failed) console_.error(one.text.where.empty() ? error : one.text.where + ": " + error);
        use_({std::move(one.text), index_++, one.ids.size(),
              failed ? none : std::move(vectors[next++])});
    }
    waiting_.clear();
    rows_ = 0;
}

}  // namespace hark::gpt
