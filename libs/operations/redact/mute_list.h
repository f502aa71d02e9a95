// ffmpeg's filter that silences parts of a recording.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace hark::redact {

// Seconds that are silenced before and after each word: its times are not exact.
inline constexpr double kMutePadding = 0.25;

class MuteList {
  public:
    // Adds a part; parts come in the order of their beginnings, or nearly.
    void add(double begin, double end);
    // For `ffmpeg -filter_script:a`: "volume=0:enable='between(t,1.25,2.5)+between(t,9,11)'"; the
    // filter that changes nothing if there is no part.
    std::string filter() const;

  private:
    std::vector<std::pair<double, double>> parts_;  // padded
};

}  // namespace hark::redact
