// Limits of a GPU's attention, for callers that must know them in advance.
#pragma once

#include "core/context.h"
#include "core/error.h"

namespace hark {

inline constexpr int kMostHeadChannels = 576;  // per head in attention(): DeepSeek's latent rows
inline constexpr int kMostTrainedHead = 256;   // per head in self_attention()

// Throws Error if the context is a GPU's and a head has more than `most` channels.
inline void check_head(const Context& ctx, int64_t channels, int most) {
    require(!ctx.on_cuda() || channels <= most, "expected attention heads of up to ", most,
            " channels on a GPU, found ", channels, "; --device cpu takes them");
}

}  // namespace hark
