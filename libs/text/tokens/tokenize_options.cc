#include "text/tokens/tokenize_options.h"

#include <algorithm>

#include "core/machine/cores.h"

#include "core/models/models.h"

namespace hark {

void TokenizeOptions::flags(Flags& flags) {
    flags.positional("FILE...", files, "text, or with --decode token files; none or - is stdin");
    flags.section("Tokenizer");
    flags.add_name("model,m", model, "MODEL model whose tokenizer is used")
        .essential()
        .variable("HARK_GPT_MODEL")
        .completes(Completes::model)
        .details(
            "`demo`, another installed name, a Hugging Face folder or a GGUF file. A path "
            "begins with / or ./");
    flags.add_name("tokenizer", tokenizer, "PATH tokenizer without a model")
        .essential()
        .own_variable()
        .completes(Completes::file)
        .details(
            "Used instead of --model. A tokenizer.json or its folder, a tiktoken rank file "
            "(<|endoftext|> is the id "
            "after its ranks), llm.c's tokenizer.bin, or a sentencepiece model.");
    training.flags(flags);
    documents.flags(flags);
    flags.section("Output");
    flags.add_switch("decode", decode, "write the text of token files")
        .essential()
        .details("With --format ids, of ids as text. <|endoftext|> is written between documents.");
    output.flags(flags);
    flags.add_switch("eot", eot, "an end-of-text token before each document");
    flags.section("Computing");
    flags.add("threads,t", threads, "N CPU threads; 0: all cores", 0, 4096)
        .details(concat(kThreadsDetails, " The output does not depend on it.").c_str());
}

int TokenizeOptions::thread_count() const {
    return static_cast<int>(std::clamp<int64_t>(threads > 0 ? threads : available_cores(), 1, 256));
}

std::filesystem::path TokenizeOptions::tokenizer_path() const {
    return tokenizer.empty() ? find_model(model, "gpt") : std::filesystem::path(tokenizer);
}

EncodeBlocksOptions TokenizeOptions::encode_options(const Tokenizer& tokenizer) const {
    EncodeBlocksOptions result{{}, documents.key, thread_count()};
    if (!eot || output.format == "ids") return result;
    result.separator = tokenizer.end_of_text();
    require(result.separator.has_value(), "the tokenizer has no end-of-text token (expected ",
            "<|endoftext|> or </s>); --no-eot writes none");
    return result;
}

void TokenizeOptions::check() const {
    documents.check();
    training.check();
    require_usage(std::count(files.begin(), files.end(), "-") <= 1, "- (stdin) is given twice");
    if (training.on)
        check_training();
    else if (decode)
        check_decoding();
    else
        check_encoding();
    if (files.empty() || std::count(files.begin(), files.end(), "-") > 0)
        require_piped_stdin(decode ? "tokens" : "text", "gpt-tokenize -m demo FILE > train.bin");
}

void TokenizeOptions::check_encoding() const {
    require_usage(eot || output.format != "ids", "--no-eot: --format ids has no end-of-text token");
    output.check();
}

void TokenizeOptions::check_decoding() const {
    require_usage(eot && !documents.split && documents.format == "text" &&
                      output.directory.empty() && output.val.empty(),
                  "--decode writes text to stdout: --no-eot, --split-documents, --input-format, "
                  "--output-dir and --val-output do not apply");
}

void TokenizeOptions::check_training() const {
    require_usage(
        !decode && tokenizer.empty() && output.format == "tokens" && eot && output.val.empty(),
        "--train-tokenizer writes no tokens: --decode, --tokenizer, --format, --no-eot "
        "and --val-output do not apply");
    require_usage(!output.directory.empty(), "--train-tokenizer needs --output-dir DIR");
}

}  // namespace hark
