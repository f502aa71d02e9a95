#include "core/profile/run_counts.h"

#include <algorithm>
#include <mutex>

#include "core/profile/profile.h"

namespace hark {
namespace {

std::mutex counts_mutex;

// Never destroyed: memory is given back after main() too.
RunCounts& counts_so_far() {
    static RunCounts& counts = *new RunCounts;
    return counts;
}

template <class Change>
void change_counts(const Change& change) {
    if (!is_measured()) return;
    const std::lock_guard lock(counts_mutex);
    change(counts_so_far());
}

}  // namespace

void count_recording(bool has_failed, double seconds) {
    change_counts([&](RunCounts& counts) {
        ++(has_failed ? counts.failed : counts.done);
        counts.audio_seconds += has_failed ? 0 : seconds;
    });
}

void add_memory(const char* owner, int64_t bytes) {
    change_counts([&](RunCounts& counts) {
        RunCounts::Memory& memory = counts.memory[owner];
        memory.now += bytes;
        memory.most = std::max(memory.most, memory.now);
    });
}

void note_model(const std::string& model, const std::string& device) {
    change_counts([&](RunCounts& counts) { counts.model = model, counts.device = device; });
}

RunCounts run_counts() {
    const std::lock_guard lock(counts_mutex);
    return counts_so_far();
}

}  // namespace hark
