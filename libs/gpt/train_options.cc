#include "gpt/train_options.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

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

}  // namespace

void ShapeOptions::flags(Flags& flags) {
    flags.add(
        "size", size,
        "NAME shape of a new model: 124M, 355M, 774M, 1558M, gpt3-125M, gpt3-350M, gpt3-760M, "
        "gpt3-1.3B, gpt3-2.7B, gpt3-6.7B");
    flags.add("layers", layers, "N of a new model of any shape", 0, 1024);
    flags.add("width", width, "C channels of a new model of any shape", 0, 1 << 16);
    flags.add("heads", heads, "H attention heads, which divide the width", 0, 1024);
    flags.add("context", context,
              "N positions of a new model; 0: the size's, or the sequence length", 0, 1 << 20);
    flags.add("vocab-size", vocab_size, "N tokens of a new model without --tokenizer", 0, 1 << 24);
}

Config ShapeOptions::config(int64_t n_vocab, int64_t length) const {
    Config config;
    config.n_vocab = n_vocab;
    if (!size.empty()) {
        require_usage(layers == 0 && width == 0 && heads == 0,
                      "--size and --layers, --width, --heads exclude each other");
        const auto* const found = std::find_if(std::begin(kSizes), std::end(kSizes),
                                               [&](const Size& s) { return size == s.name; });
        std::string names;
        for (const Size& s : kSizes) names += concat(names.empty() ? "" : ", ", s.name);
        require_usage(found != std::end(kSizes), "--size: expected one of ", names, "; found '",
                      size, "'");
        config.n_layer = found->layers;
        config.n_embd = found->width;
        config.n_head = found->heads;
        config.n_positions = context > 0 ? context : found->context;
    } else {
        require_usage(layers > 0 && width > 0 && heads > 0,
                      "a new model needs --size, or --layers, --width and --heads together");
        require_usage(width % heads == 0, "--heads: expected a divisor of --width ", width,
                      ", found ", heads);
        config.n_layer = layers;
        config.n_embd = width;
        config.n_head = heads;
        config.n_positions = context > 0 ? context : length;
        require_usage(config.n_positions > 0, "expected --context or --length");
    }
    config.n_inner = 4 * config.n_embd;
    return config;
}

void OptimizerOptions::flags(Flags& flags) {
    flags.add("optimizer", optimizer, {"adamw", "muon"},
              "NAME muon: for the matrices of the blocks, and AdamW for the rest");
    flags.add("muon-momentum", muon_momentum, "B Muon's momentum", 0, 0.99999);
    flags.add("rate", rate, "R largest learning rate", 0, 10);
    flags.add("schedule", schedule, {"cosine", "linear", "constant", "wsd"},
              "S what the learning rate does after its rise; wsd falls over the last fifth");
    flags.add("warmup", warmup, "N steps over which the learning rate rises", 0, 1 << 30);
    flags.add("final-fraction", final_fraction,
              "F of the learning rate at the end of cosine, linear and wsd", 0, 1);
    flags.add("beta1", beta1, "B AdamW's first moment", 0, 0.99999);
    flags.add("beta2", beta2, "B AdamW's second moment", 0, 0.99999);
    flags.add("epsilon", epsilon, "E AdamW's", 1e-12, 1);
    flags.add("weight-decay", weight_decay, "D of matrices; norms and biases do not decay", 0, 10);
    flags.add("clip", clip, "N largest norm of a step's gradients; 0: any", 0, 1e9);
    flags.add("skip-outliers", skip_outliers,
              "Z standard deviations above the last 128 steps' from which a step's loss or norm "
              "leaves the parameters as they are; 0: any",
              0, 1e9);
}

double OptimizerOptions::rate_of(int64_t step, int64_t steps) const {
    if (step <= warmup) return rate * static_cast<double>(step) / static_cast<double>(warmup);
    const auto past = [&](int64_t begin) {  // how much of [begin, steps] is behind
        return static_cast<double>(step - begin) /
               static_cast<double>(std::max<int64_t>(steps - begin, 1));
    };
    const double low = rate * final_fraction;
    if (schedule == "cosine") return low + (rate - low) * 0.5 * (1 + std::cos(M_PI * past(warmup)));
    if (schedule == "linear") return low + (rate - low) * (1 - past(warmup));
    const int64_t falls = std::max(warmup, steps - steps / 5);
    if (schedule == "constant" || step <= falls) return rate;
    return low + (rate - low) * (1 - std::sqrt(past(falls)));
}

void TrainOptions::flags(Flags& flags) {
    flags.add_repeated("train", train, "FILE tokens to train on; may be given several times");
    flags.add_repeated("val", val, "FILE tokens held out; may be given several times");
    flags.add_name(
        "out", out,
        "DIR of the run: its model and checkpoints; where it holds one, the run goes on");
    flags.add_name(
        "model", model,
        "NAME|DIR|FILE to start from, a Hugging Face GPT-2 directory, llm.c's FILE.bin or "
        "FILE.gguf; without it a new model");
    flags.add_name(
        "tokenizer", tokenizer,
        "DIR whose tokenizer a new model takes, or one from FILE.bin or FILE.gguf, as gpt-tokenize "
        "--train-vocab writes it");
    shape.flags(flags);
    flags.add("steps", steps, "N of the whole run", 0, 1 << 30);
    flags.add(
        "batch", batch,
        "N sequences computed side by side, by each process (each group of --tensor-parallel)", 1,
        1 << 20);
    flags.add("accumulate", accumulate, "N such batches a step", 1, 1 << 20);
    flags.add("length", length, "N tokens of a sequence; 0: the model's context", 0, 1 << 20);
    flags.add_switch("mask-documents", mask_documents,
                     "a token sees none of the documents before its own");
    optimizer.flags(flags);
    flags.add(
        "recompute", recompute, {"none", "gelu", "norms"},
        "WHAT is computed again in the backward pass to save memory, each with the one before");
    flags.add("seed", seed, "N of the new model and the order of the data", 0, INT64_MAX);
    flags.add("val-every", val_every, "N steps from one validation to the next; 0: none", 0,
              1 << 30);
    flags.add("val-tokens", val_tokens, "N tokens of a validation, at most", 1, INT64_MAX);
    flags.add("save-every", save_every, "N steps from one checkpoint to the next; the end has one",
              1, 1 << 30);
    flags.add("keep", keep, "N newest checkpoints", 1, 1 << 20);
    flags.add("sample-every", sample_every,
              "N steps from one text in OUT/samples.txt to the next; 0: none", 0, 1 << 30);
    flags.add("sample-tokens", sample_tokens, "N tokens of such a text, at most", 1, 1 << 20);
    flags.add("sample-prompt", sample_prompt, "TEXT that it goes on from; without it a line's end");
    flags.add_name("hellaswag", hellaswag,
                   "FILE of questions in llm.c's format, answered with every validation");
    flags.add_name("tensorboard", tensorboard, "DIR for an event file that TensorBoard shows");
    flags.add_name("export-llmc", export_llmc,
                   "FILE that the whole run's model is also written to, in llm.c's format");
    flags.add_name("export-model", export_model,
                   "DIR for the whole run's model alone, as transformers and gpt-generate read it");
    flags.add("export-dtype", export_dtype, {"f32", "f16", "bf16"},
              "TYPE of the values of --export-model and --export-llmc, which knows no f16");
    flags.add("gpus", gpus,
              "N GPUs of this machine that train one model, each by a process that is started here",
              1, 64);
    flags.add(
        "tensor-parallel", tensor_parallel,
        "N processes that share each layer of the model and compute the same sequences, for a "
        "model that one GPU does not hold; N divides the processes, the heads and the MLP's "
        "width; with --optimizer adamw alone",
        1, 64);
    compute.flags(
        flags, {"auto", "f32", "bf16"},
        "TYPE of matrices and activations; auto: bf16 on a GPU, f32 on the CPU, where bf16 takes "
        "less memory and more time; parameters and gradients are f32");
}

void TrainOptions::check() const {
    require_usage(!train.empty(), "--train: expected a token file, found none");
    require_usage(!out.empty(), "--out: expected a directory, found none");
    require_usage(steps > 0, "--steps: expected 1 or more, found none");
    require_usage(model.empty() || (!shape.given() && (tokenizer.empty() || from_file())),
                  "--model has its own shape and, as a directory, its own tokenizer: leave out "
                  "--size, --layers and --tokenizer");
    require_usage(gpus == 1 || compute.device == "auto" || compute.device == "cuda",
                  "--gpus: expected --device cuda or none, found ", compute.device);
    require_usage(gpus == 1 || gpus % tensor_parallel == 0,
                  "--tensor-parallel: expected a divisor of --gpus ", gpus, ", found ",
                  tensor_parallel);
    require_usage(tensor_parallel == 1 || optimizer.optimizer != "muon",
                  "--tensor-parallel: expected --optimizer adamw, found muon, which updates whole "
                  "matrices");
    require_usage(export_dtype != "f16" || export_llmc.empty(),
                  "--export-dtype: expected f32 or bf16 with --export-llmc, found f16");
    require_usage(optimizer.warmup <= steps, "--warmup: expected at most --steps ", steps,
                  ", found ", optimizer.warmup);
}

Recompute TrainOptions::recompute_level() const {
    return recompute == "none"   ? Recompute::none
           : recompute == "gelu" ? Recompute::gelu
                                 : Recompute::norms;
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
    text << ", steps " << steps << ", " << sequences_a_step() << " sequences a step, length "
         << length << ", seed " << seed << ", rate " << o.rate << " " << o.schedule << " "
         << o.final_fraction << " warmup " << o.warmup << ", betas " << o.beta1 << " " << o.beta2
         << ", epsilon " << o.epsilon << ", decay " << o.weight_decay << ", clip " << o.clip
         << ", outliers " << o.skip_outliers << ", documents " << (mask_documents ? "" : "not ")
         << "masked, " << name_of(matrices) << ", from " << (model.empty() ? "no model" : model);
    return text.str();
}

std::pair<std::string, std::string> differences(const std::string& a, const std::string& b) {
    const auto parts_of = [](const std::string& list) {
        std::vector<std::string> parts;
        for (size_t at = 0; at <= list.size();) {
            const size_t end = std::min(list.find(", ", at), list.size());
            parts.push_back(list.substr(at, end - at));
            at = end + 2;
        }
        return parts;
    };
    const std::vector<std::string> as = parts_of(a), bs = parts_of(b);
    if (as.size() != bs.size()) return {a, b};
    std::pair<std::string, std::string> apart;
    for (size_t i = 0; i < as.size(); ++i) {
        if (as[i] == bs[i]) continue;
        apart.first += concat(apart.first.empty() ? "" : ", ", as[i]);
        apart.second += concat(apart.second.empty() ? "" : ", ", bs[i]);
    }
    return apart;
}

}  // namespace hark::gpt
