#include "speech/detector.h"

#include <algorithm>
#include <cmath>

#include "audio/mel_scale.h"
#include "core/error.h"
#include "kernels/runtime/parallel.h"

namespace hark {
namespace {

using Row = std::vector<float>;  // one value per frame

// Hz: limits of the groups of mel bands.
constexpr double kEdges[] = {80,   200,  320,  440,  560,  700,  850,  1000, 1200, 1400, 1650,
                             1900, 2200, 2550, 2950, 3400, 3900, 4500, 5200, 6000, 7000};
constexpr int64_t kBands = std::ssize(kEdges) - 1;

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

// Sums of columns of `Columns` values per frame: the first `frames` rows, for any number of them.
template <int64_t Columns>
std::vector<double> sums_of(const float* x, int64_t frames) {
    std::vector<double> sums(static_cast<size_t>((frames + 1) * Columns));
    for (int64_t i = 0; i < frames * Columns; ++i) sums[i + Columns] = sums[i] + x[i];
    return sums;
}

// Each column's mean over `reach` frames on each side of the frames [first, last), fewer at the
// ends.
template <int64_t Columns>
Row means_around(const std::vector<double>& sums, int64_t reach, int64_t first, int64_t last) {
    const int64_t n = std::ssize(sums) / Columns - 1;
    Row means(static_cast<size_t>((last - first) * Columns));
    for (int64_t t = first; t < last; ++t) {
        const int64_t begin = std::max(int64_t{0}, t - reach), end = std::min(n, t + reach + 1);
        const double *from = &sums[begin * Columns], *to = &sums[end * Columns];
        for (int64_t c = 0; c < Columns; ++c)
            means[(t - first) * Columns + c] =
                static_cast<float>((to[c] - from[c]) / static_cast<double>(end - begin));
    }
    return means;
}

// best[i] of the frames i, ..., i + length - 1 of each band: frames - length + 1 of them.
template <class Best>
Row slide(Row x, int64_t length, Best best) {
    const auto step = [&x, &best](int64_t frames) {
        const int64_t by = frames * kBands, n = std::ssize(x) - by;
        float* values = x.data();
        for (int64_t i = 0; i < n; ++i) values[i] = best(values[i], values[i + by]);
        x.resize(static_cast<size_t>(n));
    };
    int64_t done = 1;
    for (; 2 * done <= length; done *= 2) step(done);
    if (done < length) step(length - done);
    return x;
}

// The highest level that lasts `length` frames around each value of a band: a morphological
// opening. Source: Serra 1982. If there are fewer frames, they are all one floor.
Row opening(const Row& x, int64_t length) {
    const auto low = [](float a, float b) { return std::min(a, b); };
    const auto high = [](float a, float b) { return std::max(a, b); };
    const int64_t n = std::ssize(x) / kBands;
    const Row lowest = slide(x, std::min(n, length), low);
    // The first and the last frame again and again, as many as the minimum has taken away.
    const int64_t pad = length - 1, kept = std::ssize(lowest) / kBands;
    Row padded(static_cast<size_t>((kept + 2 * pad) * kBands));
    for (int64_t t = 0; t < kept + 2 * pad; ++t)
        std::copy_n(&lowest[std::clamp<int64_t>(t - pad, 0, kept - 1) * kBands], kBands,
                    &padded[t * kBands]);
    Row opened = slide(std::move(padded), length, high);
    opened.resize(x.size());
    return opened;
}

float decibels(float power) { return 10 * std::log10(std::max(power, 1e-10f)); }

// The middle of each mel band, Hz.
std::vector<double> mel_centres(int n_mels) {
    const double top = hz_to_mel(8000);
    std::vector<double> centres;
    for (int i = 1; i <= n_mels; ++i) centres.push_back(mel_to_hz(top * i / (n_mels + 1)));
    return centres;
}

// How far the shape moves between two spectra of dB above the floor.
float shape_change(const float* before, const float* after) {
    float mean = 0;
    int bands = 0;
    for (int64_t b = 0; b < kBands; ++b) {
        if (before[b] <= 0 && after[b] <= 0) continue;
        mean += after[b] - before[b];
        ++bands;
    }
    if (bands < kLeastBands) return 0;
    mean /= static_cast<float>(bands);
    float change = 0;
    for (int64_t b = 0; b < kBands; ++b)
        if (before[b] > 0 || after[b] > 0) change += std::abs(after[b] - before[b] - mean);
    return change / static_cast<float>(bands);
}

}  // namespace

Detector::Detector(int n_mels) : n_mels_(static_cast<size_t>(n_mels)) {
    require(n_mels == 80 || n_mels == 128, "wrong number of mels (got ", n_mels,
            ", expected 80 or 128)");
    const std::vector<double> centres = mel_centres(n_mels);
    for (const double edge : kEdges)
        edges_.push_back(std::ranges::lower_bound(centres, edge) - centres.begin());
    for (Row& row : recent_) row.resize(n_mels_);
}

int64_t Detector::frames() const { return first_ + std::ssize(band_power_) / kBands; }

void Detector::push(std::span<const float> frames, std::vector<float>& probabilities) {
    for (; !frames.empty(); frames = frames.subspan(n_mels_)) {
        add(frames.first(n_mels_));
        if (this->frames() >= emitted_ + kBlock + kReach) emit(emitted_ + kBlock, probabilities);
    }
}

void Detector::finish(std::vector<float>& probabilities) {
    end();
    while (emitted_ < frames()) emit(std::min(emitted_ + kBlock, frames()), probabilities);
    band_power_.clear();
    width_.clear();
    for (Row& row : recent_) std::ranges::fill(row, 0.0f);
    first_ = emitted_ = 0;
}

// Keeps of a frame the mean power of each band. The frame before it has its width now.
void Detector::add(std::span<const float> log_mel) {
    float power[kMostMels];
    for (size_t m = 0; m < n_mels_; ++m) power[m] = std::pow(10.0f, log_mel[m]);
    std::ranges::rotate(recent_, recent_.begin() + 1);
    for (size_t m = 0; m < n_mels_; ++m) recent_[2][m] = power[m] / (2 * kSmooth + 1);
    if (frames() > first_) add_width();
    for (int64_t b = 0; b < kBands; ++b) {
        float sum = 0;
        for (int64_t m = edges_[b]; m < edges_[b + 1]; ++m) sum += power[m];
        band_power_.push_back(sum / static_cast<float>(edges_[b + 1] - edges_[b]));
    }
}

// The last frame has no frame after it.
void Detector::end() {
    if (frames() == first_) return;
    std::ranges::rotate(recent_, recent_.begin() + 1);
    std::ranges::fill(recent_[2], 0.0f);
    add_width();
}

// The width of the second of the three frames, from the mean of the three.
void Detector::add_width() {
    constexpr size_t kLanes = 16;  // which a compiler turns into vectors
    static_assert(kSmooth == 1 && kMostMels % kLanes == 0);
    float smooth[kMostMels], lanes[kLanes] = {};
    for (size_t first = 0; first < n_mels_; first += kLanes)
        for (size_t lane = 0; lane < kLanes; ++lane) {
            const size_t m = first + lane;
            smooth[m] = recent_[0][m] + recent_[1][m] + recent_[2][m];
            lanes[lane] = lanes[lane] < smooth[m] ? smooth[m] : lanes[lane];
        }
    const float loudest = *std::max_element(lanes, lanes + kLanes);
    const float least =
        std::max(loudest * std::pow(10.0f, -kWidth / 10), std::pow(10.0f, kQuiet / 10));
    int wide = 0;
    for (size_t m = 0; m < n_mels_; ++m) wide += smooth[m] > least;
    width_.push_back(static_cast<float>(wide) / static_cast<float>(n_mels_));
}

void Detector::emit(int64_t end, std::vector<float>& probabilities) {
    // Frames that the means of the measures cover.
    const int64_t begin = std::max(emitted_ - kLong, first_);
    const int64_t last = std::min(end + kLong, frames());
    const Row moves = change(begin, last, std::min(end + kReach, frames()));
    const auto means = [&](const float* x, int64_t reach) {
        return means_around<1>(sums_of<1>(x, last - begin), reach, emitted_ - begin, end - begin);
    };
    const float* const width = width_.data() + (begin - first_);
    const Row changes[] = {means(moves.data(), kShort), means(moves.data(), kLong)};
    const Row widths[] = {means(width, kShort), means(width, kLong)};
    for (int64_t t = 0; t < end - emitted_; ++t) {
        const double p =
            kChangeGate(changes[0][t], changes[1][t]) * kWidthGate(widths[0][t], widths[1][t]);
        probabilities.push_back(static_cast<float>(p));
    }
    emitted_ = end;
    const int64_t keep = std::max(emitted_ - kReach, int64_t{0});
    band_power_.erase(band_power_.begin(), band_power_.begin() + (keep - first_) * kBands);
    width_.erase(width_.begin(), width_.begin() + (keep - first_));
    first_ = keep;
}

// Whether the shape moves, 1 or 0, at each of the frames [begin, end), from those in [first_, to).
std::vector<float> Detector::change(int64_t begin, int64_t end, int64_t to) const {
    const int64_t n = to - first_;
    const std::vector<double> sums = sums_of<kBands>(band_power_.data(), n);
    Row floor = means_around<kBands>(sums, kFloorSmooth, 0, n);
    for (float& x : floor) x = decibels(x);
    floor = opening(floor, kFloor);

    // dB above the floor, of the frames that are compared
    const int64_t first = std::max(begin - first_ - kStride, int64_t{0});
    Row above = means_around<kBands>(sums, kSmooth, first, std::min(end - first_ + kStride, n));
    for (size_t i = 0; i < above.size(); ++i) {
        const float least = std::max(floor[static_cast<size_t>(first * kBands) + i], kQuiet);
        above[i] = std::clamp(decibels(above[i]) - least - kMargin, 0.0f, kMaxShape);
    }
    Row moves;
    for (int64_t t = begin - first_; t < end - first_; ++t) {
        const int64_t before = std::max(t - kStride, int64_t{0}) - first;
        const int64_t after = std::min(t + kStride, n - 1) - first;
        const float moved = shape_change(&above[before * kBands], &above[after * kBands]);
        moves.push_back(moved > kMoves ? 1.0f : 0.0f);
    }
    return moves;
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
    detector.end();
    while (detector.emitted_ < end)
        detector.emit(std::min(detector.emitted_ + kBlock, end), probabilities);
    return probabilities;
}

std::vector<Region> speech_in_log_mel(std::span<const float> frames, int n_mels, int64_t samples,
                                      const RegionOptions& options, int threads) {
    // At least 10 s, since 4 s more are read for each; four or more for a thread if it is long.
    const int64_t n = std::ssize(frames) / n_mels;
    const int64_t part =
        std::max<int64_t>(5, n / (4 * threads) / Detector::kBlock) * Detector::kBlock;
    const int64_t parts = (n + part - 1) / part;
    std::vector<std::vector<float>> each(static_cast<size_t>(parts));
    static_cast<void>(
        Detector(n_mels));  // an error is thrown here: a thread's would end the program
    parallel_for(threads, parts, [&](int64_t i) {
        each[static_cast<size_t>(i)] =
            Detector::probabilities_of(frames, n_mels, i * part, std::min((i + 1) * part, n));
    });
    std::vector<float> probabilities;
    for (const std::vector<float>& some : each)
        probabilities.insert(probabilities.end(), some.begin(), some.end());
    return find_regions(probabilities, Detector::kStep, samples, options);
}

}  // namespace hark
