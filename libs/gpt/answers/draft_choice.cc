#include "gpt/answers/draft_choice.h"

#include "core/error.h"
#include "gpt/answers/generate_request.h"
#include "gpt/decoder/model.h"
#include "gpt/families/model_choice.h"
#include "gpt/families/model_file.h"

namespace hark::gpt {

std::string why_other_tokens(const Tokenizer& tokenizer, const Tokenizer& draft) {
    if (tokenizer.vocab_size() != draft.vocab_size())
        return concat("it has ", draft.vocab_size(), " tokens, the model's tokenizer ",
                      tokenizer.vocab_size());
    const auto text_of = [](const Tokenizer& of, int32_t id) {
        return of.has(id) ? concat("'", of.token(id), "'") : std::string("none");
    };
    for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
        const bool has = tokenizer.has(id);
        if (has == draft.has(id) && (!has || tokenizer.token(id) == draft.token(id))) continue;
        return concat("its token ", id, " is ", text_of(draft, id),
                      ", that of the model's tokenizer ", text_of(tokenizer, id));
    }
    return "";
}

Model read_draft_model(const std::string& name, const ModelChoice& choice,
                       const Tokenizer& tokenizer, const std::string& dtype,
                       const GenerateOptions& options, Context& ctx, Console& console,
                       Communicator& ranks) {
    const std::shared_ptr<ModelFile> file = open_named_model(name, console);
    if (choice.tokenizer.empty()) {
        const std::string other = why_other_tokens(tokenizer, *file->tokenizer());
        require(other.empty(), "--draft-model ", name, ": the tokenizer is another one: ", other,
                "; give a smaller model of the same family");
    }
    const Precision precision =
        options.with_cache(precision_of(dtype, ctx.device, stored_type(*file)));
    return read_model(file, precision, ctx.arena.source(), ctx.threads, ranks);
}

}  // namespace hark::gpt
