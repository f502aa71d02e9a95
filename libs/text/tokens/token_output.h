// Writes tokens: to a token file, shards in a folder, or ids as text; and holds a part of them out
// into a second file.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "core/cli/cli.h"

namespace hark {

class TokenSink {
  public:
    virtual ~TokenSink() = default;
    // Ids of the current document.
    virtual void write(std::span<const int32_t> ids) = 0;
    virtual void end_document() {}
    // Completes the files; without it none gets its name.
    virtual void finish() = 0;
};

struct TokenOutputOptions {
    std::string format = "tokens";  // or "ids"
    std::string directory;          // of shards; empty: one token file on stdout
    std::string shard_name = "tokens";
    int64_t shard_tokens = 100'000'000;  // llm.c's own
    std::string val;                     // file of held-out tokens; empty: none are held out
    int64_t val_block = 2048, hold_out_every = 40;

    void flags(Flags& flags);
    // Throws UsageError if the options contradict each other.
    void check() const;
};

// Throws Error if the directory cannot be made, or holds shards of this name already. At the end
// `console` gets a warning if nothing could be held out.
std::unique_ptr<TokenSink> make_token_sink(const TokenOutputOptions& options, int32_t vocab_size,
                                           Console& console);

}  // namespace hark
