// Texts in, vectors out, in the texts' order.
#pragma once

#include <functional>
#include <vector>

#include "core/cli/cli.h"
#include "gpt/embed/embed_tokens.h"
#include "gpt/embed/embedder.h"
#include "gpt/embed/vector_writer.h"
#include "text/tokenizer.h"

namespace hark::gpt {

class EmbedStream {
  public:
    using UseVector = std::function<void(EmbeddedText text)>;
    // The references must outlive it. What is wrong with a text is also said on the console.
    EmbedStream(Embedder& embedder, const Tokenizer& tokenizer, const EmbedStreamOptions& options,
                Console& console, UseVector use);

    // Takes a text. Its vector is ready once enough texts have come for a pass of the model.
    void add(Prompt text);
    // Makes all vectors that are left.
    void finish();

  private:
    struct Waiting {
        Prompt text;
        std::vector<int32_t> ids;
    };
    Embedder& embedder_;
    const Tokenizer& tokenizer_;
    EmbedStreamOptions options_;
    Console& console_;
    UseVector use_;
    std::vector<Waiting> waiting_;
    int64_t rows_ = 0;  // of them
    int64_t index_ = 0;
};

}  // namespace hark::gpt
