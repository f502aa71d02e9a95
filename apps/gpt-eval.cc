// gpt-eval: texts or questions as JSON lines -> how well a language model predicts them.
//
//   stdin -> LineReader -> EvalTask (ModelRows) -> measures -> stdout
#include <unistd.h>

#include "core/profile/run_counts.h"
#include "gpt/decoder/model.h"
#include "gpt/eval/eval_tool_options.h"
#include "gpt/families/model_file.h"
#include "text/line_reader.h"

using namespace hark;

namespace {

// A model and what runs its rows.
struct LoadedModel {
    LoadedModel(Context& ctx, const std::shared_ptr<gpt::ModelFile>& file, const std::string& dtype)
        : model(gpt::read_model(file, precision_of(dtype, ctx.device, gpt::stored_type(*file)),
                                ctx.arena.source(), ctx.threads)),
          rows(ctx, model) {}

    gpt::Model model;
    gpt::ModelRows rows;
};

void run(const gpt::EvalToolOptions& options, Console& console) {
    options.check();
    Context ctx = options.compute.context(console);
    ctx.batch_invariant = false;
    const std::shared_ptr<gpt::ModelFile> file = options.choice.open(console);
    const std::shared_ptr<const Tokenizer> tokenizer = options.choice.tokenizer_of(*file);
    LoadedModel model(ctx, file, options.compute.dtype);
    std::optional<LoadedModel> reference;
    if (!options.against.empty())
        reference.emplace(ctx, gpt::open_named_model(options.against, console), "auto");
    const auto task = gpt::make_eval_task(
        options.task, gpt::eval_models(ctx, *tokenizer, model.rows,
                                       reference ? &reference->rows : nullptr, options.context));

    ByteReader in(STDIN_FILENO, "stdin");
    const bool is_text = options.input_format == "text";
    const auto warn = [&](const std::string& warning) { console.warning(warning); };
    LineReader lines(in, is_text, is_text ? Utf8Check::Warn(warn) : Utf8Check::Warn());
    bool is_checked = false;
    while (const std::optional<std::string> line = lines.next()) {
        if (line->empty()) continue;
        if (!is_checked) is_checked = options.check_first(*line, lines.where());
        try {
            task->add(options.parse(*line));
        } catch (const Error& why) {
            console.error(concat(lines.where(), ": ", why.what()));
        }
        task->compute_if_full();
    }
    task->finish();
    note_model(options.choice.model, ctx.on_cuda() ? "cuda" : "cpu");
    add_memory("activations", static_cast<int64_t>(ctx.arena.peak()));
    require(task->count() > 0, "stdin: expected 1 text or question or more, found none");
    ByteWriter out(STDOUT_FILENO, "stdout");
    out.write(options.report(task->measures()));
    out.flush();
}

constexpr ToolHelp kHelp = {
    .name = "gpt-eval",
    .summary = "Measures how well a language model predicts texts, or answers questions.",
    .description =
        R"(stdin are lines of JSON. --task perplexity scores the `text` of each: the mean
loss per token in nats and the perplexity, each with its standard error, and the
perplexities per word and per byte. --against ORIGINAL adds how far the model's
distributions are from the original's: what a quantised form loses.
--task hellaswag, arc, mmlu and choice score each of a question's choices after
its context. acc is the share of questions whose right choice is the likeliest,
acc_norm the same of the choices' loss per character.
The numbers are those of lm-eval for the same texts and windows. A line that is
wrong is named and left out, and the exit status is 1. A first line that is not
JSON ends the run.)",
    .examples = R"(# Perplexity of a text
gpt-eval -m demo --input-format text < book.txt
# HellaSwag, as it is published
gpt-eval -m ./Qwen2.5-0.5B --task hellaswag < hellaswag_val.jsonl
# What a quantised form loses
gpt-eval -m ./Qwen2.5-0.5B-q4.gguf --against ./Qwen2.5-0.5B < texts.jsonl)",
    .is_measured = true,
};

}  // namespace

int main(int argc, char** argv) { return tool_main<gpt::EvalToolOptions>(kHelp, argc, argv, run); }
