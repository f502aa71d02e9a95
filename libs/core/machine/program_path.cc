#include "core/machine/program_path.h"

namespace hark {

std::filesystem::path program_path() {
    std::error_code failed;
    return std::filesystem::read_symlink("/proc/self/exe", failed);
}

}  // namespace hark
