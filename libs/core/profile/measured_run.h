// What --profile, --stats and --metrics tell of a run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/cli/cli.h"
#include "core/profile/profile.h"

namespace hark {

// Throws Error if there is a file of that name that begins with something else: a recording whose
// name was given by mistake stays. An empty file may be overwritten.
void refuse_other_file(const std::string& path, std::string_view beginning);

// Measures from its construction on if the console's flags ask for it, or if the run is traced by
// NVIDIA's nsys.
class MeasuredRun {
  public:
    // Throws Error if a file cannot be written.
    MeasuredRun(const char* tool, Console& console);
    // Writes what is left of the profile and, of a run that has failed, the metrics. Ends the
    // measuring.
    ~MeasuredRun();
    MeasuredRun(const MeasuredRun&) = delete;
    MeasuredRun& operator=(const MeasuredRun&) = delete;

    // Ends an orderly run: writes the tables and the metrics. Throws Error if a file cannot be
    // written.
    void finish();

  private:
    void write_tables(double seconds) const;
    double seconds() const { return static_cast<double>(monotonic_ns() - began_) / 1e9; }
    void write_metrics(bool has_failed) const;

    std::string tool_;
    Console& console_;
    int64_t began_;
    std::optional<ProfileFile> file_;
    int metrics_ = -1;  // the file as it was before the run
    bool has_finished_ = false;
};

}  // namespace hark
