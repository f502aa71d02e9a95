#include "gpt/train/training.h"

#include <algorithm>
#include <optional>

#include "core/error.h"
#include "kernels/runtime/transfer.h"

namespace hark::gpt {
namespace {

// Logits in memory at once: 16 MB on the CPU; on a GPU, whose large products are faster, 1.6 GB in
// bf16.
constexpr int64_t kTrainLogitsAtOnce = 1 << 22, kTrainLogitsAtOnceOnGpu = int64_t{50304} << 14;

// What a block's backward reads of its forward.
struct SavedActivations {
    Tensor x;          // (T, C) the block's input
    Tensor attn_norm;  // (T, C)
    Tensor qkv;        // (T, (H + 2 Hkv) D), turned; of this rank's heads, as all of attention
    Tensor q, k;       // (T, H D), (T, Hkv D) before their norms, or none
    Tensor attn_out;   // (T, H D) attention's output
    Tensor lse;        // (T, H)
    Tensor resid_mid;  // (T, C) the residual stream after attention
    Tensor mlp_norm;   // (T, C)
    Tensor hidden;     // (T, inner) the activation's input, of this rank's channels; gate and up if
                       // the MLP is gated: (T, 2 inner)
    Tensor act;        // (T, inner) the activation's output, or its product with up
};

class Pass {
  public:
    Pass(Context& ctx, Communicator& tensor, const DecoderConfig& config,
         const std::vector<Rope>& ropes, const Batch& batch, Dtype activations, Recompute recompute)
        : ctx_(ctx),
          tensor_(tensor),
          config_(config),
          ropes_(ropes),
          batch_(batch),
          activations_(activations),
          rows_(batch.tokens.dim(0)),
          begin_(rows_ * tensor.rank() / tensor.size()),
          end_(rows_ * (tensor.rank() + 1) / tensor.size()),
          heads_(config.n_head / tensor.size()),
          kv_heads_(config.n_kv_head / tensor.size()),
          attn_width_(heads_ * config.head_dim),
          qkv_width_(attn_width_ + 2 * kv_heads_ * config.head_dim),
          inner_(config.n_inner / tensor.size()),
          hidden_((config.gated_mlp ? 2 : 1) * inner_) {
        const int64_t c = config.n_embd;
        require(ropes.size() == config.ropes.size(),
                "internal error: the model's rotary positions were not uploaded");
        const bool norms = recompute == Recompute::norms;
        if (norms || recompute == Recompute::gelu) act_ = matrix(inner_);
        if (norms) attn_norm_ = matrix(c), mlp_norm_ = matrix(c);
    }

    Tensor matrix(int64_t columns) const {
        return ctx_.arena.tensor(activations_, {rows_, columns});
    }

    void embed(const ModelTensors& w, Tensor x) const {  // x (T, C)
        embedding(ctx_, x, batch_.tokens, batch_.position, {w.token_table}, w.position_table);
    }

    // Block i: x (T, C) -> y (T, C)
    void forward(size_t i, const BlockTensors& w, Tensor y, Tensor x,
                 SavedActivations& saved) const {
        activate_block(i, w, x, saved);
        sum_of_products(y, saved.act, w.down_weight, w.down_bias, saved.resid_mid);
    }

    // What backward needs of block i: all but its last product.
    void activate_block(size_t i, const BlockTensors& w, Tensor x, SavedActivations& saved) const {
        const int64_t c = config_.n_embd;
        saved = {.x = x,
                 .attn_norm = attn_norm_ ? attn_norm_ : matrix(c),
                 .qkv = matrix(qkv_width_),
                 .attn_out = matrix(attn_width_),
                 .lse = ctx_.arena.tensor(Dtype::f32, {rows_, heads_}),
                 .resid_mid = matrix(c),
                 .mlp_norm = mlp_norm_ ? mlp_norm_ : matrix(c),
                 .hidden = matrix(hidden_),
                 .act = act_ ? act_ : matrix(inner_)};
        norm_attention(w, saved);
        linear_forward(ctx_, saved.qkv, saved.attn_norm, w.qkv_weight, w.qkv_bias, {});
        norm_heads(w, saved);
        turn_heads(i, saved.qkv, false);
        self_attention(ctx_, saved.attn_out, saved.lse, saved.qkv, batch_.sequences);
        sum_of_products(saved.resid_mid, saved.attn_out, w.attn_out_weight, w.attn_out_bias, x);
        norm_mlp(w, saved);
        if (config_.gated_mlp) {
            linear_forward(ctx_, saved.hidden, saved.mlp_norm, w.mlp_in_weight, {}, {});
            activate_hidden(saved);
        } else {
            linear_activation(ctx_, saved.act, saved.hidden, saved.mlp_norm, w.mlp_in_weight,
                              w.mlp_in_bias, config_.activation);
        }
    }

    // dx (T, C): the gradient of block i's output becomes that of its input. A bias added to the
    // residual stream has the sum of dx's rows as its gradient. The norm that completes dx adds it;
    // `below` is the last bias of the block below.
    void backward(size_t i, const BlockTensors& w, const BlockTensors& g,
                  const SavedActivations& saved, Tensor dx, Tensor below) const {
        const Arena::Scope scope(ctx_.arena);
        const int64_t c = config_.n_embd;
        Tensor d_hidden = matrix(hidden_), d_norm = matrix(c);
        Tensor d_attn_out = matrix(attn_width_), d_qkv = matrix(qkv_width_);
        if (act_) activate_hidden(saved);
        down_backward(w, g, saved, d_hidden, dx);
        if (mlp_norm_) norm_mlp(w, saved);
        linear_backward(ctx_, d_norm, g.mlp_in_weight, g.mlp_in_bias, d_hidden, saved.mlp_norm,
                        w.mlp_in_weight);
        tensor_.all_reduce(ctx_, d_norm);
        norm_backward(dx, g.mlp_norm_weight, g.mlp_norm_bias, d_norm, saved.resid_mid,
                      w.mlp_norm_weight, g.attn_out_bias);
        linear_backward(ctx_, d_attn_out, g.attn_out_weight, {}, dx, saved.attn_out,
                        w.attn_out_weight);
        self_attention_backward(ctx_, d_qkv, d_attn_out, saved.attn_out, saved.lse, saved.qkv,
                                batch_.sequences);
        turn_heads(i, d_qkv, true);
        norm_heads_backward(w, g, saved, d_qkv);
        if (attn_norm_) norm_attention(w, saved);
        linear_backward(ctx_, d_norm, g.qkv_weight, g.qkv_bias, d_qkv, saved.attn_norm,
                        w.qkv_weight);
        tensor_.all_reduce(ctx_, d_norm);
        norm_backward(dx, g.attn_norm_weight, g.attn_norm_bias, d_norm, saved.x, w.attn_norm_weight,
                      below);
    }

    // The losses from the last norm's output `normed` (T, C); with gradients `g`, d (T, C) becomes
    // its gradient. The vocabulary's product is made for a part of the rows at a time: the logits
    // of all rows would take too much memory.
    void head(const ModelTensors& w, const ModelTensors* g, Tensor normed, Tensor d, float scale,
              Tensor losses) const {
        const int64_t columns = w.lm_head.dim(0);
        const int64_t most = logits_rows(ctx_, columns, rows_);
        for (int64_t begin = begin_; begin < end_; begin += most) {
            const Arena::Scope scope(ctx_.arena);
            const int64_t end = std::min(begin + most, end_);
            const Tensor part = normed.slice(begin, end);
            Tensor logits = ctx_.arena.tensor(activations_, {end - begin, columns});
            linear_forward(ctx_, logits, part, w.lm_head, {}, {});
            cross_entropy(ctx_, losses.slice(begin, end), logits, batch_.targets.slice(begin, end),
                          config_.n_vocab, g ? scale : 0);
            if (g)
                linear_backward(ctx_, d.slice(begin, end), g->lm_head, {}, logits, part, w.lm_head);
        }
        gather_rows(losses);
        if (g) gather_rows(d);
    }

    // dx (T, C): the gradient of embed()'s x.
    void embed_backward(const ModelTensors& g, Tensor dx) const {
        if (begin_ == end_) return;
        embedding_backward(ctx_, g.token_table, g.position_table, dx.slice(begin_, end_),
                           batch_.tokens.slice(begin_, end_), batch_.position.slice(begin_, end_));
    }

    Tensor final_norm(const ModelTensors& w, Tensor x) const {
        Tensor y = matrix(config_.n_embd);
        norm(y, x, w.final_norm_weight, w.final_norm_bias);
        return y;
    }

    // The gradients of a norm of x: dx (T, C) +=, dw, db (C) += and sums (C) +=, or none.
    void norm_backward(Tensor dx, Tensor dw, Tensor db, Tensor dy, Tensor x, Tensor w,
                       Tensor sums) const {
        const float eps = config_.norm_eps;
        if (config_.norm == NormKind::rms)
            return rms_norm_backward(ctx_, dx, dw, dy, x, w, eps, sums);
        layer_norm_backward(ctx_, dx, dw, db, dy, x, w, eps, sums);
    }

  private:
    // y (T, N) = x W^T + b + residual; each rank has some columns of x and W.
    void sum_of_products(Tensor y, Tensor x, Tensor w, Tensor b, Tensor residual) const {
        const bool first = tensor_.first();
        linear_forward(ctx_, y, x, w, first ? b : Tensor(), first ? residual : Tensor());
        tensor_.all_reduce(ctx_, y);
    }
    // x (T, ...): each rank has its rows, and gets all.
    void gather_rows(Tensor x) const {
        if (begin_ > 0) set_zero(ctx_, x.slice(0, begin_));
        if (end_ < rows_) set_zero(ctx_, x.slice(end_, rows_));
        tensor_.all_reduce(ctx_, x);
    }
    void norm(Tensor y, Tensor x, Tensor w, Tensor b) const {
        normalize(ctx_, y, x, {w, b, config_.norm_eps, config_.norm});
    }
    void norm_attention(const BlockTensors& w, const SavedActivations& saved) const {
        norm(saved.attn_norm, saved.x, w.attn_norm_weight, w.attn_norm_bias);
    }
    void norm_mlp(const BlockTensors& w, const SavedActivations& saved) const {
        norm(saved.mlp_norm, saved.resid_mid, w.mlp_norm_weight, w.mlp_norm_bias);
    }
    // Norms queries and keys in place, where the family does, and keeps them as they were.
    void norm_heads(const BlockTensors& w, SavedActivations& saved) const {
        const auto norm_columns = [&](Tensor& before, int64_t first, int64_t n, Tensor weight) {
            if (!weight) return;
            before = matrix(n);
            const Arena::Scope scope(ctx_.arena);
            Tensor normed = matrix(n);
            copy_columns(ctx_, {before}, {saved.qkv, first}, n);
            rms_norm(ctx_, by_width(normed, weight), by_width(before, weight), weight,
                     config_.norm_eps);
            copy_columns(ctx_, {saved.qkv, first}, {normed}, n);
        };
        norm_columns(saved.q, 0, attn_width_, w.q_norm_weight);
        norm_columns(saved.k, attn_width_, kv_heads_ * config_.head_dim, w.k_norm_weight);
    }
    void norm_heads_backward(const BlockTensors& w, const BlockTensors& g,
                             const SavedActivations& saved, Tensor d_qkv) const {
        const auto columns_backward = [&](Tensor before, int64_t first, Tensor weight, Tensor dw) {
            if (!weight) return;
            const Arena::Scope scope(ctx_.arena);
            const int64_t n = before.dim(1);
            Tensor dy = matrix(n), dx = matrix(n);
            copy_columns(ctx_, {dy}, {d_qkv, first}, n);
            set_zero(ctx_, dx);
            rms_norm_backward(ctx_, by_width(dx, weight), dw, by_width(dy, weight),
                              by_width(before, weight), weight, config_.norm_eps);
            copy_columns(ctx_, {d_qkv, first}, {dx}, n);
        };
        columns_backward(saved.q, 0, w.q_norm_weight, g.q_norm_weight);
        columns_backward(saved.k, attn_width_, w.k_norm_weight, g.k_norm_weight);
    }
    // x (T, n) as rows of a norm's width: heads, or all of them.
    static Tensor by_width(Tensor x, Tensor weight) {
        return x.reshaped({x.size() / weight.dim(0), weight.dim(0)});
    }
    // The heads of queries and keys of block i by their positions, in place.
    void turn_heads(size_t i, Tensor qkv, bool back) const {
        const int of = config_.layers[i].rope;
        if (of < 0) return;
        rope(ctx_, {qkv}, heads_ + kv_heads_, config_.head_dim, batch_.position,
             ropes_[static_cast<size_t>(of)], back);
    }
    void activate_hidden(const SavedActivations& saved) const {
        if (!config_.gated_mlp) return activate(ctx_, saved.act, saved.hidden, config_.activation);
        gated_activation(ctx_, saved.act, {saved.hidden}, {saved.hidden, inner_},
                         config_.activation);
    }
    // d_hidden = the gradient of `hidden`, from that of the MLP's output.
    void down_backward(const BlockTensors& w, const BlockTensors& g, const SavedActivations& saved,
                       Tensor d_hidden, Tensor dx) const {
        if (!config_.gated_mlp)
            return linear_backward(ctx_, d_hidden, g.down_weight, {}, dx, saved.act, w.down_weight,
                                   {saved.hidden, config_.activation});
        const Arena::Scope scope(ctx_.arena);
        Tensor d_act = matrix(inner_);
        linear_backward(ctx_, d_act, g.down_weight, {}, dx, saved.act, w.down_weight);
        gated_activation_backward(ctx_, {d_hidden}, {d_hidden, inner_}, d_act, {saved.hidden},
                                  {saved.hidden, inner_}, config_.activation);
    }

    Context& ctx_;
    Communicator& tensor_;
    const DecoderConfig& config_;
    const std::vector<Rope>& ropes_;
    const Batch& batch_;
    Dtype activations_;
    int64_t rows_, begin_, end_;         // of the batch; this rank's share of them
    int64_t heads_, kv_heads_;           // this rank's
    int64_t attn_width_, qkv_width_;     // channels of its heads; with those of keys and values
    int64_t inner_, hidden_;             // channels of its part of the MLP; columns of `hidden`
    Tensor act_, attn_norm_, mlp_norm_;  // of all blocks in turn, if recomputed
};

}  // namespace

int64_t logits_rows(const Context& ctx, int64_t columns, int64_t rows) {
    const int64_t at_once = ctx.on_cuda() ? kTrainLogitsAtOnceOnGpu : kTrainLogitsAtOnce;
    return std::clamp<int64_t>(at_once / columns, 1, rows);
}

Batch to_device(Context& ctx, const Batch& host) {
    Batch copy = host;
    for (Tensor* ids : copy.all()) *ids = to_device(ctx, *ids);
    return copy;
}

Batch view_of(PackedRows& rows) {
    const auto of = [](std::vector<int32_t>& ids) {
        return Tensor(ids.data(), Dtype::i32, {std::ssize(ids)});
    };
    return {of(rows.tokens), of(rows.targets), of(rows.position), {of(rows.first), of(rows.end)}};
}

std::vector<Rope> upload_ropes(Context& ctx, Arena& memory, const DecoderConfig& config) {
    std::vector<Rope> ropes;
    for (const RopeTable& table : config.ropes) {
        const Tensor frequencies = memory.tensor(Dtype::f32, {std::ssize(table.frequencies)});
        fill_from_host(ctx, frequencies, [&](Tensor host) {
            std::copy(table.frequencies.begin(), table.frequencies.end(), host.as<float>());
        });
        ropes.push_back({frequencies, table.scale});
    }
    return ropes;
}

void compute_losses(Context& ctx, Communicator& tensor, const DecoderConfig& config,
                    const ModelTensors& weights, const Batch& batch, Tensor losses) {
    const Arena::Scope scope(ctx.arena);
    const Pass pass(ctx, tensor, config, weights.ropes, batch, weights.token_table.dtype,
                    Recompute::none);
    Tensor x = pass.matrix(config.n_embd),
           y = pass.matrix(config.n_embd);  // (T, C), each block's input and output
    pass.embed(weights, x);
    for (size_t i = 0; i < weights.blocks.size(); ++i) {
        const Arena::Scope inner(ctx.arena);
        SavedActivations saved;
        pass.forward(i, weights.blocks[i], y, x, saved);
        std::swap(x, y);
    }
    pass.head(weights, nullptr, pass.final_norm(weights, x), {}, 0, losses);
}

std::vector<float> row_losses(Context& ctx, Communicator& tensor, const DecoderConfig& config,
                              const ModelTensors& weights, PackedRows& rows) {
    const Scratch scratch(ctx);
    Tensor losses = ctx.arena.tensor(Dtype::f32, {rows.size()});
    compute_losses(ctx, tensor, config, weights, to_device(ctx, view_of(rows)), losses);
    const Tensor found = to_host(ctx, losses);
    return {found.as<float>(), found.as<float>() + rows.size()};
}

void compute_gradients(Context& ctx, Communicator& tensor, const DecoderConfig& config,
                       const ModelTensors& weights, const ModelTensors& gradients,
                       const Batch& batch, Recompute recompute, float scale, Tensor losses,
                       const BlockDone& done) {
    const Arena::Scope scope(ctx.arena);
    const Pass pass(ctx, tensor, config, weights.ropes, batch, weights.token_table.dtype,
                    recompute);
    std::vector<SavedActivations> saved(weights.blocks.size());
    Tensor x = pass.matrix(config.n_embd);  // (T, C)
    pass.embed(weights, x);
    const bool blocks = recompute == Recompute::blocks;
    for (size_t i = 0; i < saved.size(); ++i) {
        Tensor y = pass.matrix(config.n_embd);
        std::optional<Arena::Scope> block;
        if (blocks) block.emplace(ctx.arena);
        pass.forward(i, weights.blocks[i], y, x, saved[i]);
        if (blocks) saved[i] = {.x = x};
        x = y;
    }
    Tensor normed = pass.final_norm(weights, x), d_normed = pass.matrix(config.n_embd);
    pass.head(weights, &gradients, normed, d_normed, scale, losses);
    Tensor dx = pass.matrix(config.n_embd);
    set_zero(ctx, dx);
    pass.norm_backward(dx, gradients.final_norm_weight, gradients.final_norm_bias, d_normed, x,
                       weights.final_norm_weight, gradients.blocks.back().down_bias);
    for (size_t i = saved.size(); i-- > 0;) {
        const Arena::Scope block(ctx.arena);
        if (blocks) pass.activate_block(i, weights.blocks[i], saved[i].x, saved[i]);
        pass.backward(i, weights.blocks[i], gradients.blocks[i], saved[i], dx,
                      i > 0 ? gradients.blocks[i - 1].down_bias : Tensor());
        if (done) done(static_cast<int64_t>(i));
    }
    pass.embed_backward(gradients, dx);
}

}  // namespace hark::gpt
