// How far a run is: a line on a terminal's stderr that is replaced, lines of a log, or JSON.
#pragma once

#include <cstdint>
#include <string>

#include "core/cli/cli.h"

namespace hark {

struct ProgressReport {
    enum class Unit { seconds, bytes, steps };

    std::string name;  // of what is being done: a recording, a file; empty: the run
    Unit unit = Unit::steps;
    double done = 0, total = 0;    // of it, in units
    double before = 0, after = 0;  // of others in this run: done already, known to follow
    int64_t item = 0, items = 0;   // its number, and of how many; 0: not known
    std::string note;              // shown as it is: "loss 2.61"
};

class Progress {
  public:
    // --progress decides. `auto`: if stderr is a terminal, stdout is not a pipe, and neither
    // --quiet nor --verbose is given. The console must outlive it.
    explicit Progress(Console& console);
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    // Replaces the line, at most ten times per second; in a log adds one, at most one per second.
    // What is complete, or has another name, is shown at once.
    // The speed is measured from the first call, or from the last one whose work is less than
    // before.
    void show(const ProgressReport& report);
    // Writes to the terminal what stays there: the line is gone meanwhile, and comes back below.
    template <class Write>
    void above(const Write& write) {
        const Gap gap(*this);
        write();
    }

  private:
    enum class Form { none, line, log, json };
    // As long as it lives no line is shown.
    struct Gap {
        explicit Gap(Progress& progress) : progress(progress) {
            progress.clear();
            ++progress.gaps_;
        }
        ~Gap() {
            --progress.gaps_;
            progress.draw();
        }
        Progress& progress;
    };

    void clear();
    void draw();
    double speed(const ProgressReport& report, double now);

    Console& console_;
    Form form_ = Form::none;
    std::string name_;  // of the report shown last
    std::string line_;  // empty: none is shown
    int gaps_ = 0;
    double shown_ = 0;  // when a report was shown last, in seconds
    double first_time_ = -1, first_work_ = 0, last_work_ = 0;
};

// The report as a line of at most `columns`, the middle of a long name left out. `speed` is in
// units per second; 0: not known.
std::string progress_line(const ProgressReport& report, double speed, size_t columns);
// The report as a JSON object.
std::string progress_json(const ProgressReport& report, double speed);

}  // namespace hark
