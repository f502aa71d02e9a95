#include "kernels/runtime/gpu_span.h"

#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include "core/error.h"
#include "kernels/runtime/cuda_library.h"

namespace hark {
namespace {

// An event's milliseconds are a float: from a base within a second it is exact to 0.1 us.
constexpr double kFarthestBase = 1000;

const CudaTiming& cuda_timing() {
    static const CudaTiming* timing = [] {
        const auto* found =
            reinterpret_cast<const CudaTiming* (*)()>(cuda_symbol("hark_cuda_timing"))();
        set_span_ranges(&found->ranges);
        return found;
    }();
    return *timing;
}

int64_t nanoseconds(double ms) { return static_cast<int64_t>(ms * 1e6); }

// The spans of a stream, and its events on the CPU's clock: an event that was waited for, and when
// the wait ended, are the pair that maps the others.
class StreamTimes {
  public:
    explicit StreamTimes(Context& ctx) : base_(cuda_timing().mark(ctx)) {
        cuda_timing().wait(base_.get());
        base_ns_ = monotonic_ns();
    }

    void add(const char* stage, std::shared_ptr<void> begin, std::shared_ptr<void> end) {
        waiting_.push_back({stage, std::move(begin), std::move(end)});
        take_ended();
    }
    void take_ended() {
        while (!waiting_.empty()) {
            Waiting& one = waiting_.front();
            const double ms = cuda_timing().elapsed(one.begin.get(), one.end.get());
            if (ms < 0) return;
            const double from_base = cuda_timing().elapsed(base_.get(), one.begin.get());
            const int64_t begin = base_ns_ + nanoseconds(from_base);
            track_.add(one.stage, begin, nanoseconds(ms));
            if (from_base > kFarthestBase) base_ = one.begin, base_ns_ = begin;
            waiting_.pop_front();
        }
    }

  private:
    struct Waiting {
        const char* stage;
        std::shared_ptr<void> begin, end;
    };

    ProfileTrack track_;
    std::shared_ptr<void> base_;
    int64_t base_ns_ = 0;
    std::deque<Waiting> waiting_;
};

std::mutex times_mutex;

// By stream. Never destroyed, as the library is never closed.
std::map<void*, StreamTimes>& times_of_streams() {
    static auto& times = *new std::map<void*, StreamTimes>;
    return times;
}

void take_all_ended() {
    const std::lock_guard lock(times_mutex);
    for (auto& [stream, times] : times_of_streams()) times.take_ended();
}

}  // namespace

void GpuSpan::begin(Context& ctx, const char* stage) {
    {
        const std::lock_guard lock(times_mutex);
        if (times_of_streams().try_emplace(ctx.stream, ctx).second) before_flush(take_all_ended);
    }
    begin_ = cuda_timing().mark(ctx);
    ctx_ = &ctx;
    stage_ = stage;
}

// A GPU that has failed says so at the next call.
void GpuSpan::end() noexcept {
    try {
        std::shared_ptr<void> end = cuda_timing().mark(*ctx_);
        const std::lock_guard lock(times_mutex);
        times_of_streams().at(ctx_->stream).add(stage_, std::move(begin_), std::move(end));
    } catch (const Error&) {
    }
}

}  // namespace hark
