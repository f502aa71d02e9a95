// All checks of hark-doctor, in groups that each run in a process of their own.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/cli/cli.h"
#include "operations/doctor/finding.h"

namespace hark::doctor {

struct DoctorOptions {
    std::vector<std::string> checks;  // "gpu", "cpu.cores"; empty: all
    std::string format = "text";
    std::string device = "auto";
    bool kernels = false;  // kernels.cpu and kernels.gpu too

    void flags(Flags& flags);
    // Throws UsageError for a check that does not exist, with the nearest one that does.
    void check() const;
    // Whether a check was asked for, by its own name or by that of its area.
    bool wants(const std::string& check) const;
};

struct CheckGroup {
    const char* name;  // for messages
    double seconds;    // after which it is given up
    std::vector<const char*> checks;
    std::vector<const char*> can_fail;  // of these; the others only warn if they do not end in time
    const char* remedy;                 // for checks that did not end
    std::function<void(const DoctorOptions& options, const Say& say)> run;
};

std::span<const CheckGroup> check_groups();

// Runs the checks that are asked for, one group after another, in less than `seconds` in all.
// Findings come in the order of the groups; each check that is asked for has one at least.
// `on_group` is told each group and the milliseconds that it took.
std::vector<Finding> run_checks(const DoctorOptions& options, std::span<const CheckGroup> groups,
                                const std::function<void(const CheckGroup&, double)>& on_group,
                                double seconds = 9);

}  // namespace hark::doctor
