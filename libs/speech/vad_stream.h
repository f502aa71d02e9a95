// Adds the regions of speech to the chunks of one recording.
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "audio/log_mel.h"
#include "formats/recordings.h"
#include "speech/detector.h"
#include "speech/silero.h"

namespace hark {

// The built-in detector on samples.
class MelDetector {
  public:
    void push(std::span<const float> samples, std::vector<float>& probabilities);
    void finish(std::vector<float>& probabilities);

  private:
    static constexpr int kMels = 80;
    LogMel log_mel_{kMels};
    Detector detector_{kMels};
};

class VadStream {
  public:
    // Uses the built-in detector if `silero` is null.
    VadStream(const RegionOptions& options, const std::shared_ptr<const SileroModel>& silero);

    // Adds the regions that this chunk makes known, and the detector's name.
    void add_regions(Chunk& chunk);
    // Returns a last chunk with the remaining regions, for a recording whose own is missing.
    Chunk end_with(const std::string& error);

  private:
    std::variant<MelDetector, Silero> detector_;
    RegionFinder finder_;
    Chunk next_;  // without tensors: the recording's names, and where its next chunk starts
};

}  // namespace hark
