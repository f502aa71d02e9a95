// The reference's numbers for operations.
#pragma once

#include "core/json/json.h"
#include "support/process.h"

namespace hark::test {

// tests/golden/kernels.json, made by kernels.py.
inline const nlohmann::json& kernels_golden() {
    static const nlohmann::json golden =
        nlohmann::json::parse(read_text(source_dir() / "tests/golden/kernels.json"));
    return golden;
}

}  // namespace hark::test
