#include "gpt/embed/embed_stream.h"

#include <algorithm>
#include <limits>

#include "core/error.h"

namespace hark::gpt {
namespace {

// Rows that are gathered: a GPU's pass.
constexpr int64_t kTokensAtOnce = 2048;

}  // namespace

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
