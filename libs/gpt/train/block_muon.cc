#include "gpt/train/block_muon.h"

namespace hark::gpt {

void update_blocks_with_muon(Context& ctx, const ModelTensors& p, const ModelTensors& m,
                             const ModelTensors& g, const Tensor& clip, const Muon& with) {
    const auto step = [&](const Tensor& w, const Tensor& momentum, const Tensor& gradient) {
        muon(ctx, w, momentum, gradient, clip, with);
    };
    for (size_t i = 0; i < p.h.size(); ++i) {
        const BlockTensors &w = p.h[i], &momentum = m.h[i], &gradient = g.h[i];
        const int64_t c = w.attn_weight.dim(1);
        for (int64_t part = 0; part < 3; ++part) {  // queries, keys and values each by itself
            const int64_t begin = part * c, end = begin + c;
            step(w.attn_weight.slice(begin, end), momentum.attn_weight.slice(begin, end),
                 gradient.attn_weight.slice(begin, end));
        }
        step(w.proj_weight, momentum.proj_weight, gradient.proj_weight);
        step(w.fc_weight, momentum.fc_weight, gradient.fc_weight);
        step(w.out_weight, momentum.out_weight, gradient.out_weight);
    }
}

}  // namespace hark::gpt
