// gpt-train: token files -> a GPT-2 model, and a line of metrics per step on stdout.
#include <csignal>

#include "core/cli/ending_signal.h"
#include "gpt/train/train_run.h"
#include "kernels/comm/rendezvous/rendezvous.h"

using namespace hark;

namespace {

void run(const gpt::TrainOptions& options, Console& console) {
    options.check();
    std::signal(SIGPIPE, SIG_IGN);
    hold_ending_signals();
    std::function<std::unique_ptr<Transport>()> meet;
    if (options.rendezvous.given())
        meet = [&] {
            return rendezvous_transport(options.rendezvous,
                                        [&](const std::string& text) { console.warning(text); });
        };
    const auto train = [&](std::unique_ptr<Transport> links) {
        gpt::TrainRun(options, console, std::move(links))();
    };
    with_links(options.gpus, console, train, meet);
}

constexpr ToolHelp kHelp = {
    .name = "gpt-train",
    .summary = "Trains a GPT-2 model on token files, with a line per step on stdout.",
    .description =
        R"(A line has the step, loss, validation loss, learning rate, norm of the
gradients, milliseconds, tokens per second, the fraction of the speed of a large
product, and the share of right answers to --hellaswag.
--output-dir is a folder that transformers and gpt-generate --model read. If it
has a checkpoint, the run resumes there; with the same number of threads, or on
the same GPU, to the same bits. Ctrl-C, SIGTERM, SIGHUP and a closed pipe save a
checkpoint first. A GPU multiplies in bf16 and the CPU in float32, unless
--dtype says otherwise.
--model FOLDER trains a published model further: GPT-2, Llama, Qwen2 and others
(docs/training.md).
--gpus N trains on several GPUs of this machine; mpirun, srun and --rendezvous
make one run of processes on several machines, or on CPUs: docs/training.md.
Presets for --config are in presets/gpt-train, installed in
share/hark/presets/gpt-train.)",
    .examples = R"(# A small model, its flags in a file; after Ctrl-C the last line resumes it
printf '%s\n' layers=4 heads=4 width=128 sequence-length=64 steps=999 >a.conf
gpt-train --config a.conf --tokenizer tok --train a.bin -o run >>t
# Memory and tokens of a run, without a file
gpt-train --size 124M --train synthetic --steps 1000 --dry-run)",
    .shows_progress = true,
    .is_measured = true,
};

}  // namespace

int main(int argc, char** argv) { return tool_main<gpt::TrainOptions>(kHelp, argc, argv, run); }
