#include "audio/coverage.h"

#include <algorithm>
#include <cstdio>

#include "core/error.h"
#include "formats/recordings.h"

namespace hark {
namespace {

// Containers round timestamps to 1 ms, and a recorder's clock drifts by less than that per packet.
constexpr double kMinStep = 0.005;

std::string fixed(double seconds, int digits) {
    char text[64];
    std::snprintf(text, sizeof text, "%.*f", digits, seconds);
    return text;
}

}  // namespace

void Coverage::add_damage(double at, double seconds) {
    damaged_ = true;
    if (!std::isnan(at)) damage_end_ = at + seconds;
    if (std::isnan(end_)) end_ = begin_ = at;
    if (std::isnan(first_damage_) && !std::isnan(end_)) first_damage_ = end_ - begin_;
}

void Coverage::add_frame(double at, double seconds) {
    if (std::isnan(end_)) end_ = begin_ = std::isnan(at) ? 0 : at;
    const bool late =
        !from_zero_ && !damaged_ && decoded_ <= kMaxMissing && at - end_ >= kMaxMissing;
    if (late) end_ = begin_ = at;  // some tracks have an encoder's delay at 0 and begin later
    const double step = at - end_;
    if (damaged_ && !counted_ ? step > 0 : step >= kMaxMissing) {
        if (gap_count_++ == 0) first_gap_ = end_ - begin_;
        gaps_ += step;
    } else if (std::abs(step) >= kMinStep) {
        steps_ = std::max(0.0, steps_ + step);
    }
    if (!std::isnan(at)) end_ = at;
    end_ += seconds;
    decoded_ += seconds;
    damaged_ = false;
}

double Coverage::end() const {
    if (std::isnan(end_)) return 0;
    return (counted_ ? begin_ + decoded_ + gaps_ : end_) + padding_;
}

Loss Coverage::loss(double declared, double found) const {
    const double short_by = declared > 0 ? std::max(0.0, declared - found) : 0;
    double inside = gaps_ + (counted_ ? 0 : steps_);
    if (damaged_) inside += std::max(0.0, damage_end_ - end_ - short_by);  // the last packets
    // A damaged timestamp may be years ahead.
    if (declared > 0 && inside > declared) inside = std::max(0.0, declared - decoded_);
    if (inside + short_by <= kMaxMissing) return {};
    std::string text, end;
    if (short_by > kMaxMissing || short_by > inside) text = end = ends_at(found, declared);
    if (inside > kMaxMissing || text.empty()) {
        if (!text.empty()) text += "; ";
        text += fixed(inside, inside < kMaxMissing ? 3 : 1) + " s are missing";
        if (gap_count_ == 1) text += " at " + fixed(first_gap_, 1) + " s";
        if (gap_count_ > 1)
            text += concat(" in ", gap_count_, " places, first at ", fixed(first_gap_, 1), " s");
    } else if (!std::isnan(first_damage_) && first_damage_ < found - kMaxMissing) {
        text += "; damaged at " + fixed(first_damage_, 1) + " s";
    }
    return {text, text == end};
}

}  // namespace hark
