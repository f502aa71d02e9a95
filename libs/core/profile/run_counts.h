// What a run has done and what memory it has taken: for --stats and --metrics.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace hark {

// The functions change nothing unless the run is measured. Any thread may call them.

// A recording of this length has been done, or has failed.
void count_recording(bool has_failed, double seconds);
// More bytes of this owner, or with a negative number fewer: "weights", "keys and values".
void add_memory(const char* owner, int64_t bytes);
// The run's model and device, which label its metrics.
void note_model(const std::string& model, const std::string& device);

struct RunCounts {
    struct Memory {
        int64_t now = 0, most = 0;  // bytes
    };

    int64_t done = 0, failed = 0;          // recordings
    double audio_seconds = 0;              // of those done
    std::map<std::string, Memory> memory;  // by owner
    std::string model, device;
};
RunCounts run_counts();

}  // namespace hark
