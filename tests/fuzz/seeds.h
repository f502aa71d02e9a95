// What a fuzz target gives beside LLVMFuzzerTestOneInput.
#pragma once

#include <string>
#include <vector>

namespace hark::fuzz {

// Small valid inputs that the target starts from. Every target defines it.
std::vector<std::string> fuzz_seeds();

}  // namespace hark::fuzz
