#include "gpt/train/training.h"

#include <algorithm>

#include "kernels/runtime/transfer.h"

namespace hark::gpt {
namespace {

// Logits in memory at once: 16 MB on the CPU; on a GPU, whose large products are faster, 1.6 GB in
// bf16.
constexpr int64_t kLogitsAtOnce = 1 << 22, kLogitsAtOnceOnGpu = int64_t{50304} << 14;

// What a block's backward reads of its forward.
struct SavedActivations {
    Tensor x;          // (T, C) the block's input
    Tensor ln_1;       // (T, C)
    Tensor qkv;        // (T, 3C); of this rank's heads, as all of attention
    Tensor attn_out;   // (T, C) attention's output
    Tensor lse;        // (T, H)
    Tensor resid_mid;  // (T, C) the residual stream after attention
    Tensor ln_2;       // (T, C)
    Tensor hidden;     // (T, inner) GELU's input, of this rank's channels
    Tensor act;        // (T, inner) GELU's output
};

class Pass {
  public:
    Pass(Context& ctx, Communicator& tensor, const DecoderConfig& config, const Batch& batch,
         Dtype activations, Recompute recompute)
        : ctx_(ctx),
          tensor_(tensor),
          config_(config),
          batch_(batch),
          activations_(activations),
          rows_(batch.tokens.dim(0)),
          begin_(rows_ * tensor.rank() / tensor.size()),
          end_(rows_ * (tensor.rank() + 1) / tensor.size()),
          heads_(config.n_head / tensor.size()),
          attn_width_(config.n_embd / tensor.size()),
          inner_(config.n_inner / tensor.size()) {
        const int64_t c = config.n_embd;
        if (recompute >= Recompute::gelu) act_ = matrix(inner_);
        if (recompute >= Recompute::norms) ln_1_ = matrix(c), ln_2_ = matrix(c);
    }

    Tensor matrix(int64_t columns) const {
        return ctx_.arena.tensor(activations_, {rows_, columns});
    }

    void embed(const ModelTensors& w, Tensor x) const {  // x (T, C)
        embedding(ctx_, x, batch_.tokens, batch_.position, {w.wte}, w.wpe);
    }

    // x (T, C) -> y (T, C)
    void forward(const BlockTensors& w, Tensor y, Tensor x, SavedActivations& saved) const {
        const int64_t c = config_.n_embd;
        saved = {.x = x,
                 .ln_1 = ln_1_ ? ln_1_ : matrix(c),
                 .qkv = matrix(3 * attn_width_),
                 .attn_out = matrix(attn_width_),
                 .lse = ctx_.arena.tensor(Dtype::f32, {rows_, heads_}),
                 .resid_mid = matrix(c),
                 .ln_2 = ln_2_ ? ln_2_ : matrix(c),
                 .hidden = matrix(inner_),
                 .act = act_ ? act_ : matrix(inner_)};
        norm_1(w, saved);
        linear_forward(ctx_, saved.qkv, saved.ln_1, w.attn_weight, w.attn_bias, {});
        self_attention(ctx_, saved.attn_out, saved.lse, saved.qkv, batch_.sequences);
        sum_of_products(saved.resid_mid, saved.attn_out, w.proj_weight, w.proj_bias, x);
        norm_2(w, saved);
        linear_activated(ctx_, saved.act, saved.hidden, saved.ln_2, w.fc_weight, w.fc_bias,
                         config_.activation);
        sum_of_products(y, saved.act, w.out_weight, w.out_bias, saved.resid_mid);
    }

    // dx (T, C): the gradient of the block's output becomes that of its input. A bias added to the
    // residual stream has the sum of dx's rows as its gradient. The norm that completes dx adds it;
    // `below` is the last bias of the block below.
    void backward(const BlockTensors& w, const BlockTensors& g, const SavedActivations& saved,
                  Tensor dx, Tensor below) const {
        const Arena::Scope scope(ctx_.arena);
        const int64_t c = config_.n_embd;
        const float eps = config_.norm_eps;
        Tensor d_hidden = matrix(inner_), d_norm = matrix(c);
        Tensor d_attn_out = matrix(attn_width_), d_qkv = matrix(3 * attn_width_);
        if (act_) activate(ctx_, saved.act, saved.hidden, config_.activation);
        linear_backward(ctx_, d_hidden, g.out_weight, {}, dx, saved.act, w.out_weight,
                        {saved.hidden, config_.activation});
        if (ln_2_) norm_2(w, saved);
        linear_backward(ctx_, d_norm, g.fc_weight, g.fc_bias, d_hidden, saved.ln_2, w.fc_weight);
        tensor_.all_reduce(ctx_, d_norm);
        layer_norm_backward(ctx_, dx, g.ln_2_weight, g.ln_2_bias, d_norm, saved.resid_mid,
                            w.ln_2_weight, eps, g.proj_bias);
        linear_backward(ctx_, d_attn_out, g.proj_weight, {}, dx, saved.attn_out, w.proj_weight);
        self_attention_backward(ctx_, d_qkv, d_attn_out, saved.attn_out, saved.lse, saved.qkv,
                                batch_.sequences);
        if (ln_1_) norm_1(w, saved);
        linear_backward(ctx_, d_norm, g.attn_weight, g.attn_bias, d_qkv, saved.ln_1, w.attn_weight);
        tensor_.all_reduce(ctx_, d_norm);
        layer_norm_backward(ctx_, dx, g.ln_1_weight, g.ln_1_bias, d_norm, saved.x, w.ln_1_weight,
                            eps, below);
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
        embedding_backward(ctx_, g.wte, g.wpe, dx.slice(begin_, end_),
                           batch_.tokens.slice(begin_, end_), batch_.position.slice(begin_, end_));
    }

    Tensor norm_f(const ModelTensors& w, Tensor x) const {
        Tensor y = matrix(config_.n_embd);
        layer_norm(ctx_, y, x, w.ln_f_weight, w.ln_f_bias, config_.norm_eps);
        return y;
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
    void norm_1(const BlockTensors& w, const SavedActivations& saved) const {
        layer_norm(ctx_, saved.ln_1, saved.x, w.ln_1_weight, w.ln_1_bias, config_.norm_eps);
    }
    void norm_2(const BlockTensors& w, const SavedActivations& saved) const {
        layer_norm(ctx_, saved.ln_2, saved.resid_mid, w.ln_2_weight, w.ln_2_bias, config_.norm_eps);
    }

    Context& ctx_;
    Communicator& tensor_;
    const DecoderConfig& config_;
    const Batch& batch_;
    Dtype activations_;
    int64_t rows_, begin_, end_;          // of the batch; this rank's share of them
    int64_t heads_, attn_width_, inner_;  // this rank's heads, their channels, the MLP's channels
    Tensor act_, ln_1_, ln_2_;            // of all blocks in turn, if recomputed
};

}  // namespace

int64_t logits_rows(const Context& ctx, int64_t columns, int64_t rows) {
    const int64_t at_once = ctx.on_cuda() ? kLogitsAtOnceOnGpu : kLogitsAtOnce;
    return std::clamp<int64_t>(at_once / columns, 1, rows);
}

void PackedRows::push(int32_t token, int32_t target) {
    position.push_back(static_cast<int32_t>(std::ssize(tokens) - std::ssize(end)));
    first.push_back(static_cast<int32_t>(end.size()));
    tokens.push_back(token);
    targets.push_back(target);
}

void PackedRows::end_sequence() { end.resize(tokens.size(), static_cast<int32_t>(tokens.size())); }

Batch to_device(Context& ctx, const Batch& host) {
    Batch copy = host;
    for (Tensor* ids : copy.all()) *ids = to_device(ctx, *ids);
    return copy;
}

Batch PackedRows::view() {
    const auto of = [](std::vector<int32_t>& ids) {
        return Tensor(ids.data(), Dtype::i32, {std::ssize(ids)});
    };
    return {of(tokens), of(targets), of(position), {of(first), of(end)}};
}

void compute_losses(Context& ctx, Communicator& tensor, const DecoderConfig& config,
                    const ModelTensors& weights, const Batch& batch, Tensor losses) {
    const Arena::Scope scope(ctx.arena);
    const Pass pass(ctx, tensor, config, batch, weights.wte.dtype, Recompute::none);
    Tensor x = pass.matrix(config.n_embd),
           y = pass.matrix(config.n_embd);  // (T, C), each block's input and output
    pass.embed(weights, x);
    for (const BlockTensors& block : weights.h) {
        const Arena::Scope inner(ctx.arena);
        SavedActivations saved;
        pass.forward(block, y, x, saved);
        std::swap(x, y);
    }
    pass.head(weights, nullptr, pass.norm_f(weights, x), {}, 0, losses);
}

void compute_gradients(Context& ctx, Communicator& tensor, const DecoderConfig& config,
                       const ModelTensors& weights, const ModelTensors& gradients,
                       const Batch& batch, Recompute recompute, float scale, Tensor losses,
                       const BlockDone& done) {
    const Arena::Scope scope(ctx.arena);
    const Pass pass(ctx, tensor, config, batch, weights.wte.dtype, recompute);
    std::vector<SavedActivations> saved(weights.h.size());
    Tensor x = pass.matrix(config.n_embd);  // (T, C)
    pass.embed(weights, x);
    for (size_t i = 0; i < saved.size(); ++i) {
        Tensor y = pass.matrix(config.n_embd);
        pass.forward(weights.h[i], y, x, saved[i]);
        x = y;
    }
    Tensor normed = pass.norm_f(weights, x), d_normed = pass.matrix(config.n_embd);
    pass.head(weights, &gradients, normed, d_normed, scale, losses);
    Tensor dx = pass.matrix(config.n_embd);
    set_zero(ctx, dx);
    layer_norm_backward(ctx, dx, gradients.ln_f_weight, gradients.ln_f_bias, d_normed, x,
                        weights.ln_f_weight, config.norm_eps, gradients.h.back().out_bias);
    for (size_t i = saved.size(); i-- > 0;) {
        pass.backward(weights.h[i], gradients.h[i], saved[i], dx,
                      i > 0 ? gradients.h[i - 1].out_bias : Tensor());
        if (done) done(static_cast<int64_t>(i));
    }
    pass.embed_backward(gradients, dx);
}

}  // namespace hark::gpt
