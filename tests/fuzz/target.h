// What a file fuzz_NAME.cc defines: a target, which reads bytes from outside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hark::fuzz {

class Target {
  public:
    // `seeds`: small valid inputs that the target starts from. `input`: reads one, returns 0.
    Target(const char* name, std::vector<std::string> (*seeds)(),
           int (*input)(const uint8_t* data, size_t size))
        : name(name), seeds(seeds), input(input) {
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
};

}  // namespace hark::fuzz
