// How much of a recording has been decoded: by timestamps, and by the length that it declares.
#pragma once

#include <cmath>
#include <limits>
#include <string>

#include "audio/decoder.h"
#include "formats/recordings.h"

namespace hark {

// All times are in seconds. A gap is where a frame's timestamp is later than the end of the frame
// before it.
class Coverage {
  public:
    // libav has counted the timestamps packet by packet: a packet that was not decoded leaves no
    // gap, and the end is that of what was decoded.
    void set_counted() { counted_ = true; }
    // Counts from 0 on; without it from the first packet on, since a track may begin late.
    void begin_at_zero() {
        end_ = begin_ = 0;
        from_zero_ = true;
    }
    // A packet of `seconds` at `at` (NaN if unknown) was not decoded or was incomplete: the next
    // gap counts, however short it is.
    void add_damage(double at, double seconds);
    // A frame of `seconds` was decoded; `at` is its timestamp, NaN if it has none.
    void add_frame(double at, double seconds);
    // Seconds after the last frame that the container tells the decoder to drop.
    void set_padding(double seconds) { padding_ = seconds; }

    double end() const;
    double decoded() const { return decoded_; }
    // What is missing, if that is more than kMaxMissing. `declared` is where the recording ends, 0
    // if nothing says so, and `found` the end that is compared with it.
    Loss loss(double declared, double found) const;

  private:
    double begin_ = std::numeric_limits<double>::quiet_NaN();  // expected timestamp, first frame
    double end_ = begin_;                                      // of the last frame
    double decoded_ = 0, padding_ = 0;
    double gaps_ = 0, first_gap_ = 0;  // total length, and where the first one is
    int gap_count_ = 0;
    double steps_ = 0;  // total of steps in the timestamps that are too short for a gap
    double first_damage_ = begin_;
    bool counted_ = false, from_zero_ = false;
    bool damaged_ = false;   // since the last frame
    double damage_end_ = 0;  // of the newest such packet
};

}  // namespace hark
