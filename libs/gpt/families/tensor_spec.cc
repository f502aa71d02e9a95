#include "gpt/families/tensor_spec.h"

#include "core/error.h"
#include "core/ranges.h"
#include "gpt/families/family.h"

namespace hark::gpt {
namespace {

constexpr PartName kGgufNames[] = {
    {Part::token_table, "token_embd.weight"},
    {Part::position_table, "position_embd.weight"},
    {Part::lm_head, "output.weight"},
    {Part::final_norm, "output_norm.weight"},
    {Part::final_norm_bias, "output_norm.bias"},
    {Part::attn_norm, "attn_norm.weight"},
    {Part::attn_norm_bias, "attn_norm.bias"},
    {Part::qkv, "attn_qkv.weight"},
    {Part::qkv_bias, "attn_qkv.bias"},
    {Part::q, "attn_q.weight"},
    {Part::q_bias, "attn_q.bias"},
    {Part::k, "attn_k.weight"},
    {Part::k_bias, "attn_k.bias"},
    {Part::v, "attn_v.weight"},
    {Part::v_bias, "attn_v.bias"},
    {Part::q_norm, "attn_q_norm.weight"},
    {Part::k_norm, "attn_k_norm.weight"},
    {Part::attn_out, "attn_output.weight"},
    {Part::attn_out_bias, "attn_output.bias"},
    {Part::sinks, "attn_sinks.weight"},
    {Part::q_a, "attn_q_a.weight"},
    {Part::q_a_norm, "attn_q_a_norm.weight"},
    {Part::q_b, "attn_q_b.weight"},
    {Part::kv_a, "attn_kv_a_mqa.weight"},
    {Part::kv_a_norm, "attn_kv_a_norm.weight"},
    {Part::kv_b, "attn_kv_b.weight"},
    {Part::k_b, "attn_k_b.weight"},
    {Part::v_b, "attn_v_b.weight"},
    {Part::attn_post_norm, "post_attention_norm.weight"},
    {Part::mlp_norm, "ffn_norm.weight"},
    {Part::mlp_norm_bias, "ffn_norm.bias"},
    {Part::gate_up, "ffn_up.weight"},
    {Part::gate, "ffn_gate.weight"},
    {Part::up, "ffn_up.weight"},
    {Part::up_bias, "ffn_up.bias"},
    {Part::down, "ffn_down.weight"},
    {Part::down_bias, "ffn_down.bias"},
    {Part::mlp_post_norm, "post_ffw_norm.weight"},
    {Part::router, "ffn_gate_inp.weight"},
    {Part::router_bias, "ffn_gate_inp.bias"},
    {Part::router_correction, "exp_probs_b.bias"},
    {Part::shared_gate, "ffn_gate_shexp.weight"},
    {Part::shared_up, "ffn_up_shexp.weight"},
    {Part::shared_down, "ffn_down_shexp.weight"},
    {Part::expert_gate, "ffn_gate_exps.weight"},
    {Part::expert_gate_bias, "ffn_gate_exps.bias"},
    {Part::expert_up, "ffn_up_exps.weight"},
    {Part::expert_up_bias, "ffn_up_exps.bias"},
    {Part::expert_down, "ffn_down_exps.weight"},
    {Part::expert_down_bias, "ffn_down_exps.bias"},
};

const char* gguf_name(const Family& family, Part part) {
    for (const std::span<const PartName> names :
         {family.gguf_names, std::span<const PartName>(kGgufNames)})
        for (const PartName& name : names)
            if (name.part == part) return name.name;
    fail("internal error: a tensor without a name in GGUF");
}

// The name with the expert's number in place of {}.
std::string of_expert(std::string name, int64_t expert) {
    const size_t at = name.find("{}");
    require(at != name.npos, "internal error: expected {} in an expert's name, found ", name);
    return name.replace(at, 2, std::to_string(expert));
}

// Adds specs with the family's names.
class SpecList {
  public:
    explicit SpecList(const DecoderConfig& config)
        : family_(family_of(config.family, config.family)) {}

    void of_layer(int64_t layer) { layer_ = layer; }
    // Adds what add() does once per expert or head, of n.
    template <class Add>
    void for_each(int64_t n, const Add& add) {
        stacked_ = n;
        for (expert_ = 0; expert_ < n; ++expert_) add();
        stacked_ = 0;
        expert_ = -1;
    }
    void vector(Part part, int64_t n) { add(part, n, 0); }
    void matrix(Part part, int64_t rows, int64_t columns) { add(part, rows, columns); }
    void linear(Part weight, Part bias, bool has_bias, int64_t rows, int64_t columns) {
        matrix(weight, rows, columns);
        if (has_bias) vector(bias, rows);
    }
    void norm(Part weight, Part bias, bool has_bias, int64_t n) {
        vector(weight, n);
        if (has_bias) vector(bias, n);
    }

    std::vector<TensorSpec> specs;

  private:
    void add(Part part, int64_t rows, int64_t columns) {
        std::string name = part_name(family_, part), gguf = gguf_name(family_, part);
        if (expert_ >= 0) name = gpt::of_expert(name, expert_);
        if (layer_ >= 0) {
            name = concat(family_.layer_prefix, layer_, ".", name);
            gguf = concat("blk.", layer_, ".", gguf);
        }
        specs.push_back({.part = part,
                         .layer = layer_,
                         .expert = expert_,
                         .name = name,
                         .gguf = gguf,
                         .stacked = stacked_,
                         .rows = rows,
                         .columns = columns,
                         .in_out = family_.conv1d && layer_ >= 0 && columns > 0});
    }

    const Family& family_;
    int64_t layer_ = -1, expert_ = -1, stacked_ = 0;
};

void add_latent_attention(SpecList& list, const DecoderConfig& c) {
    const LatentConfig& of = c.latent;
    const int64_t queries = c.n_head * (of.plain + of.rotary);
    if (of.query_rank > 0) {
        list.matrix(Part::q_a, of.query_rank, c.n_embd);
        list.vector(Part::q_a_norm, of.query_rank);
        list.matrix(Part::q_b, queries, of.query_rank);
    } else {
        list.matrix(Part::q, queries, c.n_embd);
    }
    list.matrix(Part::kv_a, of.channels + of.rotary, c.n_embd);
    list.vector(Part::kv_a_norm, of.channels);
    if (of.by_head) {
        list.for_each(c.n_head, [&] { list.matrix(Part::k_b, of.channels, of.plain); });
        list.for_each(c.n_head, [&] { list.matrix(Part::v_b, of.value, of.channels); });
    } else {
        list.matrix(Part::kv_b, c.n_head * (of.plain + of.value), of.channels);
    }
    list.matrix(Part::attn_out, c.n_embd, c.n_head * of.value);
}

void add_attention(SpecList& list, const DecoderConfig& c) {
    if (c.fused_qkv) {
        list.linear(Part::qkv, Part::qkv_bias, c.qkv_bias, c.q_width() + 2 * c.kv_width(),
                    c.n_embd);
    } else {
        list.linear(Part::q, Part::q_bias, c.qkv_bias, c.q_width(), c.n_embd);
        list.linear(Part::k, Part::k_bias, c.qkv_bias, c.kv_width(), c.n_embd);
        list.linear(Part::v, Part::v_bias, c.qkv_bias, c.kv_width(), c.n_embd);
    }
    if (c.qk_norm != QkNorm::none) {
        const bool row = c.qk_norm == QkNorm::row;
        list.vector(Part::q_norm, row ? c.q_width() : c.head_dim);
        list.vector(Part::k_norm, row ? c.kv_width() : c.head_dim);
    }
    list.linear(Part::attn_out, Part::attn_out_bias, c.attn_out_bias, c.n_embd, c.q_width());
    if (c.attention_sinks) list.vector(Part::sinks, c.n_head);
}

void add_mlp(SpecList& list, const DecoderConfig& c) {
    if (c.fused_gate_up) {
        list.matrix(Part::gate_up, 2 * c.n_inner, c.n_embd);
    } else {
        if (c.gated_mlp) list.matrix(Part::gate, c.n_inner, c.n_embd);
        list.linear(Part::up, Part::up_bias, c.mlp_bias, c.n_inner, c.n_embd);
    }
    list.linear(Part::down, Part::down_bias, c.mlp_bias, c.n_embd, c.n_inner);
}

void add_experts(SpecList& list, const DecoderConfig& c) {
    const int64_t count = c.experts.count, inner = c.experts.n_inner;
    const bool bias = c.experts.bias;
    list.linear(Part::router, Part::router_bias, bias, count, c.n_embd);
    if (c.experts.corrected) list.vector(Part::router_correction, count);
    if (c.experts.n_shared_inner > 0) {
        list.matrix(Part::shared_gate, c.experts.n_shared_inner, c.n_embd);
        list.matrix(Part::shared_up, c.experts.n_shared_inner, c.n_embd);
        list.matrix(Part::shared_down, c.n_embd, c.experts.n_shared_inner);
    }
    list.for_each(count, [&] {
        list.linear(Part::expert_gate, Part::expert_gate_bias, bias, inner, c.n_embd);
        list.linear(Part::expert_up, Part::expert_up_bias, bias, inner, c.n_embd);
        list.linear(Part::expert_down, Part::expert_down_bias, bias, c.n_embd, inner);
    });
}

}  // namespace

bool TensorSpec::is_norm() const {
    constexpr Part kNorms[] = {Part::final_norm,   Part::attn_norm, Part::attn_post_norm,
                               Part::mlp_norm,     Part::q_norm,    Part::k_norm,
                               Part::mlp_post_norm};
    return contains(kNorms, part);
}

std::vector<TensorSpec> tensor_specs(const DecoderConfig& c) {
    SpecList list(c);
    const bool norm_bias = c.norm == NormKind::layer;
    const bool before = c.norm_place != NormPlace::after, after = c.norm_place != NormPlace::before;
    list.matrix(Part::token_table, c.n_vocab, c.n_embd);
    if (c.learned_positions) list.matrix(Part::position_table, c.n_positions, c.n_embd);
    if (!c.tie_word_embeddings) list.matrix(Part::lm_head, c.n_vocab, c.n_embd);
    for (int64_t i = 0; i < c.n_layer; ++i) {
        list.of_layer(i);
        if (before) list.norm(Part::attn_norm, Part::attn_norm_bias, norm_bias, c.n_embd);
        if (c.is_latent())
            add_latent_attention(list, c);
        else
            add_attention(list, c);
        if (after) list.vector(Part::attn_post_norm, c.n_embd);
        if (before) list.norm(Part::mlp_norm, Part::mlp_norm_bias, norm_bias, c.n_embd);
        if (c.layers[static_cast<size_t>(i)].has_experts)
            add_experts(list, c);
        else
            add_mlp(list, c);
        if (after) list.vector(Part::mlp_post_norm, c.n_embd);
    }
    list.of_layer(-1);
    list.norm(Part::final_norm, Part::final_norm_bias, norm_bias, c.n_embd);
    return std::move(list.specs);
}

// transformers' Conv1D is stored (in, out); GGUF and llm.c store (out, in).
bool is_turned(const TensorSource& source, const TensorSpec& spec) {
    return spec.in_out && !source.stores_out_in();
}

Tensor take(TensorSource& source, const TensorSpec& spec) {
    if (spec.columns == 0) return source.take(spec.name, {spec.rows});
    return is_turned(source, spec) ? source.take(spec.name, {spec.columns, spec.rows})
                                   : source.take(spec.name, {spec.rows, spec.columns});
}

}  // namespace hark::gpt
