// hark-advise: predicts what a model takes on this machine or on a GPU, and what would make it
// faster.
//
//   AdviseOptions -> Shape, Machine -> Analysis -> Report -> text or JSON
#include <iostream>
#include <memory>

#include "core/files/files.h"
#include "hub/model_handle.h"
#include "kernels/runtime/backend.h"
#include "operations/advice/advise_options.h"

namespace {

using namespace hark;

void run(const advice::AdviseOptions& options, Console& console) {
    options.check();
    for (const std::string& input : options.inputs) OpenFile{input};  // a wrong one fails first
    const advice::Shape shape = advice::find_shape(options.model);
    models::ModelHandle model;
    if (options.run) model = models::open_any_model(models::find_any_model(options.model));
    const advice::Prices prices = options.price_list();
    const advice::Load load = options.load_of(shape);
    ComputeOptions compute;
    compute.device = options.device;
    compute.threads = options.threads;
    const std::unique_ptr<Context> ctx(options.gpu.empty() ? new Context(compute.context(console))
                                                           : nullptr);
    const advice::Machine machine = options.machine(ctx.get(), shape, prices);
    advice::Report report{shape, advice::analyse(machine, shape, load), options.audio_hours,
                          prices.source};
    if (options.compare) report.offers = advice::compare(shape, load, prices);
    if (options.run) report.proof = advice::prove(*ctx, model, report.analysis, options.inputs);
    std::cout << (options.format == "json" ? json_text(advice::as_json(report), 2) + "\n"
                                           : advice::as_text(report));
}

constexpr ToolHelp kHelp = {
    .name = "hark-advise",
    .summary = "Predicts a model's speed, memory and cost on a machine, and how to be faster.",
    .description =
        R"(The report has what fits into memory, the speed by batch and by type and what bounds
it, and at most three pieces of advice with their gain. Predictions are made of the
model's sizes, the machine's limits and the shares of them that hark's kernels have
reached; docs/advise.md has the formulas next to measured figures. * marks the
batch that the tools take without flags.)",
    .examples = R"(# this machine, measured
hark advise --model small
# a GPU that is not here, and what others cost
hark advise --model large-v3 --gpu h100 --compare
# is the advice right, and does the text stay the same?
hark advise --model small --device cpu --run --input talk.mp3)",
    .is_measured = true};

}  // namespace

int main(int argc, char** argv) { return tool_main<advice::AdviseOptions>(kHelp, argc, argv, run); }
