// Memory of a GPU that grows and shrinks in place.
#pragma once

#include <cstddef>
#include <memory>

#include "core/reserved_memory.h"

namespace hark::cuda {

// Whether GPU `index` maps memory to addresses that were reserved before: some virtual GPUs do not.
bool can_reserve_memory(int index);

// On the current GPU. Throws OutOfMemory.
std::unique_ptr<ReservedMemory> reserve_gpu_memory(size_t bytes);

// Throws OutOfMemory with what was needed and what is free.
[[noreturn]] void throw_no_gpu_memory(size_t bytes);

}  // namespace hark::cuda
