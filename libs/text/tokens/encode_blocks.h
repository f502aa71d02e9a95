// Blocks of text to ids, by several threads, in the blocks' order.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "text/tokens/documents.h"
#include "text/tokenizer.h"

namespace hark {

struct EncodedBlock {
    std::vector<int32_t> ids;
    std::vector<size_t> ends;           // where in ids a document ends
    std::vector<std::string> problems;  // lines of JSON that have no text
    size_t bytes = 0;                   // of text
};

struct EncodeBlocksOptions {
    std::optional<int32_t> separator;  // precedes every document
    std::string key;                   // of lines of JSON
    int jobs = 1;                      // threads; the ids do not depend on their number
};

class BlockEncoder {
  public:
    using Next = std::function<std::optional<TextBlock>()>;
    // `next` is called by the thread that calls this one's next(), a few blocks ahead.
    BlockEncoder(const Tokenizer& tokenizer, const EncodeBlocksOptions& options, Next next);
    ~BlockEncoder();
    BlockEncoder(const BlockEncoder&) = delete;
    BlockEncoder& operator=(const BlockEncoder&) = delete;

    // nullopt after the last block. Throws what encoding a block threw.
    std::optional<EncodedBlock> next();

  private:
    struct Shared;
    const EncodeBlocksOptions options_;
    Next next_;
    std::shared_ptr<Shared> shared_;
    std::vector<std::thread> threads_;
    bool ended_ = false;
};

}  // namespace hark
