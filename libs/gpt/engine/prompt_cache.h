// The keys and values of a prompt as a tensor stream: gpt-generate --prefill-only, --from-cache and
// --prompt-cache. docs/formats.md has the format.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "core/files/io.h"
#include "formats/tensor_stream.h"

namespace hark {
struct Context;
}

namespace hark::gpt {

struct Model;
class Sequence;

// Writes the sequence's tokens, the logits (n_vocab) after the last one, and what its cache has. On
// a GPU it waits for the stream.
void write_prompt_cache(Context& ctx, const Sequence& sequence, std::span<const float> logits,
                        ByteWriter& out);

class PromptCacheReader {
  public:
    // Reads all but keys and values. Throws Error naming the stream where it is none, or is of
    // another model or another type of weights or cache. Holds references.
    PromptCacheReader(Context& ctx, const Model& model, ByteReader& in);

    const std::vector<int32_t>& tokens() const { return tokens_; }
    // After the last token (n_vocab).
    const std::vector<float>& logits() const { return logits_; }
    // Replaces a sequence of the model by the stream's; once. Throws Error where the stream ends
    // early or has more, where it lacks keys, or has more tokens than the context.
    void read_into(Context& ctx, Sequence& sequence);

  private:
    void check_settings(Context& ctx) const;
    void read_tokens();
    void read_logits();
    // The tensor number `i`, which must have that name.
    const TensorEntry& entry(size_t i, const std::string& name) const;
    void read(void* to, size_t bytes);

    const Model& model_;
    ByteReader& in_;
    Document document_;  // without its data
    std::vector<int32_t> tokens_;
    std::vector<float> logits_;
};

// A prompt of which a sequence has keys and values.
struct PromptCache {
    std::vector<int32_t> tokens;
    std::vector<float> logits;
};

// Replaces the sequence by the file's. Throws Error as the reader does.
PromptCache read_prompt_cache(Context& ctx, Sequence& sequence, const std::filesystem::path& path);

}  // namespace hark::gpt
