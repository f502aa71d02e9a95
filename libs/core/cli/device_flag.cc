#include "core/cli/device_flag.h"

#include <charconv>
#include <system_error>

#include "core/cli/suggest.h"
#include "core/error.h"

namespace hark {
namespace {

// The nearest right word. `gpu` and `gpu:N` stand for `cuda`, though `cpu` has more of the letters.
std::string device_meant(const std::string& device) {
    const std::string kind = device.substr(0, device.find(':'));
    if (edit_distance(kind, "gpu") == 0)
        return concat("; did you mean 'cuda", device.substr(kind.size()), "'?");
    return did_you_mean(device, {"auto", "cpu", "cuda"});
}

}  // namespace

std::optional<int> gpu_index(const std::string& device) {
    if (device == "auto" || device == "cpu") return std::nullopt;
    if (device == "cuda") return 0;
    int index = -1;
    if (device.starts_with("cuda:")) {
        const char* end = device.data() + device.size();
        const auto [stop, error] = std::from_chars(device.data() + 5, end, index);
        if (error != std::errc() || stop != end) index = -1;
    }
    require_usage(index >= 0, "--device: expected auto, cpu, cuda or cuda:N, got '", device, "'",
                  device_meant(device));
    return index;
}

}  // namespace hark
