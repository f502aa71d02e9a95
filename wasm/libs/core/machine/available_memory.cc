#include "core/machine/available_memory.h"

#include <emscripten/heap.h>

namespace hark {

int64_t available_memory() {
    return static_cast<int64_t>(emscripten_get_heap_max()) -
           static_cast<int64_t>(emscripten_get_heap_size());
}

}  // namespace hark
