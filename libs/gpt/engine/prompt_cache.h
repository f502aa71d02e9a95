// The keys and values of a prompt in a file: gpt-generate --prompt-cache. docs/formats.md has the
// format.
#pragma once

#include <filesystem>

#include "core/io.h"
#include "gpt/engine/sequence.h"

namespace hark::gpt {

// Writes the sequence's tokens and what its cache has of them. On a GPU it waits for the stream.
void write_prompt_cache(Context& ctx, const Sequence& sequence, ByteWriter& out);

// Replaces the sequence by the file's. Throws Error naming the file where it is none, is of another
// model or another type of weights or cache, or has more tokens than the context.
void read_prompt_cache(Context& ctx, Sequence& sequence, const std::filesystem::path& path);

}  // namespace hark::gpt
