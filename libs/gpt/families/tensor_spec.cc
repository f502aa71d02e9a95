#include "gpt/families/tensor_spec.h"

#include "core/error.h"
#include "gpt/families/family.h"

namespace hark::gpt {
namespace {

// Adds specs with the family's names.
class SpecList {
  public:
    explicit SpecList(const DecoderConfig& config)
        : family_(family_of(config.family, config.family)) {}

    void of_layer(int64_t layer) { layer_ = layer; }
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
        const std::string stored = part_name(family_, part);
        const std::string name =
            layer_ < 0 ? stored : concat(family_.layer_prefix, layer_, ".", stored);
        specs.push_back({.part = part,
                         .layer = layer_,
                         .name = name,
                         .rows = rows,
                         .columns = columns,
                         .in_out = family_.conv1d && layer_ >= 0 && columns > 0});
    }

    const Family& family_;
    int64_t layer_ = -1;
};

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

}  // namespace

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
        add_attention(list, c);
        if (after) list.vector(Part::attn_post_norm, c.n_embd);
        if (before) list.norm(Part::mlp_norm, Part::mlp_norm_bias, norm_bias, c.n_embd);
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

std::string gguf_name(const TensorSpec& spec) {
    static constexpr PartName kNames[] = {
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
    };
    for (const PartName& name : kNames)
        if (name.part == spec.part)
            return spec.layer < 0 ? name.name : concat("blk.", spec.layer, ".", name.name);
    fail("internal error: a tensor without a name in GGUF");
}

}  // namespace hark::gpt
