#include "gpt/families/model_choice.h"

#include <algorithm>

#include "core/models/models.h"
#include "gpt/families/model_file.h"

namespace hark::gpt {

std::shared_ptr<ModelFile> open_named_model(const std::string& name, Console& console) {
    const std::filesystem::path path = find_model(name, "gpt");
    std::shared_ptr<ModelFile> file = open_model(path);
    const std::optional<Widening> widening = file->widening();
    if (widening && widening->widened > 0)
        console.warning(concat(path.string(), ": ", widening->format, ": ", widening->widened,
                               " matrices are widened while they are read, to ",
                               std::max<int64_t>(1, (widening->bytes + 500'000) / 1'000'000),
                               " MB of ", name_of(widening->dtype)));
    return file;
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
