#include "core/profile/profile.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/files/fingerprint.h"
#include "core/profile/process_info.h"
#include "core/profile/trace_lines.h"

namespace hark {

std::atomic<bool> detail::measures{false};

namespace {

constexpr size_t kMostEvents = 4096;             // in a thread's buffer
constexpr int64_t kLongestKept = 1'000'000'000;  // nanoseconds that they stay there
constexpr int kLanesPerThread = 100;             // a thread's stages have tids of their own

// A stage of a thread.
struct Lane {
    const char* stage;
    int number;  // of the stage in this process, from 1
    int64_t spans = 0, own_ns = 0;
};

struct SpanEvent {
    size_t lane;
    int64_t begin, duration, own;
};

struct StepEvent {
    size_t lane;
    int64_t at;
    std::string source, channel;
};

// The file that all threads write to.
struct Output {
    std::mutex mutex;
    int fd = -1;
    std::string tool, boot;
    int reason = 0;  // errno of the first write that failed
    std::atomic<bool> is_open{false};
    std::set<int> named;      // tids whose stage is in the file
    bool has_header = false;  // of this process

    // Not before the first events: each process that a launcher has started empties the file.
    std::string header() const {
        struct stat info {};
        const bool is_first = ::fstat(fd, &info) != 0 || info.st_size == 0;
        return (is_first ? "[\n" : "") + trace_process(tool, boot);
    }
    bool is_new(int tid) {
        const std::lock_guard lock(mutex);
        return named.insert(tid).second;
    }
    void write(std::string text) {
        const std::lock_guard lock(mutex);
        if (fd >= 0 && !std::exchange(has_header, true)) text = header() + text;
        // One call per text: the processes of a run append to one file.
        for (size_t at = 0; at < text.size() && fd >= 0 && reason == 0;) {
            const ssize_t put = ::write(fd, text.data() + at, text.size() - at);
            if (put < 0 && errno == EINTR) continue;
            if (put < 0) reason = errno;
            at += static_cast<size_t>(std::max<ssize_t>(put, 0));
        }
    }
};

std::atomic<const SpanRanges*> span_ranges{nullptr};
std::atomic<void (*)()> work_before_flush{nullptr};

class ThreadLog;

// Never destroyed: a thread that was abandoned may outlive main().
struct Registry {
    std::mutex mutex;  // taken before a log's, and that before the output's
    std::vector<ThreadLog*> living;
    std::vector<StageTotal> ended;  // of threads that have ended
    std::set<int> numbers;          // of living threads
    double busiest_ended = 0;       // seconds of the busiest thread that has ended
    std::vector<const char*> stages;
    Output output;

    int add_thread(ThreadLog* log) {
        const std::lock_guard lock(mutex);
        living.push_back(log);
        int number = 1;
        while (!numbers.insert(number).second) ++number;
        return number;
    }
    int number_of(const char* stage) {
        const std::lock_guard lock(stages_mutex);
        for (size_t i = 0; i < stages.size(); ++i)
            if (std::strcmp(stages[i], stage) == 0) return static_cast<int>(i) + 1;
        stages.push_back(stage);
        return static_cast<int>(stages.size());
    }
    std::mutex stages_mutex;
};

Registry& registry() {
    static Registry& one = *new Registry;
    return one;
}

void add_total(std::vector<StageTotal>& totals, const Lane& lane) {
    auto found = std::find_if(totals.begin(), totals.end(),
                              [&](const StageTotal& total) { return total.stage == lane.stage; });
    if (found == totals.end()) found = totals.insert(found, {lane.stage});
    found->spans += lane.spans;
    found->seconds += static_cast<double>(lane.own_ns) / 1e9;
}

// The spans of one thread.
class ThreadLog {
  public:
    ThreadLog() : number_(registry().add_thread(this)) {}
    ~ThreadLog() {
        Registry& all = registry();
        const std::lock_guard lock(all.mutex);
        flush();
        std::erase(all.living, this);
        all.numbers.erase(number_);
        all.busiest_ended = std::max(all.busiest_ended, busy_seconds());
        for (const Lane& lane : lanes_) add_total(all.ended, lane);
    }

    void add_span(const char* stage, int64_t begin, int64_t duration, int64_t own) {
        const std::lock_guard lock(mutex_);
        const size_t lane = lane_of(stage);
        ++lanes_[lane].spans;
        lanes_[lane].own_ns += own;
        if (!registry().output.is_open) return;
        spans_.push_back({lane, begin, duration, own});
        if (spans_.size() >= kMostEvents || begin + duration - flushed_ > kLongestKept)
            flush_locked(begin + duration);
    }
    void add_step(const char* stage, const std::string& source, const std::string& channel) {
        const std::lock_guard lock(mutex_);
        if (!registry().output.is_open) return;
        steps_.push_back({lane_of(stage), monotonic_ns(), source, channel});
    }
    void flush() {
        const std::lock_guard lock(mutex_);
        flush_locked(monotonic_ns());
    }
    void add_totals(std::vector<StageTotal>& totals) {
        const std::lock_guard lock(mutex_);
        for (const Lane& lane : lanes_) add_total(totals, lane);
    }
    double busy_seconds() {
        const std::lock_guard lock(mutex_);
        int64_t ns = 0;
        for (const Lane& lane : lanes_)
            if (std::strncmp(lane.stage, "wait.", 5) != 0) ns += lane.own_ns;
        return static_cast<double>(ns) / 1e9;
    }
    // In a child process: the parent writes what the thread has done before.
    void begin_again() {
        spans_.clear();
        steps_.clear();
        for (Lane& lane : lanes_) lane.spans = lane.own_ns = 0;
    }

    int64_t inner = 0;  // nanoseconds of ended spans within the open one; the thread's own

  private:
    size_t lane_of(const char* stage) {
        for (size_t i = 0; i < lanes_.size(); ++i)
            if (lanes_[i].stage == stage || std::strcmp(lanes_[i].stage, stage) == 0) return i;
        lanes_.push_back({stage, registry().number_of(stage)});
        return lanes_.size() - 1;
    }
    int tid(size_t lane) const { return kLanesPerThread * number_ + lanes_[lane].number; }
    void flush_locked(int64_t now) {
        flushed_ = now;
        if (spans_.empty() && steps_.empty()) return;
        Output& output = registry().output;
        const std::string& tool = output.tool;
        std::string text;
        for (size_t i = 0; i < lanes_.size(); ++i)
            if (output.is_new(tid(i))) text += trace_thread(tid(i), lanes_[i].stage);
        for (const SpanEvent& span : spans_)
            text += trace_span(tool, lanes_[span.lane].stage, tid(span.lane), span.begin,
                               span.duration, span.own);
        for (const StepEvent& step : steps_)
            text += trace_step(tid(step.lane), step.at, step.source, step.channel);
        spans_.clear();
        steps_.clear();
        output.write(text);
    }

    std::mutex mutex_;
    const int number_;
    std::vector<Lane> lanes_;
    std::vector<SpanEvent> spans_;
    std::vector<StepEvent> steps_;
    int64_t flushed_ = monotonic_ns();
};

ThreadLog& own_log() {
    thread_local ThreadLog log;
    return log;
}

// The ranks of a run are forked: each says in the same file what it is, and what it does.
void before_fork() { registry().mutex.lock(); }
void after_fork_in_parent() { registry().mutex.unlock(); }
void after_fork_in_child() {
    Registry& all = registry();
    all.mutex.unlock();
    ThreadLog& own = own_log();  // the only thread that is left
    own.begin_again();
    all.living = {&own};
    all.ended.clear();
    all.busiest_ended = 0;
    all.output.named.clear();
    all.output.has_header = false;
}

}  // namespace

void before_flush(void (*work)()) { work_before_flush = work; }

void flush_profile() {
    if (void (*const work)() = work_before_flush) work();
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    for (ThreadLog* log : all.living) log->flush();
}

int64_t monotonic_ns() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

void ProfileSpan::begin(const char* stage) {
    ThreadLog& log = own_log();
    outer_inner_ = std::exchange(log.inner, 0);
    stage_ = stage;
    if (const SpanRanges* const ranges = span_ranges) ranges->push(stage);
    begin_ = monotonic_ns();
}

void ProfileSpan::end() {
    const int64_t duration = monotonic_ns() - begin_;
    if (const SpanRanges* const ranges = span_ranges) ranges->pop();
    ThreadLog& log = own_log();
    log.add_span(stage_, begin_, duration, duration - log.inner);
    log.inner = outer_inner_ + duration;
}

void ProfileSpan::add_step(const std::string& source, const std::string& channel) const {
    own_log().add_step(stage_, source, channel);
}

const char* stage_of(int fd, const char* pipe, const char* file) {
    struct stat info {};
    if (::fstat(fd, &info) != 0) return file;
    return S_ISREG(info.st_mode) || S_ISBLK(info.st_mode) ? file : pipe;
}

std::vector<StageTotal> stage_totals() {
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    std::vector<StageTotal> totals = all.ended;
    for (ThreadLog* log : all.living) log->add_totals(totals);
    std::stable_sort(totals.begin(), totals.end(), [](const StageTotal& a, const StageTotal& b) {
        return a.seconds > b.seconds;
    });
    return totals;
}

double busiest_thread_seconds() {
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    double most = all.busiest_ended;
    for (ThreadLog* log : all.living) most = std::max(most, log->busy_seconds());
    return most;
}

struct ProfileTrack::Log : ThreadLog {};

ProfileTrack::ProfileTrack() : log_(std::make_unique<Log>()) {}
ProfileTrack::~ProfileTrack() = default;

void ProfileTrack::add(const char* stage, int64_t begin, int64_t duration) {
    log_->add_span(stage, begin, duration, duration);
}

void set_span_ranges(const SpanRanges* ranges) { span_ranges = ranges; }

ProfileFile::ProfileFile(const std::string& path, const std::string& tool) : path_(path) {
    static const int handlers =
        ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    require(handlers == 0, "out of memory");
    Output& output = registry().output;
    output.fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
    require(output.fd >= 0, path, ": cannot write: ", std::strerror(errno));
    output.tool = tool;
    output.reason = 0;
    output.named.clear();
    output.has_header = false;
    output.boot = boot_id();  // cannot be read in a sandbox
    output.is_open = true;
}

ProfileFile::~ProfileFile() {
    try {
        flush_profile();
    } catch (const Error&) {  // finish() has told it, or the run has failed
    }
    Output& output = registry().output;
    output.is_open = false;
    const std::lock_guard lock(output.mutex);
    ::close(std::exchange(output.fd, -1));
}

void ProfileFile::finish() {
    flush_profile();
    Output& output = registry().output;
    output.write("");
    const int reason = [&] {
        const std::lock_guard lock(output.mutex);
        return output.reason;
    }();
    require(reason == 0, path_, ": cannot write: ", std::strerror(reason));
}

uint64_t flow_id(const std::string& source, const std::string& channel) {
    Fingerprint hash;
    hash.add(source.data(), source.size() + 1);  // with the zero at its end
    hash.add(channel.data(), channel.size());
    return hash.value();
}

}  // namespace hark
