// Context: where and with what a kernel runs. It comes first in every kernel's arguments.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/arena.h"
#include "core/tensor.h"

namespace hark {

struct Context {
    Device device = Device::cpu;
    int device_index = 0;
    int threads = 1;  // CPU threads
    // On a GPU a row's bits do not depend on the other rows of a call (linear() in kernels/ops.h).
    // Whisper's do not; language models' may, and long prompts take less time.
    bool batch_invariant = true;
    // On the CPU products of any number of rows are computed by the kernels of few rows: then a
    // row's bits do not depend on how many there are. Prompts take longer.
    bool few_row_products = false;
    Arena arena;                    // activations and scratch
    Arena host_arena;  // results that have come from a GPU (kernels/runtime/transfer.h)
    void* stream = nullptr;         // cudaStream_t on a GPU
    std::shared_ptr<void> handles;  // what the device's library keeps: cuBLASLt handle, workspace
    // Told `stage, shape, ms` after each stage where --verbose asks for it.
    std::function<void(const std::string&, const std::string&, double)> on_stage;

    explicit Context(int threads = 1) : threads(threads) {}
    Context(Device device, int device_index, MemorySource memory, MemorySource host_memory,
            int threads, void* stream = nullptr, std::shared_ptr<void> handles = nullptr)
        : device(device),
          device_index(device_index),
          threads(threads),
          arena(memory),
          host_arena(host_memory),
          stream(stream),
          handles(std::move(handles)) {}

    bool on_cuda() const { return device == Device::cuda; }
    // Whether products give a row the same bits whatever the other rows are.
    bool has_independent_rows() const { return on_cuda() ? batch_invariant : few_row_products; }
};

}  // namespace hark
