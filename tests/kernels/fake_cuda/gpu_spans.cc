// gpu_spans FILE: profiles spans of two streams of the fake GPU to FILE. stdout gets the times in
// nanoseconds between which the first stream began, and what the library was told.
#include <cstdio>

#include "core/cli/cli.h"
#include "core/profile/measured_run.h"
#include "kernels/runtime/gpu_span.h"

using namespace hark;

namespace {

Context on_stream(uintptr_t number) {
    return Context(Device::cuda, 0, {}, {}, 1, reinterpret_cast<void*>(number));
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    Console console("tool");
    Context fast = on_stream(1), slow = on_stream(2), cpu;
    { const GpuSpan span(fast, "gpu.unmeasured"); }
    console.profile = argv[1];
    MeasuredRun run("tool", console);
    { const GpuSpan span(cpu, "gpu.cpu"); }
    const int64_t before = monotonic_ns();
    { const GpuSpan span(fast, "gpu.encode"); }
    std::printf("base %lld %lld\n", static_cast<long long>(before),
                static_cast<long long>(monotonic_ns()));
    { const GpuSpan span(slow, "gpu.prefill"); }
    {
        const ProfileSpan outer("step");
        for (int i = 0; i < 200; ++i) const GpuSpan span(fast, "gpu.step");
    }
    run.finish();  // asks for the slow one
    return 0;
}
