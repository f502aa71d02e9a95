#include "gpt/engine/model_choice.h"

#include "core/models.h"

namespace hark::gpt {

std::shared_ptr<ModelFile> open_named_model(const std::string& name) {
    return open_model(find_model(name, "gpt"));
}

void ModelChoice::flags(Flags& flags) {
    flags.section("Model");
    flags.add_name("model,m", model, "MODEL name, folder or file of a language model")
        .essential()
        .variable("HARK_GPT_MODEL")
        .completes(Completes::model)
        .details(
            "`demo`, another installed name, a Hugging Face folder, a GGUF file or llm.c's "
            ".bin file. A path begins with / or ./");
    flags.add_name("tokenizer", tokenizer, "PATH tokenizer, for a model that carries none")
        .own_variable()
        .completes(Completes::file)
        .details(
            "A tiktoken rank file, llm.c's tokenizer.bin, a tokenizer.json or its folder, or "
            "a GGUF file.");
}

std::shared_ptr<const Tokenizer> ModelChoice::tokenizer_of(const ModelFile& file) const {
    return tokenizer.empty() ? file.tokenizer() : Tokenizer::load(tokenizer);
}

}  // namespace hark::gpt
