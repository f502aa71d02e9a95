// The model that proposes tokens: --draft-model.
#pragma once

#include <string>

namespace hark {
class Communicator;
class Console;
struct Context;
class Tokenizer;
}  // namespace hark

namespace hark::gpt {

struct GenerateOptions;
struct Model;
struct ModelChoice;

// Why the texts of one tokenizer's ids are not those of the other's; empty: they are the same.
std::string why_other_tokens(const Tokenizer& tokenizer, const Tokenizer& draft);

// Reads the draft model of that name for texts of `tokenizer`, its weights in --dtype's `dtype`,
// its cache in the options' type. Throws Error where its tokenizer has other tokens; with
// --tokenizer, which is then that of both models, it is not asked. `ranks` share it as the model.
Model read_draft_model(const std::string& name, const ModelChoice& choice,
                       const Tokenizer& tokenizer, const std::string& dtype,
                       const GenerateOptions& options, Context& ctx, Console& console,
                       Communicator& ranks);

}  // namespace hark::gpt
