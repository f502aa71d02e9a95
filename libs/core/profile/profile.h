// Where the time of a run goes: spans of its stages, for --profile, --stats and --metrics
// (docs/profiles.md).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hark {

namespace detail {
extern std::atomic<bool> measures;
}

// Whether spans are measured: one relaxed load, all that a span costs if they are not.
inline bool is_measured() { return detail::measures.load(std::memory_order_relaxed); }

// CLOCK_MONOTONIC, in nanoseconds: the same for all processes of a machine.
int64_t monotonic_ns();

// A stage of this thread, from its construction to its destruction. Spans of a thread nest; the
// time of an inner one is not the outer one's own.
class ProfileSpan {
  public:
    // `stage` is a literal: read, decode, mel, encode, prefill, step, write, wait.in or wait.out,
    // or a tool's own; null: none. The file names it TOOL.STAGE.
    explicit ProfileSpan(const char* stage) {
        if (is_measured() && stage) begin(stage);
    }
    ~ProfileSpan() {
        if (stage_) end();
    }
    ProfileSpan(const ProfileSpan&) = delete;
    ProfileSpan& operator=(const ProfileSpan&) = delete;

    // The span is a step on the way of a recording's channel through the tools of a pipe.
    void follow(const std::string& source, const std::string& channel) const {
        if (stage_) add_step(source, channel);
    }

  private:
    void begin(const char* stage);
    void end();
    void add_step(const std::string& source, const std::string& channel) const;

    const char* stage_ = nullptr;
    int64_t begin_ = 0;
    int64_t outer_inner_ = 0;  // the outer span's time in inner ones, until this one
};

// `pipe` if `fd` is a pipe, a socket or a terminal, else `file`: the stage of reading or writing
// it.
const char* stage_of(int fd, const char* pipe, const char* file);

// Writes what the file lacks: before a process ends by a signal.
void flush_profile();
// `work` is called by flush_profile() before it writes: for spans that have ended meanwhile.
void before_flush(void (*work)());

// What a stage has taken so far, over all threads.
struct StageTotal {
    std::string stage;
    int64_t spans = 0;
    double seconds = 0;  // without those of inner spans
};
// The longest first.
std::vector<StageTotal> stage_totals();
// Seconds of all stages but wait.in and wait.out, of the thread that has most of them.
double busiest_thread_seconds();

// Spans of something that is no thread, such as a GPU's stream.
class ProfileTrack {
  public:
    ProfileTrack();
    ~ProfileTrack();
    ProfileTrack(const ProfileTrack&) = delete;
    ProfileTrack& operator=(const ProfileTrack&) = delete;

    // Times in nanoseconds of monotonic_ns().
    void add(const char* stage, int64_t begin, int64_t duration);

  private:
    struct Log;
    std::unique_ptr<Log> log_;
};

// What profilers of the driver are told of each span, if they are there: NVTX.
struct SpanRanges {
    void (*push)(const char* stage);
    void (*pop)();
};
void set_span_ranges(const SpanRanges* ranges);  // must stay

// The file of a profile: Chrome's trace event format, an event a line, so that what a killed run
// has written can be read. An event is in the file a second after its end at the latest if its
// thread has another one.
class ProfileFile {
  public:
    // Makes or empties the file. Throws Error if it cannot be written. One at a time.
    ProfileFile(const std::string& path, const std::string& tool);
    // Writes what is left.
    ~ProfileFile();
    ProfileFile(const ProfileFile&) = delete;
    ProfileFile& operator=(const ProfileFile&) = delete;

    // Writes what is left. Throws Error if an event could not be written.
    void finish();

  private:
    std::string path_;
};

// The way of a recording's channel has this number in all tools.
uint64_t flow_id(const std::string& source, const std::string& channel);

}  // namespace hark
