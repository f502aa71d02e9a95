// Loads GPT-2's weights under Hugging Face's tensor names. Buffers that are not weights, such as
// the causal mask h.N.attn.bias, are not read.
#include "core/error.h"
#include "gpt/decoder/model.h"
#include "gpt/families/model_file.h"

namespace hark::gpt {
namespace {

// Reads layers by the checkpoint's own names.
class LayerReader {
  public:
    LayerReader(TensorSource& source, Weights& weights, const Config& config)
        : source_(source), weights_(weights), config_(config) {}

    LayerNorm norm(const std::string& name) {
        return {vector(name + ".weight", config_.n_embd), vector(name + ".bias", config_.n_embd),
                config_.layer_norm_epsilon};
    }
    // transformers' Conv1D: stored (in, out); GGUF and llm.c store (out, in).
    Linear conv1d(const std::string& name, int64_t in, int64_t out) {
        const std::string weight = name + ".weight";
        return {source_.stores_out_in() ? weights_.matrix({source_.take(weight, {out, in})})
                                        : weights_.transposed({source_.take(weight, {in, out})}),
                vector(name + ".bias", out)};
    }
    Block block(const std::string& name) {
        const int64_t c = config_.n_embd, inner = config_.n_inner;
        return {norm(name + ".ln_1"),
                {conv1d(name + ".attn.c_attn", c, 3 * c), conv1d(name + ".attn.c_proj", c, c)},
                norm(name + ".ln_2"),
                {conv1d(name + ".mlp.c_fc", c, inner), conv1d(name + ".mlp.c_proj", inner, c),
                 config_.activation}};
    }

  private:
    Tensor vector(const std::string& name, int64_t n) {
        return weights_.vector({source_.take(name, {n})});
    }

    TensorSource& source_;
    Weights& weights_;
    const Config& config_;
};

Model read_tensors(TensorSource& source, const Config& config, Precision precision,
                   const MemorySource& memory, int threads) {
    Model model{.config = config,
                .precision = precision,
                .weights = Weights(precision.weights, memory, threads)};
    LayerReader layers(source, model.weights, config);
    const int64_t c = config.n_embd;
    model.wte = model.weights.matrix({source.take("wte.weight", {config.n_vocab, c})});
    model.wpe = model.weights.table(source.take("wpe.weight", {config.n_positions, c}));
    for (int64_t i = 0; i < config.n_layer; ++i) {
        model.h.push_back(layers.block(concat("h.", i)));
        source.forget_taken();
    }
    model.ln_f = layers.norm("ln_f");
    // As in transformers, a tied head is the token table even if the file has lm_head.weight.
    model.lm_head =
        config.tie_word_embeddings
            ? model.wte
            : model.weights.matrix({source.take("lm_head.weight", {config.n_vocab, c})});
    source.forget_taken();
    return model;
}

}  // namespace

Model read_model(TensorSource& source, const Config& config, Precision precision,
                 const MemorySource& memory, int threads) {
    return naming(source, [&] { return read_tensors(source, config, precision, memory, threads); });
}

Model load_model(const std::filesystem::path& path, Precision precision, const MemorySource& memory,
                 int threads) {
    const std::unique_ptr<ModelFile> file = open_model(path);
    return read_model(file->tensors(), file->config(), precision, memory, threads);
}

}  // namespace hark::gpt
