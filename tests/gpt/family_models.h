// The tiny models of tests/golden/families.json.
#pragma once

#include <string>
#include <vector>

#include "gpt/decoder/model.h"
#include "gpt/engine/sequence.h"
#include "support/golden.h"

namespace hark::gpt {

inline nlohmann::json family_config(const std::string& name) {
    static const nlohmann::json cases = test::golden("families.json");
    return cases[name]["config"];
}

// Of all rows of the ids.
inline std::vector<float> logits_of(const Model& model, std::vector<int32_t> ids) {
    Context ctx = make_cpu_context(2);
    Sequence sequence(ctx, model);
    const std::span<const float> logits = sequence.forward_to_host(ctx, ids);
    return {logits.begin(), logits.end()};
}

}  // namespace hark::gpt
