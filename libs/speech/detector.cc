#include "speech/detector.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/error.h"
#include "kernels/runtime/parallel.h"

namespace hark {
namespace {

using Row = std::vector<float>;  // one value per frame

// Hz: limits of the groups of mel bands.
constexpr double kEdges[] = {80,   200,  320,  440,  560,  700,  850,  1000, 1200, 1400, 1650,
                             1900, 2200, 2550, 2950, 3400, 3900, 4500, 5200, 6000, 7000};
constexpr size_t kBands = std::size(kEdges) - 1;

constexpr int64_t kReach = 200;      // frames before and after that a probability covers
constexpr int64_t kSmooth = 1;       // frames on each side, of what is measured
constexpr int64_t kFloorSmooth = 4;  // of the noise floor
constexpr int64_t kFloor = 150;      // frames that a level lasts to be floor
constexpr float kQuiet = -72;        // dB: the least floor, below a recording's own noise
constexpr float kMargin = 2;         // dB from a smooth noise's minimum over 1.5 s to its mean
constexpr float kMaxShape = 40;      // dB
constexpr int64_t kStride = 3;       // frames on each side that are compared
constexpr float kMoves = 2;          // dB
constexpr int kLeastBands = 3;       // that have a shape
constexpr float kWidth = 45;         // dB below the loudest band
constexpr int64_t kShort = 10, kLong = 40;  // frames on each side of the means
static_assert(kReach >= kLong + kFloor - 1 + kFloorSmooth);

// logistic(a * short mean + b * long mean - c), fitted to recordings made by rule; the change's c
// then raised, which trades a little speech at 0 dB for fewer notes taken for it.
struct Gate {
    double a, b, c;
    double operator()(double near, double far) const {
        return 1 / (1 + std::exp(c - a * near - b * far));
    }
};
constexpr Gate kChangeGate = {6, 7.6, 7.2}, kWidthGate = {16, 16, 11.3};

// The mean over `reach` values on each side, fewer at the ends.
Row mean_around(const Row& x, int64_t reach) {
    const int64_t n = std::ssize(x);
    std::vector<double> sums(x.size() + 1);
    for (int64_t i = 0; i < n; ++i) sums[i + 1] = sums[i] + x[i];
    Row means(x.size());
    for (int64_t i = 0; i < n; ++i) {
        const int64_t begin = std::max(int64_t{0}, i - reach), end = std::min(n, i + reach + 1);
        means[i] = static_cast<float>((sums[end] - sums[begin]) / static_cast<double>(end - begin));
    }
    return means;
}

// best[i] of x[i], ..., x[i + length - 1]: size - length + 1 values.
template <class Best>
Row slide(Row x, int64_t length, Best best) {
    const auto step = [&x, &best](int64_t by) {
        const int64_t n = std::ssize(x) - by;
        for (int64_t i = 0; i < n; ++i) x[i] = best(x[i], x[i + by]);
        x.resize(static_cast<size_t>(n));
    };
    int64_t done = 1;
    for (; 2 * done <= length; done *= 2) step(done);
    if (done < length) step(length - done);
    return x;
}

// The highest level that lasts `length` around each value: a morphological opening. Source: Serra
// 1982. A row that is shorter is all one floor.
Row opening(const Row& x, int64_t length) {
    const auto low = [](float a, float b) { return std::min(a, b); };
    const auto high = [](float a, float b) { return std::max(a, b); };
    if (std::ssize(x) <= length) return Row(x.size(), *std::min_element(x.begin(), x.end()));
    Row lowest = slide(x, length, low);
    lowest.insert(lowest.begin(), static_cast<size_t>(length - 1), lowest.front());
    lowest.insert(lowest.end(), static_cast<size_t>(length - 1), lowest.back());
    return slide(std::move(lowest), length, high);
}

float decibels(float power) { return 10 * std::log10(std::max(power, 1e-10f)); }

// The middle of each mel band, Hz. Source: Slaney, Auditory Toolbox, 1998.
std::vector<double> mel_centres(int n_mels) {
    const double top = 15 + 27 / std::log(6.4) * std::log(8.0);  // 8000 Hz
    std::vector<double> centres;
    for (int i = 1; i <= n_mels; ++i) {
        const double mel = top * i / (n_mels + 1);
        centres.push_back(mel < 15 ? 200.0 / 3 * mel
                                   : 1000 * std::exp(std::log(6.4) / 27 * (mel - 15)));
    }
    return centres;
}

// How far the shape moves between two spectra of dB above the floor.
float shape_change(const float* before, const float* after) {
    float mean = 0;
    int bands = 0;
    for (size_t b = 0; b < kBands; ++b) {
        if (before[b] <= 0 && after[b] <= 0) continue;
        mean += after[b] - before[b];
        ++bands;
    }
    if (bands < kLeastBands) return 0;
    mean /= static_cast<float>(bands);
    float change = 0;
    for (size_t b = 0; b < kBands; ++b)
        if (before[b] > 0 || after[b] > 0) change += std::abs(after[b] - before[b] - mean);
    return change / static_cast<float>(bands);
}

}  // namespace

struct Detector::Measures {
    Row change, width;
};

Detector::Detector(int n_mels) : n_mels_(static_cast<size_t>(n_mels)), bands_(kBands) {
    require(n_mels == 80 || n_mels == 128, "wrong number of mels (got ", n_mels,
            ", expected 80 or 128)");
    const std::vector<double> centres = mel_centres(n_mels);
    for (size_t m = 0; m < n_mels_; ++m)
        for (size_t b = 0; b < kBands; ++b)
            if (centres[m] >= kEdges[b] && centres[m] < kEdges[b + 1]) bands_[b].push_back(m);
}

int64_t Detector::frames() const { return first_ + static_cast<int64_t>(power_.size() / n_mels_); }

void Detector::push(std::span<const float> frames, std::vector<float>& probabilities) {
    const size_t piece = n_mels_ * kBlock;  // a long recording is not kept whole
    while (!frames.empty()) {
        const auto part = frames.first(std::min(frames.size(), piece));
        frames = frames.subspan(part.size());
        for (float x : part) power_.push_back(std::pow(10.0f, x));
        while (this->frames() >= emitted_ + kBlock + kReach) emit(emitted_ + kBlock, probabilities);
    }
}

void Detector::finish(std::vector<float>& probabilities) {
    while (emitted_ < frames()) emit(std::min(emitted_ + kBlock, frames()), probabilities);
    power_.clear();
    first_ = emitted_ = 0;
}

void Detector::emit(int64_t end, std::vector<float>& probabilities) {
    const int64_t begin = std::max(emitted_ - kReach, int64_t{0});
    const Measures m = measure(begin, std::min(end + kReach, frames()));
    const Row change[] = {mean_around(m.change, kShort), mean_around(m.change, kLong)};
    const Row width[] = {mean_around(m.width, kShort), mean_around(m.width, kLong)};
    for (int64_t t = emitted_ - begin; t < end - begin; ++t) {
        const double p =
            kChangeGate(change[0][t], change[1][t]) * kWidthGate(width[0][t], width[1][t]);
        probabilities.push_back(static_cast<float>(p));
    }
    emitted_ = end;
    const int64_t keep = std::max(emitted_ - kReach, int64_t{0});
    power_.erase(power_.begin(), power_.begin() + (keep - first_) * static_cast<int64_t>(n_mels_));
    first_ = keep;
}

// Measures the frames [begin, end), which are in power_.
Detector::Measures Detector::measure(int64_t begin, int64_t end) const {
    const size_t n = static_cast<size_t>(end - begin);
    const float* power = power_.data() + static_cast<size_t>(begin - first_) * n_mels_;

    Row above(n * kBands);  // dB above the floor
    for (size_t b = 0; b < kBands; ++b) {
        Row band(n);
        for (size_t t = 0; t < n; ++t) {
            for (size_t m : bands_[b]) band[t] += power[t * n_mels_ + m];
            band[t] /= static_cast<float>(bands_[b].size());
        }
        Row floor = mean_around(band, kFloorSmooth);
        for (float& x : floor) x = decibels(x);
        floor = opening(floor, kFloor);
        const Row smooth = mean_around(band, kSmooth);
        for (size_t t = 0; t < n; ++t)
            above[t * kBands + b] = std::clamp(
                decibels(smooth[t]) - std::max(floor[t], kQuiet) - kMargin, 0.0f, kMaxShape);
    }

    Measures measures{Row(n), Row(n)};
    for (size_t t = 0; t < n; ++t) {
        const size_t before = t < kStride ? 0 : t - kStride;
        const size_t after = std::min<size_t>(t + kStride, n - 1);
        const float change = shape_change(&above[before * kBands], &above[after * kBands]);
        measures.change[t] = change > kMoves ? 1.0f : 0.0f;

        float loudest = 0;
        Row smooth(n_mels_);
        for (size_t m = 0; m < n_mels_; ++m) {
            const size_t last = std::min<size_t>(t + kSmooth, n - 1);
            for (size_t s = t < kSmooth ? 0 : t - kSmooth; s <= last; ++s)
                smooth[m] += power[s * n_mels_ + m] / (2 * kSmooth + 1);
            loudest = std::max(loudest, smooth[m]);
        }
        const float least =
            std::max(loudest * std::pow(10.0f, -kWidth / 10), std::pow(10.0f, kQuiet / 10));
        const auto wide =
            std::count_if(smooth.begin(), smooth.end(), [&](float x) { return x > least; });
        measures.width[t] = static_cast<float>(wide) / static_cast<float>(n_mels_);
    }
    return measures;
}

std::vector<float> Detector::probabilities_of(std::span<const float> recording, int n_mels,
                                              int64_t begin, int64_t end) {
    Detector detector(n_mels);
    detector.first_ = std::max(begin - kReach, int64_t{0});
    detector.emitted_ = begin;
    const int64_t last = std::min<int64_t>(end + kReach, std::ssize(recording) / n_mels);
    std::vector<float> probabilities;
    detector.push(recording.subspan(static_cast<size_t>(detector.first_ * n_mels),
                                    static_cast<size_t>((last - detector.first_) * n_mels)),
                  probabilities);
    while (detector.emitted_ < end)
        detector.emit(std::min(detector.emitted_ + kBlock, end), probabilities);
    return probabilities;
}

std::vector<Region> speech_in_log_mel(std::span<const float> frames, int n_mels, int64_t samples,
                                      const RegionOptions& options, int threads) {
    constexpr int64_t kPart = 5 * Detector::kBlock;  // 10 s: many in a short recording too
    const int64_t n = std::ssize(frames) / n_mels, parts = (n + kPart - 1) / kPart;
    std::vector<std::vector<float>> each(static_cast<size_t>(parts));
    static_cast<void>(
        Detector(n_mels));  // an error is thrown here: a thread's would end the program
    parallel_for(threads, parts, [&](int64_t i) {
        each[static_cast<size_t>(i)] =
            Detector::probabilities_of(frames, n_mels, i * kPart, std::min((i + 1) * kPart, n));
    });
    std::vector<float> probabilities;
    for (const std::vector<float>& part : each)
        probabilities.insert(probabilities.end(), part.begin(), part.end());
    return find_regions(probabilities, Detector::kStep, samples, options);
}

}  // namespace hark
