#include "gpt/answers/generate_request.h"

#include "core/random.h"
#include "kernels/runtime/backend.h"

namespace hark::gpt {

Precision GenerateOptions::with_cache(Precision precision) const {
    if (kv_dtype != "auto") precision.cache = dtype_named(kv_dtype);
    return precision;
}

uint64_t sample_seed(uint64_t seed, int64_t sample) {
    return sample == 0 ? seed : split_mix(~seed, static_cast<uint64_t>(sample));
}

}  // namespace hark::gpt
