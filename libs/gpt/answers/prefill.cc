#include "gpt/answers/prefill.h"

#include <utility>

#include "core/error.h"
#include "core/files/files.h"
#include "gpt/decoder/model.h"
#include "gpt/engine/prompt_cache.h"
#include "gpt/engine/sequence.h"
#include "kernels/runtime/gpu_limits.h"

namespace hark::gpt {
namespace {

void use_prompt_of(ByteReader& in, Context& ctx, const Model& model, const Tokenizer& tokenizer,
                   const UseCache& use) {
    PromptCacheReader reader(ctx, model, in);
    Prompt prompt;
    prompt.tokens = reader.tokens();
    for (const int32_t token : prompt.tokens)
        require(tokenizer.has(token), in.name(), ": the tokenizer has no token ", token,
                "; give the --tokenizer of --prefill-only");
    prompt.text = tokenizer.decode(prompt.tokens);
    prompt.metadata = R"({"id":0})";
    use(reader, std::move(prompt));
}

}  // namespace

void prefill(Context& ctx, const Model& model, const PromptEncoder& encoder, Prompt prompt,
             int64_t context, ByteWriter& out) {
    check_head(ctx, model.config.head_dim, kMostHeadChannels);
    const std::vector<int32_t> ids = encoder.ids(prompt);
    require(prompt.error.empty(), prompt.error);
    require(!ids.empty(), "the prompt is empty: --prefill-only has nothing to compute");
    Sequence sequence(ctx, model, {.context = context});
    write_prompt_cache(ctx, sequence, sequence.forward_to_host(ctx, ids), out);
}

void with_prompt_of(const std::string& file, ByteReader& in, Context& ctx, const Model& model,
                    const Tokenizer& tokenizer, const UseCache& use) {
    if (file == "-") return use_prompt_of(in, ctx, model, tokenizer, use);
    const OpenFile opened(file);
    ByteReader from(opened.fd(), file);
    use_prompt_of(from, ctx, model, tokenizer, use);
}

}  // namespace hark::gpt
