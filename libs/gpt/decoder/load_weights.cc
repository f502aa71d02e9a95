// Loads a model's weights by its family's list of tensors. Buffers that are not weights, such as
// GPT-2's causal mask h.N.attn.bias, are not read.
#include <algorithm>
#include <map>
#include <tuple>

#include "core/error.h"
#include "core/profile/profile.h"
#include "core/profile/run_counts.h"
#include "gpt/decoder/model.h"
#include "gpt/families/model_file.h"
#include "gpt/families/tensor_slices.h"

namespace hark::gpt {
namespace {

// Reads the parts of one layer, or those that are once in the model.
class PartReader {
  public:
    PartReader(TensorSource& source, WeightStore& weights, const DecoderConfig& config)
        : source_(source), weights_(weights), config_(config) {
        for (const TensorSpec& spec : tensor_specs(config))
            specs_[{spec.layer, spec.expert, spec.part}] = spec;
    }

    void of_layer(int64_t layer) { layer_ = layer; }
    bool has(Part part) const { return specs_.contains({layer_, expert_, part}); }

    Tensor vector(Part part, float offset = 0) { return weights_.vector({take(part)}, offset); }
    Tensor vector_or_none(Part part) { return has(part) ? vector(part) : Tensor(); }
    Tensor table(Part part) { return weights_.table(take(part)); }
    Matrix matrix(Part part) { return matrix(part, {take(part)}); }

    Norm norm(Part weight, Part bias) {
        if (!has(weight)) return {};
        return {vector(weight, config_.norm_offset), vector_or_none(bias), config_.norm_eps,
                config_.norm};
    }
    Norm norm(Part weight) { return norm(weight, Part::token_table); }  // without a bias
    Linear linear(Part weight, Part bias) { return {matrix(weight), vector_or_none(bias)}; }

    // Neighbouring parts of one type as one product if they need not be apart, else one each; parts
    // that are used in the file are apart. The file has them one by one, or in one
    // tensor `fused`.
    LinearGroup group(Part fused, Part fused_bias, const std::vector<std::pair<Part, Part>>& parts,
                      const std::vector<int64_t>& widths, bool apart = false) {
        if (has(fused)) return {linear(fused, fused_bias), widths};
        std::vector<Part> weights;
        for (const auto& [weight, bias] : parts) weights.push_back(weight);
        const std::vector<Tensor> tensors = take_all(weights);
        const bool in_place = !is_turned(source_, spec(weights[0])) &&
                              std::all_of(tensors.begin(), tensors.end(), [&](const Tensor& one) {
                                  return weights_.stays_in_place(one);
                              });
        LinearGroup linears;
        for (size_t begin = 0, end; begin < parts.size(); begin = end) {
            const auto stacks_with_first = [&](size_t i) {
                return !apart && !in_place && tensors[i].dtype == tensors[begin].dtype &&
                       has(parts[i].second) == has(parts[begin].second);
            };
            std::vector<Part> biases;
            for (end = begin; end < parts.size() && (end == begin || stacks_with_first(end)); ++end)
                if (has(parts[end].second)) biases.push_back(parts[end].second);
            const std::vector<Tensor> rows(&tensors[begin], &tensors[begin] + (end - begin));
            const Matrix all = matrix(weights[begin], rows);
            if (end - begin == 1)
                linears.add({all, vectors(biases)}, {all.values.dim(0)});
            else
                linears.add({all, vectors(biases)},
                            {&widths[begin], &widths[begin] + (end - begin)});
        }
        return linears;
    }

    // The router decides which experts compute a token: int8 or fp8 would change its choices.
    Linear router(WeightPrecision precision) {
        if (precision == WeightPrecision::int8 || precision == WeightPrecision::fp8)
            precision = WeightPrecision::quantized_or_f16;
        return {weights_.matrix({take(Part::router)}, precision),
                vector_or_none(Part::router_bias)};
    }
    // A matrix per expert of the layer; on a GPU they are parts of one.
    ExpertMatrices experts(Part weight, Part bias) {
        const int64_t count = config_.experts.count;
        const std::vector<Tensor> matrices = take_each(weight, count);
        expert_ = 0;
        const std::vector<Tensor> biases =
            has(bias) ? take_each(bias, count) : std::vector<Tensor>();
        expert_ = -1;
        ExpertMatrices all{weights_.matrices(matrices), {}};
        if (!biases.empty())
            all.bias =
                weights_.vector(biases).reshaped({std::ssize(biases), biases.front().dim(0)});
        if (weights_.copy_enough()) source_.release_tensors();
        return all;
    }

    // The absorbed products of keys and values, a matrix per head.
    void latent_heads(std::vector<Matrix>& key, std::vector<Matrix>& value) {
        const LatentConfig& of = config_.latent;
        if (of.by_head) {
            key = weights_.matrices(take_each(Part::k_b, config_.n_head));
            value = weights_.matrices(take_each(Part::v_b, config_.n_head));
            return;
        }
        const Tensor both = take(Part::kv_b);  // (H (N + V), L)
        std::vector<Tensor> keys, values;
        for (int64_t h = 0; h < config_.n_head; ++h) {
            const int64_t first = h * (of.plain + of.value), middle = first + of.plain;
            keys.push_back(both.slice(first, middle));
            values.push_back(both.slice(middle, middle + of.value));
        }
        key = weights_.transposed_matrices(keys);
        value = weights_.matrices(values);
    }

  private:
    const TensorSpec& spec(Part part) const { return specs_.at({layer_, expert_, part}); }
    Tensor take(Part part) { return gpt::take(source_, spec(part)); }
    // Those of n experts or heads.
    std::vector<Tensor> take_each(Part part, int64_t n) {
        std::vector<Tensor> tensors;
        for (expert_ = 0; expert_ < n; ++expert_) tensors.push_back(take(part));
        expert_ = -1;
        return tensors;
    }
    std::vector<Tensor> take_all(const std::vector<Part>& parts) {
        std::vector<Tensor> tensors;
        for (const Part part : parts) tensors.push_back(take(part));
        return tensors;
    }
    // The tensors, which are stored as that of `part` is, as one matrix.
    Matrix matrix(Part part, const std::vector<Tensor>& tensors) {
        return is_turned(source_, spec(part)) ? weights_.transposed(tensors)
                                              : weights_.matrix(tensors);
    }
    Tensor vectors(const std::vector<Part>& parts) {
        return parts.empty() ? Tensor() : weights_.vector(take_all(parts));
    }

    TensorSource& source_;
    WeightStore& weights_;
    const DecoderConfig& config_;
    std::map<std::tuple<int64_t, int64_t, Part>, TensorSpec> specs_;
    int64_t layer_ = -1, expert_ = -1;
};

DecoderAttention read_attention(PartReader& read, const DecoderConfig& c, const LayerConfig& layer,
                                Communicator& ranks) {
    return {.norm = read.norm(Part::attn_norm, Part::attn_norm_bias),
            .qkv = read.group(
                Part::qkv, Part::qkv_bias,
                {{Part::q, Part::q_bias}, {Part::k, Part::k_bias}, {Part::v, Part::v_bias}},
                {c.q_width(), c.kv_width(), c.kv_width()}, c.qk_norm == QkNorm::row),
            .qk_norm = c.qk_norm,
            .q_norm = read.norm(Part::q_norm),
            .k_norm = read.norm(Part::k_norm),
            .out = {read.linear(Part::attn_out, Part::attn_out_bias),
                    read.norm(Part::attn_post_norm), c.residual_scale, &ranks},
            .options = {.scale = c.attention_scale,
                        .causal = true,
                        .window = layer.window,
                        .soft_cap = c.attention_soft_cap,
                        .sinks = read.vector_or_none(Part::sinks)},
            .heads = c.n_head,
            .head_dim = c.head_dim,
            .rope = layer.rope};
}

LatentAttention read_latent_attention(PartReader& read, const DecoderConfig& c,
                                      Communicator& ranks) {
    const LatentConfig& of = c.latent;
    const bool has_rank = of.query_rank > 0;
    const auto norm = [&](Part part) {
        return Norm{read.vector(part), {}, LatentConfig::kNormEps, c.norm};
    };
    LatentAttention block{.norm = read.norm(Part::attn_norm),
                          // Part::token_table is of no layer: there are no biases.
                          .down = read.group(Part::token_table, Part::token_table,
                                             {{has_rank ? Part::q_a : Part::q, Part::token_table},
                                              {Part::kv_a, Part::token_table}},
                                             {}, true),
                          .c_norm = norm(Part::kv_a_norm),
                          .out = {.linear = read.linear(Part::attn_out, Part::token_table),
                                  .post_norm = {},
                                  .ranks = &ranks},
                          .options = {.scale = c.attention_scale, .causal = true},
                          .heads = c.n_head};
    if (has_rank) {
        block.q_norm = norm(Part::q_a_norm);
        block.query = read.linear(Part::q_b, Part::token_table);
    }
    read.latent_heads(block.key, block.value);
    return block;
}

DecoderMlp read_mlp(PartReader& read, const DecoderConfig& c, Communicator& ranks) {
    const Norm norm = read.norm(Part::mlp_norm, Part::mlp_norm_bias);
    // Part::token_table is of no layer: gate has no bias.
    LinearGroup in = c.gated_mlp
                         ? read.group(Part::gate_up, Part::token_table,
                                      {{Part::gate, Part::token_table}, {Part::up, Part::up_bias}},
                                      {c.n_inner, c.n_inner})
                         : LinearGroup(read.linear(Part::up, Part::up_bias), {c.n_inner});
    return {.norm = norm,
            .in = std::move(in),
            .gated = c.gated_mlp,
            .activation = c.activation,
            .down = {read.linear(Part::down, Part::down_bias), read.norm(Part::mlp_post_norm),
                     c.residual_scale, &ranks}};
}

Experts read_experts(PartReader& read, const DecoderConfig& c, WeightPrecision precision,
                     Communicator& ranks) {
    const ExpertConfig& e = c.experts;
    Experts block{.norm = read.norm(Part::mlp_norm),
                  .router = read.router(precision),
                  .per_row = e.per_token,
                  .routing = {.normalized = e.normalized,
                              .sigmoid = e.sigmoid,
                              .bias = read.vector_or_none(Part::router_correction),
                              .groups = e.groups,
                              .kept_groups = e.kept_groups,
                              .scale = e.scale},
                  .gate = read.experts(Part::expert_gate, Part::expert_gate_bias),
                  .up = read.experts(Part::expert_up, Part::expert_up_bias),
                  .down = read.experts(Part::expert_down, Part::expert_down_bias),
                  .gating = {c.activation, e.swiglu_slope, e.swiglu_limit},
                  .shared_hidden = e.n_shared_inner,
                  .ranks = &ranks};
    if (e.n_shared_inner == 0) return block;
    block.shared_in =
        read.group(Part::token_table, Part::token_table,
                   {{Part::shared_gate, Part::token_table}, {Part::shared_up, Part::token_table}},
                   {e.n_shared_inner, e.n_shared_inner});
    block.shared_down = read.linear(Part::shared_down, Part::token_table);
    return block;
}

std::vector<ModelRope> read_ropes(const DecoderConfig& config, WeightStore& weights) {
    const auto upload = [&](const std::vector<float>& values) {
        return weights.vector(
            {Tensor(const_cast<float*>(values.data()), Dtype::f32, {std::ssize(values)})});
    };
    std::vector<ModelRope> ropes;
    for (const RopeTable& table : config.ropes) {
        ModelRope& rope = ropes.emplace_back();
        rope.rope = {upload(table.frequencies), table.scale};
        if (table.long_frequencies.empty()) continue;
        rope.long_rope = {upload(table.long_frequencies), table.scale};
        rope.original_length = table.original_length;
    }
    return ropes;
}

Model read_tensors(TensorSource& source, const DecoderConfig& config, Precision precision,
                   const MemorySource& memory, int threads, MappedWeights files,
                   Communicator& ranks) {
    Model model{.config = config,
                .precision = precision,
                .weights = WeightStore(precision.weights, memory, threads, std::move(files)),
                .ranks = &ranks};
    source.use_threads(threads);
    model.weights.gather();
    PartReader read(source, model.weights, config);
    model.token_table = read.matrix(Part::token_table);
    if (config.learned_positions) model.position_table = read.table(Part::position_table);
    model.ropes = read_ropes(config, model.weights);
    for (int64_t i = 0; i < config.n_layer; ++i) {
        read.of_layer(i);
        const LayerConfig& layer = config.layers[static_cast<size_t>(i)];
        DecoderLayer& block = model.layers.emplace_back();
        if (config.is_latent())
            block.attention = read_latent_attention(read, config, ranks);
        else
            block.attention = read_attention(read, config, layer, ranks);
        if (layer.has_experts)
            block.mlp = read_experts(read, config, precision.weights, ranks);
        else
            block.mlp = read_mlp(read, config, ranks);
        if (model.weights.copy_enough()) source.release_tensors();
    }
    read.of_layer(-1);
    model.final_norm = read.norm(Part::final_norm, Part::final_norm_bias);
    // As in transformers, a tied head is the token table even if the file has lm_head.weight.
    const Range tokens = tokens_of(config.n_vocab, {ranks.rank(), ranks.size()});
    model.lm_head = config.tie_word_embeddings
                        ? rows_of(model.token_table, tokens.begin, tokens.end)
                        : read.matrix(Part::lm_head);
    model.weights.copy_waiting();
    source.release_tensors();
    return model;
}

// The whole model, or this rank's slice.
Model read_slice(TensorSource& source, const DecoderConfig& config, Precision precision,
                 const MemorySource& memory, int threads, MappedWeights files,
                 Communicator& ranks) {
    return naming(source, [&] {
        if (ranks.alone())
            return read_tensors(source, config, precision, memory, threads, std::move(files),
                                ranks);
        SlicedTensors slices(source, config, {ranks.rank(), ranks.size()});
        return read_tensors(slices, slices.config(), precision, memory, threads, std::move(files),
                            ranks);
    });
}

}  // namespace

Model read_model(TensorSource& source, const DecoderConfig& config, Precision precision,
                 const MemorySource& memory, int threads, Communicator& ranks) {
    return read_slice(source, config, precision, memory, threads, {}, ranks);
}

Model read_model(const std::shared_ptr<ModelFile>& file, Precision precision,
                 const MemorySource& memory, int threads, Communicator& ranks) {
    TensorSource& source = file->tensors();
    MappedWeights files{file, [&](const Tensor& tensor) { return source.is_mapped(tensor); }};
    const ProfileSpan span("load");
    Model model =
        read_slice(source, file->config(), precision, memory, threads, std::move(files), ranks);
    add_memory("weights", static_cast<int64_t>(model.weights.bytes()));
    return model;
}

Model load_model(const std::filesystem::path& path, Precision precision, const MemorySource& memory,
                 int threads) {
    return read_model(std::shared_ptr<ModelFile>(open_model(path)), precision, memory, threads);
}

}  // namespace hark::gpt
