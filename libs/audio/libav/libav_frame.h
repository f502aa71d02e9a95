// The samples of libav's frames.
#pragma once

#include <memory>
#include <new>
#include <vector>

struct AVFrame;

namespace hark {

// Leaves what a vector is resized by without a value.
template <class T>
struct UnfilledAllocator : std::allocator<T> {
    template <class Other>
    struct rebind {
        using other = UnfilledAllocator<Other>;
    };
    void construct(T* place) noexcept { ::new (static_cast<void*>(place)) T; }
    void construct(T* place, const T& value) noexcept {
        ::new (static_cast<void*>(place)) T(value);
    }
};
using UnfilledSamples = std::vector<float, UnfilledAllocator<float>>;

// Appends a frame's samples, interleaved, full scale at 1. Throws Error for an unknown format.
void append_frame(const AVFrame& frame, UnfilledSamples& out);

}  // namespace hark
