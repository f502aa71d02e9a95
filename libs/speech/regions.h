// Regions of speech, and the time line of a recording without the rest.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/cli/cli.h"
#include "formats/recordings.h"

namespace hark {

// How probabilities become regions. Times are in seconds.
struct RegionOptions {
    double threshold = 0.5;    // speech begins at this probability and ends 0.15 below it
    double min_speech = 0.1;   // shorter runs are dropped
    double min_silence = 0.5;  // shorter pauses do not end a region
    double max_speech = std::numeric_limits<double>::infinity();  // longer regions are cut
    double pad = 0.2;                                             // added on both sides

    void flags(Flags& flags);
};

// Makes regions of the probabilities of successive steps. Source: faster-whisper 1.2.1, vad.py,
// get_speech_timestamps, itself after Silero VAD's function of that name: hysteresis; a run longer
// than max_speech is cut at its last pause of 98 ms, or at its end; two regions closer
// than twice the pad share the pause between them.
class RegionFinder {
  public:
    // `step`: samples per probability.
    RegionFinder(const RegionOptions& options, int64_t step);

    // Appends the regions that can no longer change: sorted, disjoint, not empty.
    void push(std::span<const float> probabilities, std::vector<Region>& regions);
    // Ends the recording after `samples` samples and appends the rest, clipped to it.
    void finish(int64_t samples, std::vector<Region>& regions);

  private:
    enum class Cut { no, continues, ends };

    void step(double probability, std::vector<Region>& regions);
    Cut cut_long_run(std::vector<Region>& regions);
    void end_run();
    void found(Region run, std::vector<Region>& regions);

    double threshold_, exit_threshold_;
    int64_t min_speech_, min_silence_, pad_, step_;
    double max_speech_;
    int64_t now_ = 0;  // the next step's first sample

    bool speaking_ = false;
    int64_t begin_ = 0;  // of the run
    // As in the reference, 0 for none: begin of the pause that may end the run, the last pause
    // that allows a cut, and where speech continued after it.
    int64_t pause_ = 0, cut_end_ = 0, cut_begin_ = 0;

    bool waiting_ = false;  // last_ is found; its end depends on what follows
    Region last_;           // its begin is padded already
};

// Returns the regions of a recording from all its probabilities.
std::vector<Region> find_regions(std::span<const float> probabilities, int64_t step,
                                 int64_t samples, const RegionOptions& options);

// Maps times between a recording and its packed time line: its speech end to end, cut at whole mel
// frames of 160 samples. All positions are samples. Every sample of a kept frame maps there and
// back exactly.
class TimeMap {
  public:
    static constexpr int64_t kFrame = 160;

    // `recording` samples at `packed` on, `length` of them; all multiples of kFrame.
    struct Piece {
        int64_t recording, packed, length;
    };

    // Widens sorted regions to whole frames, joins those that then touch, and clips them to the
    // recording's `frames`. Throws Error unless the regions are sorted and disjoint.
    TimeMap(std::span<const Region> regions, int64_t frames);

    const std::vector<Piece>& pieces() const { return pieces_; }
    int64_t length() const { return length_; }  // of the packed time line

    // Returns the time in the recording of a time on the packed line. On the boundary of two pieces
    // a start belongs to the piece after it and an end to the one before it. Clamped to the first
    // and the last piece; 0 without pieces.
    int64_t start_in_recording(int64_t packed) const;
    int64_t end_in_recording(int64_t packed) const;
    double start_in_recording_s(double packed) const { return in_recording_s(packed, false); }
    double end_in_recording_s(double packed) const { return in_recording_s(packed, true); }

    // Returns the packed time of a time in the recording; between two pieces, their boundary.
    int64_t in_packed(int64_t recording) const;
    // Whether the recording's sample is kept.
    bool keeps(int64_t recording) const;

  private:
    double in_recording_s(double packed, bool end) const;
    const Piece& piece_at(double packed, bool end) const;

    std::vector<Piece> pieces_;
    int64_t length_ = 0;
};

}  // namespace hark
