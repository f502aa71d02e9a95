// What a GPU's attention takes at most, for those who have to know before they begin.
#pragma once

#include "core/context.h"
#include "core/error.h"

namespace hark {

inline constexpr int kMostHeadChannels = 128;  // of a head in attention()
inline constexpr int kMostTrainedHead = 256;   // of a head in self_attention()

// Throws Error where the context is a GPU's, and a head has more channels than `most`.
inline void check_head(const Context& ctx, int64_t channels, int most) {
    require(!ctx.on_cuda() || channels <= most, "expected attention heads of up to ", most,
            " channels on a GPU, found ", channels, "; --device cpu takes them");
}

}  // namespace hark
