#include "operations/doctor/checks.h"

#include <algorithm>
#include <chrono>

#include "core/cli/device_flag.h"
#include "core/cli/suggest.h"
#include "core/machine/available_memory.h"
#include "core/machine/cgroup.h"
#include "core/machine/cores.h"
#include "core/models/models.h"
#include "kernels/runtime/backend.h"
#include "operations/doctor/apart.h"
#include "operations/doctor/disk.h"
#include "operations/doctor/gpu.h"
#include "operations/doctor/host.h"
#include "operations/doctor/kernels/kernel_checks.h"
#include "operations/doctor/libraries.h"
#include "operations/doctor/models.h"
#include "operations/speed/memory_speed.h"

namespace hark::doctor {
namespace {

std::string area_of(const std::string& check) { return check.substr(0, check.find('.')); }

void host_checks(const DoctorOptions&, const Say& say) {
    judge_cpu(read_cpu(), say);
    judge_memory(read_memory(), say);
    judge_limits(read_limits(), say);
    judge_locale(read_locale(), say);
}

// In a process of its own, which gives up its rights.
void sandbox_check(const DoctorOptions&, const Say& say) { judge_sandbox(read_sandbox(), say); }

void bandwidth_check(const DoctorOptions&, const Say& say) {
    constexpr int64_t kBytes = 512'000'000;  // beyond most caches
    const int64_t free = std::min(available_memory(), cgroup_memory().value_or(INT64_MAX));
    const int threads = available_cores();
    judge_bandwidth(read_bandwidth(threads, static_cast<double>(std::min(kBytes, free / 4)), 0.5),
                    threads, say);
}

void disk_checks(const DoctorOptions&, const Say& say) {
    check_current_folder(say);
    judge_folder(read_folder(temporary_folder()), kTemporaryUse, say);
    if (user_models().empty())
        return say({"disk.models", Status::fail,
                    "no folder for models: neither XDG_DATA_HOME nor HOME is set", "set HOME"});
    judge_folder(read_folder(user_models()), kModelsUse, say);
}

void model_checks(const DoctorOptions&, const Say& say) {
    const ModelsReading reading = read_models();
    judge_models(reading, say);
    judge_read(read_file_speed(reading.largest, 0.5), say);
}

void library_checks(const DoctorOptions&, const Say& say) {
    judge_libraries(read_libraries(), say);
}

void gpu_checks(const DoctorOptions& options, const Say& say) {
    if (options.device == "cpu") return say({"gpu", Status::skip, "--device cpu"});
    const std::optional<int> index = gpu_index(options.device);
    check_gpus({.wanted = index.has_value(), .index = index.value_or(0)}, say);
}

void cpu_kernel_checks(const DoctorOptions&, const Say& say) {
    Context ctx = make_cpu_context(1);  // on a busy machine more threads wait for one another
    check_kernels(ctx, "kernels.cpu", say);
}

void gpu_kernel_checks(const DoctorOptions& options, const Say& say) {
    if (options.device == "cpu") return say({"kernels.gpu", Status::skip, "--device cpu"});
    const std::optional<int> index = gpu_index(options.device);
    check_gpu_kernels(index.has_value(), index.value_or(0), say);
}

const std::vector<CheckGroup>& all_groups() {
    static const std::vector<CheckGroup> kGroups = {
        {"cpu, memory, limits and locale",
         2,
         {"cpu.features", "cpu.cores", "cpu.governor", "cpu.busy", "memory.available",
          "memory.limit", "memory.pressure", "limits.files", "limits.processes", "limits.memory",
          "limits.file-size", "locale"},
         {},
         "look at /proc and /sys, which should answer at once",
         host_checks},
        {"sandbox", 2, {"sandbox"}, {}, "look at dmesg", sandbox_check},
        {"memory.bandwidth", 3, {"memory.bandwidth"}, {}, "see cpu.busy", bandwidth_check},
        {"disk",
         2,
         {"disk.here", "disk.temporary", "disk.models"},
         {"disk.here", "disk.temporary", "disk.models"},
         "a network file system may not answer: mount, dmesg",
         disk_checks},
        {"libraries",
         2,
         {"libraries.versions", "libraries.decoders"},
         {},
         "install hark and its libraries again",
         library_checks},
        {"models",
         4,
         {"models.installed", "models.whole", "models.default", "models.incomplete", "disk.read"},
         {"models.whole", "models.default"},
         "a network file system may be slow: mount, dmesg",
         model_checks},
        {"gpu",
         7,
         {"gpu.driver", "gpu.memory", "gpu.ecc", "gpu.power", "gpu.mode", "gpu.start",
          "gpu.library", "gpu.kernel", "gpu.transfer", "gpu.copy", "gpu.product", "gpu.clocks"},
         {"gpu.driver", "gpu.ecc", "gpu.mode", "gpu.start", "gpu.library", "gpu.kernel"},
         "look for NVRM and Xid in dmesg; with many GPUs nvidia-smi -pm 1 shortens the start",
         gpu_checks},
        {"kernels.cpu", 5, {"kernels.cpu"}, {}, "see cpu.busy", cpu_kernel_checks},
        {"kernels.gpu",
         7,
         {"kernels.gpu"},
         {"kernels.gpu"},
         "look for NVRM and Xid in dmesg",
         gpu_kernel_checks}};
    return kGroups;
}

// A group's findings, and one for each of its checks that has none.
std::vector<Finding> complete(const CheckGroup& group, Apart apart) {
    std::vector<Finding> findings = std::move(apart.findings);
    for (const char* check : group.checks) {
        const bool known = std::any_of(findings.begin(), findings.end(), [&](const Finding& one) {
            return one.check == check || one.check == area_of(check);
        });
        if (known) continue;
        const std::string end = apart.end.empty() ? "ended without a result" : apart.end;
        const bool warns =
            apart.timed_out && std::none_of(group.can_fail.begin(), group.can_fail.end(),
                                            [&](const std::string one) { return one == check; });
        findings.push_back(
            {check, warns ? Status::warn : Status::fail, "this check " + end, group.remedy});
    }
    return findings;
}

}  // namespace

void DoctorOptions::flags(Flags& flags) {
    flags.positional("[CHECK...]", checks, "checks or areas of them; without any, all");
    flags.add_switch("kernels", kernels, "compare every operation with its definition too")
        .essential()
        .details("kernels.cpu and kernels.gpu, which are not made otherwise, unless named.");
    flags.section("Report");
    flags.add("format,f", format, {"text", "json"}, "FORMAT format of the report")
        .own_variable()
        .essential()
        .details("json: an array of objects, one for each line (docs/doctor.md).");
    flags.section("Computing");
    add_device(flags, device)
        .essential()
        .details(
            "auto checks the first GPU if there is one; with cuda it is a failure that there "
            "is none, and with cpu no GPU is looked for.");
}

void DoctorOptions::check() const {
    gpu_index(device);  // checks the flag
    std::vector<std::string> known;
    for (const CheckGroup& group : check_groups())
        for (const std::string check : group.checks) {
            known.push_back(check);
            if (std::find(known.begin(), known.end(), area_of(check)) == known.end())
                known.push_back(area_of(check));
        }
    for (const std::string& given : checks)
        require_usage(std::find(known.begin(), known.end(), given) != known.end(),
                      "unknown check '", given, "'", did_you_mean(given, known),
                      "; --help-all lists them");
}

bool DoctorOptions::wants(const std::string& check) const {
    if (std::any_of(checks.begin(), checks.end(), [&](const auto& given) {
            return given == check || given == area_of(check) || area_of(given) == check;
        }))
        return true;
    if (area_of(check) != "kernels") return checks.empty();
    return kernels && std::none_of(checks.begin(), checks.end(),
                                   [](const auto& given) { return area_of(given) == "kernels"; });
}

std::span<const CheckGroup> check_groups() { return all_groups(); }

std::vector<Finding> run_checks(const DoctorOptions& options, std::span<const CheckGroup> groups,
                                const std::function<void(const CheckGroup&, double)>& on_group,
                                double seconds) {
    const auto begin = std::chrono::steady_clock::now();
    const auto taken = [&] {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    std::vector<Finding> findings;
    for (const CheckGroup& group : groups) {
        if (std::none_of(group.checks.begin(), group.checks.end(),
                         [&](const std::string check) { return options.wants(check); }))
            continue;
        const double start = taken();
        const double left = std::max(0.5, std::min(group.seconds, seconds - start));
        Apart apart = run_apart([&](const Say& say) { group.run(options, say); }, left);
        for (Finding& finding : complete(group, std::move(apart)))
            if (options.wants(finding.check)) findings.push_back(std::move(finding));
        on_group(group, (taken() - start) * 1e3);
    }
    return findings;
}

}  // namespace hark::doctor
