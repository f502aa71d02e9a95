#include "whisper_work.h"

namespace hark::bench {

using namespace hark::whisper;

namespace {

double matrix_bytes(const Matrix& w) {
    return static_cast<double>(w.values.bytes() + (w.scales ? w.scales.bytes() : 0));
}

}  // namespace

double token_bytes(const Model& model, double windows, CrossKvMode mode, Device device) {
    double bytes = matrix_bytes(model.decoder.token_embedding);
    for (const DecoderBlock& block : model.decoder.blocks)
        for (const Matrix* w :
             {&block.attn.qkv.weight, &block.attn.out.weight, &block.cross_attn.query.weight,
              &block.cross_attn.out.weight, &block.mlp.fc1.weight, &block.mlp.fc2.weight})
            bytes += matrix_bytes(*w);
    const Config& c = model.config;
    double window =
        static_cast<double>(CrossKvCache::window_bytes(c, model.precision, mode, device));
    if (CrossKvCache::resolved_mode(c, model.precision, mode, device) == CrossKvMode::recompute) {
        window *= static_cast<double>(c.n_text_layer);
        for (const DecoderBlock& block : model.decoder.blocks)
            bytes += matrix_bytes(block.cross_attn.kv.weight);
    }
    return bytes + windows * window;
}

}  // namespace hark::bench
