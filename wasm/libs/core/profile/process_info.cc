#include "core/profile/process_info.h"

#include <emscripten/heap.h>

#include <random>

#include "core/error.h"

namespace hark {

// The clock begins with the program: no other one has it.
std::string boot_id() {
    std::random_device random;
    return concat("wasm-", random(), "-", random());
}

// Memory that WebAssembly has taken is never given back.
int64_t peak_memory() { return static_cast<int64_t>(emscripten_get_heap_size()); }

}  // namespace hark
