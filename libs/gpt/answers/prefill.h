// An answer in two processes: one computes the prompt, the other continues it.
#pragma once

#include <functional>
#include <string>

#include "core/files/io.h"
#include "gpt/answers/chat.h"

namespace hark {
struct Context;
}

namespace hark::gpt {

struct Model;
class PromptCacheReader;

// gpt-generate --prefill-only: computes the prompt and writes it (engine/prompt_cache.h).
// `context`: tokens, at most; 0: the model's own. Throws Error for an empty prompt, for one with an
// error, and for one that is longer than the context.
void prefill(Context& ctx, const Model& model, const PromptEncoder& encoder, Prompt prompt,
             int64_t context, ByteWriter& out);

// gpt-generate --from-cache: calls use(reader, prompt) with the prompt of `file`, or of `in` where
// that is "-". Throws Error as the reader does, which lives during the call.
using UseCache = std::function<void(PromptCacheReader&, Prompt)>;
void with_prompt_of(const std::string& file, ByteReader& in, Context& ctx, const Model& model,
                    const Tokenizer& tokenizer, const UseCache& use);

}  // namespace hark::gpt
