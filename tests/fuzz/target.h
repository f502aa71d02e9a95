// What a file fuzz_NAME.cc defines: a target, which reads bytes from outside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hark::fuzz {

// An input may take this many times its size of the heap, and what the target allows.
constexpr int64_t kTimesInput = 4;
constexpr int64_t kAllowance = int64_t{1} << 20;  // bytes: an element of JSON takes 16, its text 2

class Target {
  public:
    // `seeds`: small valid inputs that the target starts from. `input`: reads one, returns 0.
    // `allowance`: bytes of the heap beyond kTimesInput times the input.
    Target(const char* name, std::vector<std::string> (*seeds)(),
           int (*input)(const uint8_t* data, size_t size), int64_t allowance = kAllowance)
        : name(name), seeds(seeds), input(input), allowance(allowance) {
        all().push_back(*this);
    }

    // The targets of this program. Each adds itself before main().
    static std::vector<Target>& all() {
        static std::vector<Target> targets;
        return targets;
    }

    std::string name;
    std::vector<std::string> (*seeds)();
    int (*input)(const uint8_t* data, size_t size);
    int64_t allowance;
};

}  // namespace hark::fuzz
