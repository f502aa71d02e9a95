#include "speech/regions.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace hark {
namespace {

constexpr double kHysteresis = 0.15, kLeastExit = 0.01;
constexpr int64_t kCutPause = 98 * kSampleRate / 1000;  // a longer pause allows a cut

int64_t in_samples(double seconds) { return std::llround(seconds * kSampleRate); }

}  // namespace

void RegionOptions::flags(Flags& flags) {
    flags.section("Regions");
    flags.add("threshold", threshold, "P probability at which speech begins", 0.01, 1)
        .essential()
        .details("Speech ends 0.15 below it.");
    flags.add("min-speech", min_speech, "SECONDS of speech; shorter runs are dropped", 0, 3600)
        .essential();
    flags.add("min-silence", min_silence, "SECONDS of silence that end a region", 0, 3600)
        .essential();
    flags
        .add("max-speech", max_speech, "SECONDS of a region at most", 1,
             std::numeric_limits<double>::infinity())
        .details("A longer region is cut at its last pause.");
    flags.add("pad", pad, "SECONDS added before and after each region", 0, 60).essential();
}

RegionFinder::RegionFinder(const RegionOptions& options, int64_t step)
    : threshold_(options.threshold),
      exit_threshold_(std::max(options.threshold - kHysteresis, kLeastExit)),
      min_speech_(in_samples(options.min_speech)),
      min_silence_(in_samples(options.min_silence)),
      pad_(in_samples(options.pad)),
      step_(step),
      max_speech_(options.max_speech * kSampleRate - static_cast<double>(step + 2 * pad_)) {}

void RegionFinder::push(std::span<const float> probabilities, std::vector<Region>& regions) {
    for (float probability : probabilities) {
        step(probability, regions);
        now_ += step_;
        if (waiting_ && !speaking_ && now_ - last_.end >= 2 * pad_ + step_) {
            regions.push_back({last_.begin, last_.end + pad_});
            waiting_ = false;
        }
    }
}

void RegionFinder::step(double probability, std::vector<Region>& regions) {
    const bool speech = probability >= threshold_;
    if (speech && pause_ != 0) {
        pause_ = 0;
        if (cut_begin_ < cut_end_) cut_begin_ = now_;
    }
    if (speech && !speaking_) {
        speaking_ = true;
        begin_ = now_;
        return;
    }
    if (!speaking_) return;
    if (static_cast<double>(now_ - begin_) > max_speech_) {
        if (cut_long_run(regions) == Cut::ends) return;
    }
    if (probability >= exit_threshold_) return;
    if (pause_ == 0) pause_ = now_;
    const int64_t silent = now_ - pause_;
    if (silent > kCutPause) cut_end_ = pause_;
    if (silent < min_silence_) return;
    if (pause_ - begin_ > min_speech_) found({begin_, pause_}, regions);
    end_run();
}

// A run that has become too long ends at its last pause, and the rest is the next one.
RegionFinder::Cut RegionFinder::cut_long_run(std::vector<Region>& regions) {
    const bool continues = cut_end_ != 0 && cut_begin_ >= cut_end_;
    const int64_t next = cut_begin_;
    found({begin_, cut_end_ != 0 ? cut_end_ : now_}, regions);
    end_run();
    if (!continues) return Cut::ends;
    speaking_ = true;
    begin_ = next;
    return Cut::continues;
}

void RegionFinder::end_run() {
    speaking_ = false;
    pause_ = cut_end_ = cut_begin_ = 0;
}

// A new run decides the end of the one before it.
void RegionFinder::found(Region run, std::vector<Region>& regions) {
    int64_t begin = std::max(run.begin - pad_, int64_t{0});
    if (waiting_) {
        const int64_t share = std::min((run.begin - last_.end) / 2, pad_);
        regions.push_back({last_.begin, last_.end + share});
        begin = run.begin - share;
    }
    last_ = {begin, run.end};
    waiting_ = true;
}

void RegionFinder::finish(int64_t samples, std::vector<Region>& regions) {
    if (speaking_ && samples - begin_ > min_speech_) found({begin_, samples}, regions);
    if (waiting_) {
        const Region rest{last_.begin, std::min(last_.end + pad_, samples)};
        if (rest.begin < rest.end) regions.push_back(rest);
    }
    end_run();
    waiting_ = false;
    now_ = 0;
}

std::vector<Region> find_regions(std::span<const float> probabilities, int64_t step,
                                 int64_t samples, const RegionOptions& options) {
    RegionFinder finder(options, step);
    std::vector<Region> regions;
    finder.push(probabilities, regions);
    finder.finish(samples, regions);
    return regions;
}

TimeMap::TimeMap(std::span<const Region> regions, int64_t frames) {
    int64_t end = 0;  // the end of the region before
    for (const Region& region : regions) {
        require(region.begin >= end && region.end >= region.begin,
                "regions of speech overlap or are not sorted (got [", region.begin, ", ",
                region.end, ") after one that ends at ", end, ")");
        end = region.end;
        int64_t begin = region.begin / kFrame * kFrame;
        const int64_t end =
            std::min((region.end / kFrame + (region.end % kFrame != 0)) * kFrame, frames * kFrame);
        if (!pieces_.empty()) {
            Piece& before = pieces_.back();
            begin = std::max(begin, before.recording + before.length);
            if (begin == before.recording + before.length && end > begin) {
                before.length += end - begin;
                length_ += end - begin;
                continue;
            }
        }
        if (begin >= end) continue;
        pieces_.push_back({begin, length_, end - begin});
        length_ += end - begin;
    }
}

const TimeMap::Piece& TimeMap::piece_at(double packed, bool end) const {
    auto next = std::partition_point(pieces_.begin(), pieces_.end(), [&](const Piece& piece) {
        const double begin = static_cast<double>(piece.packed);
        return end ? begin < packed : begin <= packed;
    });
    return next == pieces_.begin() ? pieces_.front() : *std::prev(next);
}

int64_t TimeMap::start_in_recording(int64_t packed) const {
    if (pieces_.empty()) return 0;
    packed = std::clamp(packed, int64_t{0}, length_);
    const Piece& piece = piece_at(static_cast<double>(packed), false);
    return piece.recording + packed - piece.packed;
}

int64_t TimeMap::end_in_recording(int64_t packed) const {
    if (pieces_.empty()) return 0;
    packed = std::clamp(packed, int64_t{0}, length_);
    const Piece& piece = piece_at(static_cast<double>(packed), true);
    return piece.recording + packed - piece.packed;
}

double TimeMap::in_recording_s(double packed, bool end) const {
    if (pieces_.empty()) return 0;
    double at = std::clamp(packed * kSampleRate, 0.0, static_cast<double>(length_));
    // A boundary's time in seconds may be a rounding away from its sample.
    if (std::abs(at - std::round(at)) < 1e-5) at = std::round(at);
    const Piece& piece = piece_at(at, end);
    return (at + static_cast<double>(piece.recording - piece.packed)) / kSampleRate;
}

int64_t TimeMap::in_packed(int64_t recording) const {
    const auto next = std::partition_point(pieces_.begin(), pieces_.end(), [&](const Piece& piece) {
        return piece.recording <= recording;
    });
    if (next == pieces_.begin()) return 0;
    const Piece& piece = *std::prev(next);
    return piece.packed + std::min(recording - piece.recording, piece.length);
}

bool TimeMap::keeps(int64_t recording) const {
    const auto next = std::partition_point(pieces_.begin(), pieces_.end(), [&](const Piece& piece) {
        return piece.recording <= recording;
    });
    if (next == pieces_.begin()) return false;
    const Piece& piece = *std::prev(next);
    return recording < piece.recording + piece.length;
}

}  // namespace hark
