#include "kernels/sampling/distribution.h"

#include <algorithm>
#include <vector>

#include "kernels/cpu/cpu.h"
#include "kernels/sampling/sampling_params.h"

namespace hark {

double log_sum_exp(std::span<const float> x) {
    return cpu_kernels().log_sum_exp(x.data(), std::ssize(x));
}

int32_t argmax(std::span<const float> logits) {
    return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

int32_t draw(std::span<const float> logits, double temperature, double u) {
    std::vector<float> weights(logits.begin(), logits.end());
    cpu_kernels().softmax(weights.data(), std::ssize(weights),
                          static_cast<float>(1.0 / temperature));
    double total = 0;
    for (float weight : weights) total += weight;
    const double target = u * total;
    double reached = 0;
    int32_t last = 0;  // the last possible token, if rounding keeps the sum below the target
    for (size_t id = 0; id < weights.size(); ++id) {
        if (weights[id] == 0) continue;
        last = static_cast<int32_t>(id);
        reached += weights[id];
        if (reached > target) break;
    }
    return last;
}

void penalize_repetition(std::span<float> logits, std::span<const int32_t> history,
                         double penalty) {
    std::vector<int32_t> seen(history.begin(), history.end());
    std::sort(seen.begin(), seen.end());
    seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
    const auto by = static_cast<float>(penalty);
    for (int32_t id : seen) {
        if (id < 0 || static_cast<size_t>(id) >= logits.size()) continue;
        float& logit = logits[id];
        logit = penalized(logit, by);
    }
}

}  // namespace hark
