// libhark-cuda.so of a machine without a GPU, as far as profiles need it: events of a GPU whose
// clock is 10 ms later at each of them, and ranges that are written to stdout. An event is reached
// at the third question for it, and at once in a stream whose number is odd.
#include <cstdint>
#include <cstdio>
#include <memory>

#include "kernels/cuda_abi.h"
#include "kernels/runtime/gpu_span.h"
#include "kernels/runtime/plugin.h"

namespace {

using hark::Context;

constexpr double kStepMs = 10;
double now_ms = 0;

struct Event {
    double ms;
    int questions_left;
};

std::shared_ptr<void> mark(Context& ctx) {
    now_ms += kStepMs;
    const bool is_slow = reinterpret_cast<uintptr_t>(ctx.stream) % 2 == 0;
    return std::make_shared<Event>(Event{now_ms, is_slow ? 2 : 0});
}

double elapsed(void* from, void* to) {
    Event& end = *static_cast<Event*>(to);
    if (end.questions_left-- > 0) return -1;
    return end.ms - static_cast<Event*>(from)->ms;
}

void wait(void* /*event*/) { std::puts("wait"); }
void push(const char* stage) { std::printf("push %s\n", stage); }
void pop() { std::puts("pop"); }

}  // namespace

HARK_EXPORT int hark_cuda_abi() { return hark::kCudaAbi; }

HARK_EXPORT const hark::CudaTiming* hark_cuda_timing() {
    static const hark::CudaTiming timing = {
        .mark = mark, .elapsed = elapsed, .wait = wait, .ranges = {push, pop}};
    return &timing;
}
