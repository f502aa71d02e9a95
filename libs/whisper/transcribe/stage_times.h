// The total time of each stage of a run, for --verbose.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/cli/cli.h"

namespace hark::whisper {

class StageTimes {
  public:
    void add(const std::string& name, double ms) {
        auto sum = std::find_if(sums_.begin(), sums_.end(),
                                [&](const Sum& other) { return other.name == name; });
        if (sum == sums_.end()) sum = sums_.insert(sums_.end(), {name, 0, 0});
        ++sum->calls;
        sum->ms += ms;
    }
    // Prints the totals since the last call, in the order of the stages' first runs.
    void say(const std::string& source, Console& console) {
        for (const Sum& sum : sums_)
            console.stage(concat(source, ": ", sum.name),
                          concat("(", sum.calls, sum.calls == 1 ? " call)" : " calls)"), sum.ms);
        sums_.clear();
    }

  private:
    struct Sum {
        std::string name;
        int64_t calls;
        double ms;
    };
    std::vector<Sum> sums_;
};

}  // namespace hark::whisper
