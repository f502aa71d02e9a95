// The speech detector that needs no weights: speech rises above the noise, over a wide
// band, and does not keep its shape.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "speech/regions.h"

namespace hark {

// Reads log-mel frames as Whisper's front end makes them: log10 of the mel power, at least -10, not
// normalised, 80 or 128 bands, a frame each 160 samples at 16 kHz. docs/speech.md explains the
// measures, what the detector finds and where it fails.
//
// A frame's probability is the product of two logistic functions, each of one measure's means over
// 0.2 s and over 0.8 s around the frame:
//   change the share of frames in which the spectrum's shape, its level taken out, moves by more
//          than 2 dB in 60 ms. The shape is that of the levels above the noise floor in 20 bands,
//          and a band's floor is its morphological opening over 1.5 s: the highest level that lasts
//          as long around the frame. So noise, hums and held tones are floor from their first frame
//          on, and noise that swells and notes that fade keep their shape; speech does neither.
//   width  the share of the mel bands within 45 dB of the frame's loudest: chirps and whistles move
//          as speech does, in few bands.
// Sources: minimum statistics (Martin 2001) for the floor, long-term spectral divergence (Ramirez
// et al. 2004) and the modulation spectrum of speech (Greenberg and Kingsbury 1997) for the change.
class Detector {
  public:
    static constexpr int64_t kStep = 160;  // samples per probability

    // Throws Error unless n_mels is 80 or 128.
    explicit Detector(int n_mels);

    // Takes the recording's next frames, n_mels values each, low frequencies first. Appends the
    // probabilities of the frames that are now complete, at most 4 s later. How the frames are cut
    // into pushes does not change a bit.
    void push(std::span<const float> frames, std::vector<float>& probabilities);
    // Ends the recording: appends the probabilities of its last frames.
    void finish(std::vector<float>& probabilities);

    // The probabilities of the frames [begin, end) of a whole recording, the same bits as push()
    // and finish() give. `begin` is a multiple of kBlock, and so is `end` unless it is the last
    // frame's.
    static std::vector<float> probabilities_of(std::span<const float> recording, int n_mels,
                                               int64_t begin, int64_t end);
    static constexpr int64_t kBlock = 200;  // frames per emission

  private:
    static constexpr size_t kMostMels = 128;

    void add(std::span<const float> log_mel);
    void end();
    void add_width();
    void emit(int64_t end, std::vector<float>& probabilities);
    std::vector<float> change(int64_t begin, int64_t end, int64_t to) const;
    int64_t frames() const;  // received

    size_t n_mels_;
    std::vector<int64_t> edges_;     // the mel bands where the 20 bands begin, and the end
    std::vector<float> band_power_;  // (frames, 20), from frame first_ on
    std::vector<float> width_;       // (frames), from frame first_ on; not yet of the newest
    std::array<std::vector<float>, 3> recent_;  // a third of the newest frames' power; zeros before
    int64_t first_ = 0;
    int64_t emitted_ = 0;  // frames
};

// Returns the regions of speech in a recording of `samples` samples, from its frames (frames,
// n_mels). Any number of threads gives the same.
std::vector<Region> speech_in_log_mel(std::span<const float> frames, int n_mels, int64_t samples,
                                      const RegionOptions& options, int threads = 1);

}  // namespace hark
