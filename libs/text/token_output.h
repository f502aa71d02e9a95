// Where tokens go: a token file on stdout or by name, shards in a directory, ids as text; and a
// part of them held out into a second file.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "core/cli.h"

namespace hark {

class TokenSink {
  public:
    virtual ~TokenSink() = default;
    // A document's ids, all or the next of them.
    virtual void write(std::span<const int32_t> ids) = 0;
    virtual void end_document() {}
    // All is written; without it no file gets its name.
    virtual void finish() = 0;
};

struct TokenOutputOptions {
    std::string format = "tokens";  // or "ids"
    std::string directory;          // of shards; empty: one token file on stdout
    std::string shard_name = "tokens";
    int64_t shard_tokens = 100'000'000;  // llm.c's own
    std::string val;                     // the file of what is held out; empty: nothing is
    int64_t val_block = 2048, val_every = 40;

    void flags(Flags& flags);
    // Throws UsageError where the options do not fit together.
    void check() const;
};

// Throws Error if the directory cannot be made, or holds shards of this name already. At the end
// `console` gets a warning if nothing could be held out.
std::unique_ptr<TokenSink> make_token_sink(const TokenOutputOptions& options, int32_t vocab_size,
                                           Console& console);

}  // namespace hark
