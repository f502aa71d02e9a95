#include "gpt/train/train_memory.h"

#include <algorithm>
#include <cstdio>

#include "gpt/train/parameters.h"
#include "gpt/train/training.h"
#include "gpt/train/zero_buckets.h"

namespace hark::gpt {
namespace {

constexpr int64_t kF32 = sizeof(float);

// Bytes of the activations at the peak of a batch's backward pass. The names are training.cc's.
int64_t activation_bytes(const Context& ctx, const DecoderConfig& config,
                         const TrainOptions& options, int64_t ranks, int64_t columns,
                         int64_t element) {
    const int64_t rows = options.batch * options.length, c = config.n_embd;
    const int64_t inner = config.n_inner / ranks, attn_width = config.q_width() / ranks;
    const int64_t qkv = attn_width + 2 * config.kv_width() / ranks;
    const int64_t hidden = config.gated_mlp ? 2 * inner : inner;
    const bool blocks = options.recompute == "blocks";
    const bool keep_act = blocks || options.recompute == "none";
    const bool keep_norms = options.recompute != "norms";
    int64_t shared = 3 * c;  // the first x, normed, d_normed
    if (!keep_act) shared += inner;
    if (!keep_norms) shared += 2 * c;
    int64_t block = qkv + attn_width + c + hidden;  // qkv, attn_out; resid_mid; hidden
    if (config.qk_norm != QkNorm::none) block += attn_width + config.kv_width() / ranks;
    if (keep_act) block += inner;
    if (keep_norms) block += 2 * c;
    const int64_t lse = rows * config.n_head / ranks * kF32;
    const int64_t of_block = rows * block * element + lse;
    const int64_t kept = rows * (shared + config.n_layer * c) * element +  // each block's y
                         (blocks ? 0 : config.n_layer * of_block);
    const int64_t at_once = logits_rows(ctx, columns, rows);
    int64_t head = at_once * columns * element;
    int64_t backward =
        rows * (2 * c + hidden + (config.gated_mlp ? inner : 0) + qkv + attn_width) * element;
    if (ctx.on_cuda()) {  // self_attention_backward(): two numbers per row and head; sums in f32
        backward += 2 * lse;
        if (element == 2 && config.head_dim % 8 == 0 && config.head_dim <= 128)
            backward += rows * config.n_head / ranks * (config.head_dim > 64 ? 128 : 64) * kF32;
    } else if (element == 2) {  // copies in f32 for linear_backward (cast_to_f32.h)
        head += at_once * (columns + 2 * c) * kF32;
        // gated_activation_backward() has more copies than linear_backward().
        backward += rows * (config.gated_mlp ? 5 * inner : 3 * inner + c) * kF32;
    }
    if (blocks) backward += of_block;
    return kept + std::max(head, backward);
}

std::string grouped(int64_t number) {
    std::string text = std::to_string(number);
    for (size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
    return text;
}

std::string size_text(int64_t bytes) {
    char text[32];
    const double mb = static_cast<double>(bytes) / 1e6;
    std::snprintf(text, sizeof text, mb < 1000 ? "%.1f MB" : "%.2f GB", mb < 1000 ? mb : mb / 1000);
    return text;
}

}  // namespace

TrainMemory train_memory(const Context& ctx, ParallelMesh& mesh, const DecoderConfig& config,
                         const TrainOptions& options, Dtype matrices) {
    const int64_t ranks = mesh.tensor().size();
    const ParameterLayout layout(config, ranks);
    const int64_t padded = padded_size(layout, mesh.data());
    const bool sharded = !mesh.all().alone() && options.optimizer.optimizer == "adamw";
    const int64_t element = matrices == Dtype::f32 ? kF32 : 2;
    const int64_t batch = options.batch * options.length * 6 * kF32;  // losses, 5 of ids
    return {.weights = padded * kF32 + (matrices == Dtype::f32 ? 0 : layout.decayed() * element),
            .gradients = padded * kF32,
            .moments = 2 * kF32 * (sharded ? padded / mesh.data().size() : layout.size()),
            .activations = batch + activation_bytes(ctx, config, options, ranks,
                                                    layout.padded_vocab(), element)};
}

std::string describe_run(const DecoderConfig& config, const TrainOptions& options, Dtype matrices,
                         const TrainMemory& memory, uint64_t epoch_tokens) {
    const ParameterLayout layout(config);
    int64_t parameters = 0;
    for (const ParameterLayout::Entry& entry : layout.entries()) parameters += entry.stored_size();
    const int64_t step = options.sequences_per_step() * options.length, run = step * options.steps;
    char epochs[32];
    std::snprintf(epochs, sizeof epochs, "%.2f",
                  static_cast<double>(run) / static_cast<double>(epoch_tokens));
    return concat(
        "shape        ", config.n_layer, " layers, width ", config.n_embd, ", ", config.n_head,
        " heads, context ", config.n_positions, ", vocabulary ", config.n_vocab, "\nparameters   ",
        grouped(parameters), "\nweights      ", size_text(memory.weights),
        matrices == Dtype::f32 ? " (f32)" : " (f32, and the matrices in bf16)", "\ngradients    ",
        size_text(memory.gradients), "\nmoments      ", size_text(memory.moments),
        "\nactivations  ", size_text(memory.activations), "\ntotal        ",
        size_text(memory.total()),
        options.ranks > 1 || options.tensor_parallel > 1 ? " per process" : "", "\nper step     ",
        grouped(step), " tokens: ", options.sequences_per_step(), " sequences of ", options.length,
        "\nall steps    ", grouped(run), " tokens in ", grouped(options.steps), " steps, ", epochs,
        " epochs of ", grouped(static_cast<int64_t>(epoch_tokens)), "\n");
}

}  // namespace hark::gpt
