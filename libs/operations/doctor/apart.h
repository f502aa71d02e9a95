// Checks in a process of their own: one that hangs or crashes does not take the tool with it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "operations/doctor/finding.h"

namespace hark::doctor {

struct Apart {
    std::vector<Finding> findings;  // those made until the end
    std::string end;                // "did not end within 2 s"; empty if all went well
    bool timed_out = false;
};

// Runs `work` in a forked process, and ends that process after `seconds`. Call it before this
// process has started threads.
Apart run_apart(const std::function<void(const Say& say)>& work, double seconds);

}  // namespace hark::doctor
