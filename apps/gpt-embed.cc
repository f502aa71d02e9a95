// gpt-embed: texts on stdin -> a vector of each, from a language model.
//
//   stdin -> PromptReader -> EmbedStream (Tokenizer, Embedder) -> VectorWriter -> stdout
#include <unistd.h>

#include "core/profile/run_counts.h"
#include "gpt/decoder/model.h"
#include "gpt/embed/embed_stream.h"
#include "gpt/embed/embed_tool_options.h"
#include "gpt/families/model_file.h"

using namespace hark;

namespace {

void run(const gpt::EmbedToolOptions& options, Console& console) {
    options.check();
    Context ctx = options.compute.context(console);
    ctx.batch_invariant = false;
    if (console.tracing)
        ctx.on_stage = [&](auto& name, auto& shape, double ms) { console.trace(name, shape, ms); };
    const std::shared_ptr<gpt::ModelFile> file = options.choice.open(console);
    const std::shared_ptr<const Tokenizer> tokenizer = options.choice.tokenizer_of(*file);
    const gpt::EmbeddingSettings settings = file->embedding_settings();
    const std::string before_text = options.before_text(settings);
    ByteWriter out(STDOUT_FILENO, "stdout");
    gpt::VectorWriter vectors(options.output(), out);
    const gpt::Model model = gpt::read_model(
        file, precision_of(options.compute.dtype, ctx.device, gpt::stored_type(*file)),
        ctx.arena.source(), ctx.threads);
    gpt::Embedder embedder(ctx, model, options.embed(settings));

    ByteReader in(STDIN_FILENO, "stdin");
    gpt::PromptReader texts(in, options.prompt_format(), "", false,
                            [&](const std::string& warning) { console.warning(warning); });
    gpt::EmbedStream stream(
        embedder, *tokenizer,
        {before_text, settings.longest_of(model.config.n_positions), options.truncate}, console,
        [&](gpt::EmbeddedText text) { vectors.add(std::move(text)); });
    bool any = options.prompt_format() != gpt::PromptFormat::whole;
    while (auto text = texts.next()) stream.add(std::move(*text)), any = true;
    // All of stdin is one text, an empty one if it is empty.
    if (!any) stream.add({.where = "stdin", .metadata = R"({"id":0})"});
    stream.finish();
    note_model(options.choice.model, ctx.on_cuda() ? "cuda" : "cpu");
    add_memory("activations", static_cast<int64_t>(ctx.arena.peak()));
    vectors.finish();
}

constexpr ToolHelp kHelp = {
    .name = "gpt-embed",
    .summary = "Makes a vector of each text with a language model, on stdout.",
    .description =
        R"(Each line of stdin is a text. With --input-format jsonl each line is an object
with `text`, as whisper-transcribe writes them, or with `prompt`. The vector is
the final norm's output at the last token, or the mean over all of them, as the
model's files say, scaled to length 1. So the product of two vectors says how
close their texts are. Models that were trained for it are named embedding models.
--format jsonl writes an object per text: id, and source, start and end of a
transcript's line, index, prompt_tokens and embedding. A text that does not fit
the model's context is an error, unless --truncate is given.
With --nearest FILE the texts are questions, and FILE has the vectors of others, as
--format f32 writes them: the numbers of the rows that are closest to each.)",
    .examples = R"(# A vector per line
gpt-embed -m ./Qwen3-Embedding < sentences.txt > vectors.jsonl
# A question, with the model's own instruction for it
echo 'Who fixes it?' | gpt-embed -m ./Qwen3-Embedding --prompt-name query
# The segments of a recording, as numbers for another program
audio-decode talk.mp3 | mel | whisper-transcribe -m small -f jsonl |
    gpt-embed -m ./Qwen3-Embedding --input-format jsonl -f f32 > talk.f32
# The lines of it that are closest to a question
echo 'Who fixes the roof?' |
    gpt-embed -m ./Qwen3-Embedding --nearest talk.f32 --matches 3 -f tsv)",
    .traces = true,
    .is_measured = true,
};

}  // namespace

int main(int argc, char** argv) { return tool_main<gpt::EmbedToolOptions>(kHelp, argc, argv, run); }
