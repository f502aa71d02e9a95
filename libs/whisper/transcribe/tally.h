// The progress of a run over recordings.
#pragma once

#include <cstdint>
#include <deque>
#include <iterator>

#include "core/cli/progress.h"
#include "whisper/output/formats.h"

namespace hark::whisper {

// Counts recordings and their seconds. They end in the order of their arrival.
class Tally {
  public:
    explicit Tally(Progress& progress) : progress_(progress) {}

    void arrived(const RecordingInfo& info) {
        open_.push_back(info);
        open_seconds_ += info.seconds;
        if (open_.size() == 1) show(0);
    }
    void all_have_arrived() { all_arrived_ = true; }
    // Shows the decoded fraction of the oldest recording.
    void show(double fraction) {
        const RecordingInfo& oldest = open_.front();
        ProgressReport report;
        report.name = oldest.source;
        report.unit = ProgressReport::Unit::seconds;
        report.done = fraction * oldest.seconds;
        report.total = oldest.seconds;
        report.before = ended_seconds_;
        report.item = ended_ + 1;
        if (all_arrived_) {
            report.items = ended_ + std::ssize(open_);
            report.after = open_seconds_ - oldest.seconds;
        }
        progress_.show(report);
    }
    // The oldest recording has ended.
    void end_oldest() {
        ++ended_;
        ended_seconds_ += open_.front().seconds;
        open_seconds_ -= open_.front().seconds;
        open_.pop_front();
        if (!open_.empty()) show(0);
    }

  private:
    Progress& progress_;
    std::deque<RecordingInfo> open_;  // arrived and not ended, the oldest first
    double open_seconds_ = 0, ended_seconds_ = 0;
    int64_t ended_ = 0;
    bool all_arrived_ = false;
};

}  // namespace hark::whisper
