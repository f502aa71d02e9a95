// --device: which device a tool computes on.
#pragma once

#include <optional>
#include <string>

namespace hark {

// The N of `cuda:N`; 0 for `cuda`, nothing for `auto` and `cpu`. Throws UsageError for others, with
// the nearest right word.
std::optional<int> gpu_index(const std::string& device);

}  // namespace hark
