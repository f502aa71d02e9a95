#include "core/profile/measured_run.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "core/cli/stats_table.h"
#include "core/files/files.h"
#include "core/profile/metrics_text.h"
#include "core/profile/process_info.h"
#include "core/profile/run_counts.h"
#include "core/sandbox/sandbox.h"

namespace hark {
namespace {

std::string metrics_text(const std::string& tool, double seconds, bool has_failed) {
    const RunCounts counts = run_counts();
    MetricsText text;
    std::string labels = metric_label("tool", tool);
    if (!counts.model.empty()) labels += "," + metric_label("model", counts.model);
    if (!counts.device.empty()) labels += "," + metric_label("device", counts.device);
    text.begin_labels(labels);
    if (counts.done + counts.failed > 0) {
        text.add("audio_seconds_total", "counter", counts.audio_seconds);
        text.add("recordings_total", "counter", static_cast<double>(counts.done),
                 metric_label("state", "done"));
        text.add("recordings_total", "counter", static_cast<double>(counts.failed),
                 metric_label("state", "failed"));
        text.add("realtime_factor", "gauge", counts.audio_seconds / seconds);
    }
    text.add("run_duration_seconds", "gauge", seconds);
    text.add("busiest_thread_seconds", "gauge", busiest_thread_seconds());
    for (const StageTotal& total : stage_totals())
        text.add("run_seconds_total", "counter", total.seconds, metric_label("stage", total.stage));
    for (const auto& [owner, memory] : counts.memory)
        text.add("memory_bytes", "gauge", static_cast<double>(memory.most),
                 metric_label("owner", owner));
    text.add("peak_memory_bytes", "gauge", static_cast<double>(peak_memory()));
    if (!has_failed)
        text.add("last_success_timestamp_seconds", "gauge",
                 static_cast<double>(std::time(nullptr)));
    return text.text();
}

}  // namespace

void refuse_other_file(const std::string& path, std::string_view beginning) {
    require(path != "-", "expected a file for what is measured, found -");
    if (!std::filesystem::is_regular_file(path)) return;
    std::string found(beginning.size(), '\0');
    std::ifstream file(path, std::ios::binary);
    file.read(found.data(), std::ssize(found));
    const auto n = static_cast<size_t>(file.gcount());
    require(beginning.starts_with(std::string_view(found).substr(0, n)), path,
            ": there is another kind of file of that name; it is not overwritten");
}

MeasuredRun::MeasuredRun(const char* tool, Console& console)
    : tool_(tool), console_(console), began_(monotonic_ns()) {
    const bool is_traced = std::getenv("NVTX_INJECTION64_PATH") != nullptr;
    if (!console.profile.empty()) refuse_other_file(console.profile, "[\n");
    if (!console.metrics.empty()) {
        refuse_other_file(console.metrics, "# TYPE hark_");
        metrics_ = ::open(console.metrics.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
        require(metrics_ >= 0, console.metrics, ": cannot write: ", std::strerror(errno));
    }
    if (!console.profile.empty()) file_.emplace(console.profile, tool);
    detail::measures = file_ || console.stats || !console.metrics.empty() || is_traced;
}

MeasuredRun::~MeasuredRun() {
    if (metrics_ >= 0 && !has_finished_ && !console_.silent) {
        // The run's own error is told, these are not.
        try {
            flush_profile();
        } catch (const std::exception&) {
        }
        try {
            write_metrics(true);
        } catch (const std::exception&) {
        }
    }
    detail::measures = false;
    if (metrics_ >= 0) ::close(metrics_);
}

void MeasuredRun::finish() {
    flush_profile();  // a GPU's spans
    if (file_) file_->finish();
    if (console_.silent) return;  // another process of the run says it
    if (console_.stats) write_tables(seconds());
    has_finished_ = true;
    if (!console_.metrics.empty()) write_metrics(console_.failed());
}

// By a rename. Nobody renames files in the sandbox: there the open file gets the text at once.
void MeasuredRun::write_metrics(bool has_failed) const {
    const std::string text = metrics_text(tool_, seconds(), has_failed);
    if (!is_sandboxed()) return write_file(console_.metrics, text);
    const bool all = ::ftruncate(metrics_, 0) == 0 &&
                     ::pwrite(metrics_, text.data(), text.size(), 0) == std::ssize(text);
    require(all, console_.metrics, ": cannot write: ", std::strerror(errno));
}

void MeasuredRun::write_tables(double seconds) const {
    const RunCounts counts = run_counts();
    StatsTable stages(console_, {"stage", "spans", "seconds", "% of the run"});
    for (const StageTotal& total : stage_totals())
        stages.row({total.stage, concat(total.spans), stats_number(total.seconds),
                    stats_number(100 * total.seconds / seconds)});
    stages.row({"run", "1", stats_number(seconds), stats_number(100)});
    if (counts.done + counts.failed > 0) {
        StatsTable audio(console_, {"recordings", "failed", "seconds of audio", "x real time"});
        audio.row({concat(counts.done), concat(counts.failed), stats_number(counts.audio_seconds),
                   stats_number(counts.audio_seconds / seconds)});
    }
    StatsTable table(console_, {"memory, at most", "MB"});
    const auto row = [&](const std::string& owner, int64_t bytes) {
        table.row({owner, stats_number(static_cast<double>(bytes) / 1e6)});
    };
    for (const auto& [owner, memory] : counts.memory)
        if (memory.most > 0) row(owner, memory.most);
    row("the process", peak_memory());
}

}  // namespace hark
