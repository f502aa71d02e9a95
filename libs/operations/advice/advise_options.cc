#include "operations/advice/advise_options.h"

#include <algorithm>

#include "core/cli/device_flag.h"
#include "core/cli/suggest.h"
#include "core/files/files.h"
#include "core/machine/cores.h"
#include "core/ranges.h"
#include "kernels/runtime/backend.h"
#include "operations/doctor/gpu.h"

namespace hark::advice {
namespace {

constexpr int64_t kMostTokens = int64_t{1} << 20;
constexpr int64_t kUsualTokens = 200;  // of an answer, as gpt-generate has it

// The name in gpus.def of the GPU that CUDA counts as `index`, if the driver tells it.
const KnownGpu* known_gpu(int index) {
    const doctor::DriverReading driver = doctor::read_driver();
    const auto i = static_cast<size_t>(index);
    return i < driver.gpus.size() ? find_gpu(driver.gpus[i].name) : nullptr;
}

}  // namespace

void AdviseOptions::flags(Flags& flags) {
    flags.reject_arguments([](const std::string& arguments, const std::string&) {
        return concat("takes no arguments (got ", arguments, "); give the model with --model");
    });
    flags.section("Model and machine");
    flags.add_name("model,m", model, "MODEL name or path of a model, or of its config.json")
        .completes(Completes::model)
        .own_variable()
        .essential()
        .details(
            "Of published models that are not installed (large-v3, gpt2, llama-3.1-8b) the shape "
            "is "
            "known.");
    flags.add_name("gpu", gpu, "NAME GPU to predict for instead of this machine")
        .suggests(gpu_names())
        .essential()
        .details(
            "Its figures are shares of its data sheet; a wrong name lists those that are known. "
            "--device and --threads, which are this machine's, then have no effect.");
    add_device(flags, device).essential().details("auto measures the first GPU, or else the CPU.");
    flags.add("threads,t", threads, "N CPU threads; 0: all cores", 0, 4096)
        .details(kThreadsDetails);
    flags.section("Work and costs");
    flags.add("audio-hours", audio_hours, "N hours of audio that costs are of", 1e-3, 1e9)
        .essential();
    flags
        .add("tokens-per-window", load.tokens_per_window,
             "N tokens of text in a window of 30 s of audio", 1, 224)
        .essential();
    flags
        .add("prompt-tokens", load.prompt_tokens, "N tokens of a language model's prompt", 1,
             kMostTokens)
        .essential();
    flags
        .add("max-tokens", load.max_tokens, "N most tokens per answer; 0: 200, or what fits", 0,
             kMostTokens)
        .essential();
    flags.add_switch("compare", compare, "every known GPU, the cheapest first").essential();
    flags.add_name("prices", prices, "FILE dollars per hour: lines such as 'h100 4.29'")
        .completes(Completes::file)
        .essential()
        .details(
            "What `hark lambda types` prints is taken too. Without it, prices are Lambda's of the "
            "day that the report names.");
    flags.section("Proof and report");
    flags.add_switch("run", run, "run the default and the advised way here")
        .essential()
        .details("Prints both speeds, and how many words change.");
    flags.add_repeated("input", inputs, "FILE recording for --run, or prompts, one per line")
        .completes(Completes::file)
        .essential()
        .details("May be given several times. Without it, those of the source tree's samples.");
    flags.add("format,f", format, {"text", "json"}, "FORMAT format of the report")
        .own_variable()
        .essential()
        .details("json: an object, described in docs/advise.md.");
}

void AdviseOptions::check() const {
    gpu_index(device);  // checks the flag
    require_usage(gpu.empty() || find_named_gpu(gpu) != nullptr, "--gpu: unknown GPU '", gpu, "'",
                  did_you_mean(gpu, gpu_names()), "; known are ", joined(gpu_names()));
    require_usage(!model.empty(), "--model is required");
    require_usage(gpu.empty() || !run, "--run: runs on this machine; leave out --gpu");
    require_usage(inputs.empty() || run, "--input: needs --run");
}

Load AdviseOptions::load_of(const Shape& shape) const {
    if (shape.is_whisper()) return load;
    const int64_t positions = shape.gpt().n_positions;
    const int64_t left = positions - load.prompt_tokens;
    require(left > 0 && left >= load.max_tokens, shape.name(), ": has ", positions,
            " positions, --prompt-tokens ", load.prompt_tokens, " and --max-tokens ",
            load.max_tokens, " are more; give fewer");
    Load whole = load;
    if (whole.max_tokens == 0) whole.max_tokens = std::min(kUsualTokens, left);
    return whole;
}

Prices AdviseOptions::price_list() const {
    return prices.empty() ? stored_prices() : parse_prices(read_file_or_pipe(prices), prices);
}

Machine AdviseOptions::machine(Context* ctx, const Shape& shape, const Prices& price_list) const {
    const KnownGpu* known = nullptr;
    Machine machine;
    if (!gpu.empty()) {
        known = find_named_gpu(gpu);
        machine = expected_machine(*known);
    } else if (ctx->on_cuda()) {
        machine = measured_gpu(*ctx);
        known = known_gpu(ctx->device_index);
        machine.cores = available_cores();
    } else {
        const Weights weights = shape.weights("auto", false);
        machine = measured_cpu(ctx->threads, weights.of(Group::layers) + weights.of(Group::head) +
                                                 weights.of(Group::experts));
    }
    if (!known) return machine;
    machine.name = known->name;
    machine.watts = known->watts;
    machine.dollars_per_hour = price_list.of(known->name);
    return machine;
}

}  // namespace hark::advice
