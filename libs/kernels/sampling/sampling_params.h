// The sampler's operations on one logit, shared by the host and the GPU.
#pragma once

#include <cstdint>

#include "core/host_device.h"

namespace hark {

HARK_HOST_DEVICE float apply_temperature(float logit, float temperature) {
    return logit / temperature;
}

// The logit of a token that has occurred before. Source: Keskar et al. 2019, section 4.1.
HARK_HOST_DEVICE float penalized(float logit, float penalty) {
    return logit < 0 ? logit * penalty : logit / penalty;
}

// Whether a token is at least min_p times as probable as the most probable one.
HARK_HOST_DEVICE bool passes_min_p(float logit, float largest, double log_min_p) {
    return logit >= largest + log_min_p;
}

// SamplerOptions for the GPU, the same bytes on both devices.
struct SamplingParams {
    double top_p = 1;
    double log_min_p = 0;
    float temperature = 0;
    float penalty = 1;
    int32_t top_k = 0;  // 0: all
    int32_t has_min_p = 0;
};

}  // namespace hark
