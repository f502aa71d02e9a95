#include "serve/audio/live_job.h"

#include <utility>

namespace hark::serve {
namespace {

constexpr size_t kBufferedSeconds = 30, kSampleBytes = 2;

}  // namespace

size_t LiveJob::most_bytes() const {
    return kBufferedSeconds * kSampleBytes * static_cast<size_t>(rate);
}

void LiveJob::add(std::string_view bytes) {
    const std::lock_guard lock(mutex_);
    sound_.bytes += bytes;
    if (sound_.bytes.size() >= most_bytes()) sound_.was_full = true;
}

void LiveJob::end() {
    const std::lock_guard lock(mutex_);
    sound_.has_ended = true;
}

bool LiveJob::has_room() const {
    const std::lock_guard lock(mutex_);
    return sound_.bytes.size() < most_bytes();
}

LiveJob::Sound LiveJob::take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(sound_, {.bytes = "", .has_ended = sound_.has_ended});
}

bool LiveJob::has_news() const {
    const std::lock_guard lock(mutex_);
    return !sound_.bytes.empty() || sound_.has_ended;
}

}  // namespace hark::serve
