// hark-doctor: checks this machine for what hark needs, and says what to do.
//
//   DoctorOptions -> groups of checks, each a process -> findings -> text or JSON
#include <unistd.h>

#include <iostream>

#include "operations/doctor/checks.h"
#include "operations/doctor/report.h"

namespace {

using namespace hark;

void run(const doctor::DoctorOptions& options, Console& console) {
    options.check();
    const std::vector<doctor::Finding> findings = doctor::run_checks(
        options, doctor::check_groups(), [&](const doctor::CheckGroup& group, double ms) {
            console.stage(group.name, concat(group.checks.size(), " checks"), ms);
        });
    std::cout << (options.format == "json"
                      ? doctor::as_json(findings)
                      : doctor::as_text(findings, console.colors(STDOUT_FILENO)));
    std::cout.flush();
    const std::string failed = doctor::failed_checks(findings);
    if (!failed.empty()) console.error("failed: " + failed);
}

constexpr ToolHelp kHelp = {
    .name = "hark-doctor",
    .summary = "Checks this machine for what hark needs, and says what to do.",
    .description =
        R"(Each line is ok, warn, FAIL or skip, the check's name, and what was found; skip is
a check that was not made, and says why. A line below says what to do. The exit
status is 1 if any check failed. All checks take less than 10 s; nothing is changed.
  cpu.features, cpu.cores (affinity and cgroup), cpu.governor, cpu.busy
  memory.available, memory.limit (cgroup), memory.pressure, memory.bandwidth
  limits.files, limits.processes, limits.memory, limits.file-size
  locale, sandbox
  disk.here, disk.temporary, disk.models (free space), disk.read
  libraries.versions, libraries.decoders
  models.installed, models.whole, models.default, models.incomplete
  gpu.driver, gpu.memory, gpu.ecc, gpu.power, gpu.mode, gpu.start, gpu.library
  gpu.kernel, gpu.transfer, gpu.copy, gpu.product, gpu.clocks
  kernels.cpu, kernels.gpu: with --kernels alone)",
    .examples = R"(# all checks
hark doctor
# the GPU and the free space alone; a machine without a GPU fails
hark doctor gpu disk --device cuda
# what is wrong, for a script
hark doctor --format json | jq -r '.[] | select(.status == "fail") | .check')",
    .uses_color = true};

}  // namespace

int main(int argc, char** argv) { return tool_main<doctor::DoctorOptions>(kHelp, argc, argv, run); }
