#include "gpt/embed/embed_tool_options.h"

namespace hark::gpt {

void EmbedToolOptions::flags(Flags& flags) {
    choice.flags(flags);
    flags.section("Input and output");
    flags.add("input-format", input_format, {"lines", "jsonl", "text"}, "FORM format of stdin")
        .essential()
        .own_variable()
        .details(
            "lines: a text per line; jsonl: an object with `text` or `prompt` per line; text: all "
            "of stdin is one text.");
    flags.add("format,f", format, {"jsonl", "f32", "tsv"}, "FORM format of the vectors")
        .essential()
        .own_variable()
        .details(
            "jsonl: an object per text. f32: little-endian float32 and nothing else, a row per "
            "text; the row of a text that failed is NaN. tsv: with --nearest, a line per match: "
            "the text's number, the row's number and the score, from 0.");
    flags.add("prompt-name", prompt_name, "NAME the model's own instruction before each text")
        .essential()
        .details(
            "One of the prompts in config_sentence_transformers.json, such as `query`. "
            "Questions often need another instruction than the texts that are searched.");
    flags.add("instruction", instruction,
              "TEXT before each text, in place of the model's instruction");
    flags.add_name("nearest", nearest, "FILE find each text's closest rows in these vectors")
        .essential()
        .completes(Completes::file)
        .details(
            "FILE has the vectors of other texts, written with --format f32 by the same model. The "
            "score is the product of two vectors. The model's prompt `query` is put before each "
            "text if it has one and no other is asked for.");
    flags.add("matches", matches, "N matches to write, at most", 1, 1 << 20)
        .shows_default("10")
        .details("Rows per text, with --nearest.");
    flags.add_switch("truncate", truncate, "cut the end of a text that is too long")
        .details("Without it such a text is an error.");
    flags.section("Vectors");
    flags
        .add("pooling", pooling, {"auto", "last", "mean", "first"},
             "NAME tokens that the vector is made of")
        .details(
            "auto: as the model's files say (1_Pooling/config.json, GGUF's pooling_type), else the "
            "last token.");
    flags.add("dimensions", dimensions, "N first dimensions that are kept; 0: all", 0, 1 << 20)
        .details("For models that were trained for it, as Qwen3-Embedding.");
    flags.add_switch("unit-length", normalize, "scale vectors to length 1");
    compute.flags(flags);
}

void EmbedToolOptions::check() const {
    require_usage(instruction.empty() || prompt_name.empty(),
                  "--instruction and --prompt-name exclude each other");
    require_usage(format != "f32" || nearest.empty(), "--nearest needs --format jsonl or tsv");
    require_usage(!matches || !nearest.empty(), "--matches needs --nearest");
    require_usage(format != "tsv" || !nearest.empty(), "--format tsv needs --nearest");
    if (format == "f32") require_not_terminal("float32 values");
    require_piped_stdin("texts", "gpt-embed -m MODEL < texts.txt");
}

PromptFormat EmbedToolOptions::prompt_format() const {
    return input_format == "jsonl"   ? PromptFormat::jsonl
           : input_format == "lines" ? PromptFormat::lines
                                     : PromptFormat::whole;
}

VectorOutput EmbedToolOptions::output() const {
    const VectorForm form = format == "f32"   ? VectorForm::f32
                            : format == "tsv" ? VectorForm::tsv
                                              : VectorForm::jsonl;
    return {.form = form, .nearest = nearest, .matches = matches.value_or(10)};
}

EmbedOptions EmbedToolOptions::embed(const EmbeddingSettings& settings) const {
    const Pooling own = pooling == "last"    ? Pooling::last_token
                        : pooling == "mean"  ? Pooling::mean
                        : pooling == "first" ? Pooling::first_token
                                             : settings.pooling;
    return {.pooling = own, .dimensions = dimensions, .normalize = normalize};
}

std::string EmbedToolOptions::before_text(const EmbeddingSettings& settings) const {
    if (!instruction.empty()) return instruction;
    const bool asks = !nearest.empty() && settings.prompts.contains("query");
    const std::string name = !prompt_name.empty() ? prompt_name
                             : asks               ? "query"
                                                  : settings.default_prompt;
    if (name.empty()) return "";
    const auto found = settings.prompts.find(name);
    if (found != settings.prompts.end()) return found->second;
    std::string names;
    for (const auto& [known, prompt] : settings.prompts)
        names += (names.empty() ? "" : ", ") + known;
    fail("--prompt-name: the model has no prompt '", name, "' (it has ",
         names.empty() ? "none" : names, "); give the text with --instruction");
}

}  // namespace hark::gpt
