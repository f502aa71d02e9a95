#include "gpt/train/train_options.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "core/cli/suggest.h"
#include "gpt/train/synthetic_tokens.h"
#include "kernels/comm/processes.h"

namespace hark::gpt {
namespace {

struct Size {
    const char* name;
    int64_t layers, width, heads, context;
};

constexpr Size kSizes[] = {
    {"124M", 12, 768, 12, 1024},       {"355M", 24, 1024, 16, 1024},
    {"774M", 36, 1280, 20, 1024},      {"1558M", 48, 1600, 25, 1024},
    {"gpt3-125M", 12, 768, 12, 2048},  {"gpt3-350M", 24, 1024, 16, 2048},
    {"gpt3-760M", 24, 1536, 16, 2048}, {"gpt3-1.3B", 24, 2048, 16, 2048},
    {"gpt3-2.7B", 32, 2560, 32, 2048}, {"gpt3-6.7B", 32, 4096, 32, 2048},
};

const Size* size_named(const std::string& name) {
    const auto* const found = std::find_if(std::begin(kSizes), std::end(kSizes),
                                           [&](const Size& size) { return name == size.name; });
    return found == std::end(kSizes) ? nullptr : found;
}

}  // namespace

void ShapeOptions::flags(Flags& flags) {
    flags.add("size", size, "NAME shape of a new model: 124M, 355M, 774M, 1558M ...")
        .essential()
        .details(
            "GPT-2's 124M, 355M, 774M and 1558M, and gpt3-125M, gpt3-350M, gpt3-760M, "
            "gpt3-1.3B, gpt3-2.7B and gpt3-6.7B.");
    flags.add("layers", layers, "N layers of a new model without --size", 0, 1024);
    flags.add("width", width, "C channels of a new model without --size", 0, 1 << 16);
    flags.add("heads", heads, "H attention heads, a divisor of the width", 0, 1024);
    flags.add("context", context, "N positions of a new model", 0, 1 << 20)
        .details("0: those of the size, or the sequence length.");
    flags.add("vocab-size", vocab_size, "N tokens of a new model without --tokenizer", 0, 1 << 24)
        .own_variable();
}

void ShapeOptions::check(int64_t length) const {
    std::vector<std::string> names;
    std::string list;
    for (const Size& known : kSizes) {
        names.emplace_back(known.name);
        list += concat(list.empty() ? "" : ", ", known.name);
    }
    require_usage(size.empty() || size_named(size) != nullptr, "--size: expected one of ", list,
                  ", got '", size, "'", did_you_mean(size, names));
    require_usage(size.empty() || (layers == 0 && width == 0 && heads == 0),
                  "--size contradicts --layers, --width and --heads; leave one out");
    require_usage(heads == 0 || width % heads == 0, "--heads: expected a divisor of --width ",
                  width, ", got ", heads);
    const int64_t most = context > 0 || size.empty() ? context : size_named(size)->context;
    require_usage(most == 0 || length <= most, "--sequence-length: expected at most the model's ",
                  "context of ", most, ", got ", length);
}

DecoderConfig ShapeOptions::config(int64_t n_vocab, int64_t length) const {
    DecoderConfig config;
    config.n_vocab = n_vocab;
    if (const Size* const known = size_named(size)) {
        config.n_layer = known->layers;
        config.n_embd = known->width;
        config.n_head = known->heads;
        config.n_positions = context > 0 ? context : known->context;
    } else {
        require(layers > 0 && width > 0 && heads > 0,
                "a new model needs --size, or --layers, --width and --heads");
        config.n_layer = layers;
        config.n_embd = width;
        config.n_head = heads;
        config.n_positions = context > 0 ? context : length;
        require(config.n_positions > 0,
                "a new model without --size needs --context or --sequence-length");
    }
    config.n_inner = 4 * config.n_embd;
    complete_gpt2(config);
    return config;
}

void OptimizerOptions::flags(Flags& flags) {
    flags.section("Optimizer");
    flags.add("learning-rate", learning_rate, "R largest learning rate", 0, 10).essential();
    flags
        .add("schedule", schedule, {"cosine", "linear", "constant", "wsd"},
             "NAME schedule of the learning rate")
        .details(
            "Of the learning rate after its warmup. wsd is constant, then falls over the last "
            "fifth of the steps.");
    flags.add("warmup", warmup, "N steps over which the learning rate rises", 0, 1 << 30);
    flags.add("final-fraction", final_fraction, "F of the learning rate in the last step", 0, 1)
        .details("For cosine, linear and wsd.");
    flags.add("optimizer", optimizer, {"adamw", "muon"}, "NAME optimizer")
        .details("muon is for the matrices of the blocks; all other parameters have AdamW.");
    flags.add("muon-momentum", muon_momentum, "B momentum of Muon", 0, 0.99999);
    flags.add("beta1", beta1, "B decay of AdamW's first moment", 0, 0.99999);
    flags.add("beta2", beta2, "B decay of AdamW's second moment", 0, 0.99999);
    flags.add("epsilon", epsilon, "E of AdamW", 1e-12, 1);
    flags.add("weight-decay", weight_decay, "D of matrices; norms and biases have none", 0, 10);
    flags.add("grad-clip", clip, "N largest norm of a step's gradients; 0: no limit", 0, 1e9)
        .own_variable();
    flags
        .add("skip-outliers", skip_outliers, "Z skip steps Z deviations above the mean; 0: none", 0,
             1e9)
        .details(
            "Of the loss or the gradients' norm, over the last 128 steps. A skipped step "
            "leaves the parameters as they are.");
}

double OptimizerOptions::rate_of(int64_t step, int64_t steps) const {
    if (step <= warmup)
        return learning_rate * static_cast<double>(step) / static_cast<double>(warmup);
    const auto past = [&](int64_t begin) {  // the part of [begin, steps] that is done
        return static_cast<double>(step - begin) /
               static_cast<double>(std::max<int64_t>(steps - begin, 1));
    };
    const double rate = learning_rate, low = rate * final_fraction;
    if (schedule == "cosine") return low + (rate - low) * 0.5 * (1 + std::cos(M_PI * past(warmup)));
    if (schedule == "linear") return low + (rate - low) * (1 - past(warmup));
    const int64_t falls = std::max(warmup, steps - steps / 5);
    if (schedule == "constant" || step <= falls) return rate;
    return low + (rate - low) * (1 - std::sqrt(past(falls)));
}

void TrainOptions::flags(Flags& flags) {
    flags.reject_arguments([](const std::string& arguments, const std::string&) {
        return concat("takes no arguments (got ", arguments, "); give token files with --train");
    });
    flags.section("Data");
    flags.add_repeated("train", train, "FILE token file to train on, or `synthetic`")
        .essential()
        .completes(Completes::file)
        .suggests({kSynthetic})
        .details(
            "May be given several times. `synthetic` makes tokens from --seed, without a "
            "file: to test a machine. Without --tokenizer it has 50,257 tokens.");
    flags.add_repeated("val", val, "FILE token file for validation, or `synthetic`")
        .essential()
        .completes(Completes::file)
        .suggests({kSynthetic})
        .details("May be given several times.");
    flags.add("batch-size", batch, "N sequences computed at once by each process", 1, 1 << 20)
        .essential()
        .own_variable()
        .details("With --tensor-parallel by each group.");
    flags.add("accumulate", accumulate, "N batches per step", 1, 1 << 20);
    flags.add("sequence-length", length, "N tokens per sequence; 0: the context", 0, 1 << 20);
    flags.add_switch("mask-documents", mask_documents, "attend only to the token's own document");
    flags.section("Model");
    shape.flags(flags);
    flags.add_name("tokenizer", tokenizer, "PATH tokenizer of a new model")
        .essential()
        .own_variable()
        .completes(Completes::directory)
        .details(
            "As gpt-tokenize --train-tokenizer writes it. Also for a model from FILE.bin or "
            "FILE.gguf.");
    flags.add_name("model,m", model, "MODEL model to start from, instead of a new one")
        .essential()
        .own_variable()
        .completes(Completes::model)
        .details("A name, a Hugging Face folder, llm.c's FILE.bin or FILE.gguf.");
    flags.section("Run");
    flags
        .add_name("output-dir,o", output_dir,
                  "DIR folder of the run; its last checkpoint is resumed")
        .essential()
        .completes(Completes::directory);
    flags.add("steps", steps, "N steps of the whole run", 0, 1 << 30).essential();
    flags.add_switch("dry-run", dry_run, "print shape, memory and tokens; train nothing")
        .essential()
        .details(
            "Nothing is written. The memory is that of the steps, without checkpoints and "
            "samples.");
    flags.add("save-every", save_every, "N steps between checkpoints; the last step has one", 1,
              1 << 30);
    flags.add("keep", keep, "N number of newest checkpoints to keep", 1, 1 << 20);
    flags.add("seed", seed, "N seed of the new model and of the data's order", 0, INT64_MAX);
    optimizer.flags(flags);
    add_report_flags(flags);
    compute.flags(flags, {"auto", "f32", "bf16"}, "TYPE matrices and activations",
                  "auto: bf16 on a GPU, f32 on the CPU, where bf16 takes less memory and more "
                  "time. Parameters and gradients are f32.");
    flags
        .add("recompute", recompute, {"none", "gelu", "norms", "blocks"},
             "WHAT to compute again, not keep")
        .details(
            "In the backward pass, to save memory: GELU's output; norms: and the outputs of "
            "the norms; blocks: all of a layer but its input, by a second forward pass.");
    flags.section("Processes");
    flags.add("gpus", gpus, "N GPUs of this machine, one process each", 1, 64).essential();
    flags.add("tensor-parallel", tensor_parallel, "N processes that share each layer", 1, 64)
        .details(
            "For a model that does not fit on one GPU. N divides the number of processes, "
            "the heads and the MLP's width. Needs --optimizer adamw.");
    rendezvous.flags(flags);
}

// Validation, samples, and the run's outputs other than checkpoints.
void TrainOptions::add_report_flags(Flags& flags) {
    flags.section("Reports");
    flags.add("val-every", val_every, "N steps between validations; 0: none", 0, 1 << 30)
        .own_variable();
    flags.add("val-tokens", val_tokens, "N most tokens per validation", 1, INT64_MAX);
    flags.add("sample-every", sample_every, "N steps between texts in DIR/samples.txt; 0: none", 0,
              1 << 30);
    flags.add("sample-tokens", sample_tokens, "N most tokens per text", 1, 1 << 20);
    flags.add("sample-prompt", sample_prompt, "TEXT that each text continues [a line end]");
    flags.add_name("hellaswag", hellaswag, "FILE questions, answered with each validation")
        .completes(Completes::file)
        .details("In llm.c's format.");
    flags.add_name("tensorboard", tensorboard, "DIR for an event file of TensorBoard")
        .completes(Completes::directory);
    flags.add_name("export-model", export_model, "DIR for the final model alone")
        .completes(Completes::directory)
        .details("A Hugging Face folder, for transformers and gpt-generate.");
    flags.add_name("export-llmc", export_llmc, "FILE for the final model in llm.c's format")
        .completes(Completes::file);
    flags.add("export-type", export_type, {"f32", "f16", "bf16"}, "TYPE of the exported values")
        .details("llm.c's format has no f16.");
}

bool TrainOptions::is_synthetic() const {
    return std::find(train.begin(), train.end(), kSynthetic) != train.end();
}

void TrainOptions::check() const {
    require_usage(!train.empty(), "--train FILE is required, or --train synthetic");
    require_usage(dry_run || !output_dir.empty(), "--output-dir DIR is required");
    require_usage(steps > 0, "--steps N is required");
    shape.check(length);
    require_usage(model.empty() || !shape.given(),
                  "--model has its own shape: --size, --layers and the like do not apply");
    require_usage(model.empty() || tokenizer.empty() || from_file(),
                  "--tokenizer: a --model that is no single file has its own tokenizer");
    check_gpus(gpus, compute);
    rendezvous.check();
    require_usage(gpus == 1 || !rendezvous.given(),
                  "--gpus starts processes here, --rendezvous joins those that were started: leave "
                  "one out");
    require_usage(gpus == 1 || gpus % tensor_parallel == 0,
                  "--tensor-parallel: expected a divisor of --gpus ", gpus, ", got ",
                  tensor_parallel);
    require_usage(tensor_parallel == 1 || optimizer.optimizer != "muon",
                  "--tensor-parallel needs --optimizer adamw: Muon updates whole matrices");
    require_usage(export_type != "f16" || export_llmc.empty(),
                  "--export-type: --export-llmc takes f32 or bf16 (got f16)");
    require_usage(optimizer.warmup <= steps, "--warmup: expected at most --steps ", steps, ", got ",
                  optimizer.warmup);
}

Recompute TrainOptions::recompute_level() const {
    return recompute == "none"    ? Recompute::none
           : recompute == "gelu"  ? Recompute::gelu
           : recompute == "norms" ? Recompute::norms
                                  : Recompute::blocks;
}

Dtype TrainOptions::matrices(Device device) const {
    const bool half =
        compute.dtype == "bf16" || (compute.dtype == "auto" && device == Device::cuda);
    return half ? Dtype::bf16 : Dtype::f32;
}

std::string TrainOptions::schedule_of_ranks() const {
    return concat("batch ", batch, " x ", accumulate, ", saved every ", save_every,
                  ", validated every ", val_every, " on ", val_tokens, " tokens of ", val.size(),
                  " files", hellaswag.empty() ? "" : ", with questions", ", sampled every ",
                  sample_every, export_llmc.empty() && export_model.empty() ? "" : ", exported");
}

std::string TrainOptions::identity(Dtype matrices) const {
    const OptimizerOptions& o = optimizer;
    std::ostringstream text;
    text.precision(std::numeric_limits<double>::max_digits10 - 2);  // 0.1 stays 0.1
    text << o.optimizer;
    if (o.optimizer == "muon") text << " " << o.muon_momentum;
    text << ", steps " << steps << ", " << sequences_per_step() << " sequences a step, length "
         << length << ", seed " << seed << ", rate " << o.learning_rate << " " << o.schedule << " "
         << o.final_fraction << " warmup " << o.warmup << ", betas " << o.beta1 << " " << o.beta2
         << ", epsilon " << o.epsilon << ", decay " << o.weight_decay << ", clip " << o.clip
         << ", outliers " << o.skip_outliers << ", documents " << (mask_documents ? "" : "not ")
         << "masked, " << name_of(matrices) << ", from " << (model.empty() ? "no model" : model);
    return text.str();
}

}  // namespace hark::gpt
