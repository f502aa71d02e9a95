#include "audio/log_mel.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "audio/fft.h"
#include "core/error.h"
#include "core/recordings.h"

namespace hark {
namespace {

constexpr int kWindow = PowerSpectrum400::kSize;  // n_fft
constexpr int kHop = 160;                         // hop_length
constexpr int kBins = PowerSpectrum400::kBins;

// Slaney's mel scale: linear below 1000 Hz, where mel 15 stands, logarithmic above.
// Source: Slaney, Auditory Toolbox, 1998; librosa.mel_to_hz.
double mel_to_hz(double mel) {
    return mel < 15 ? 200.0 / 3 * mel : 1000 * std::exp(std::log(6.4) / 27 * (mel - 15));
}
double hz_to_mel(double hz) {
    return hz < 1000 ? hz * 3 / 200 : 15 + 27 / std::log(6.4) * std::log(hz / 1000);
}

// One triangle over the bins [begin, begin + weights.size()).
struct MelFilter {
    int begin = 0;
    std::vector<double> weights;
};

// Source: librosa.filters.mel(htk=False, norm="slaney").
std::vector<MelFilter> mel_filters(int n_mels) {
    std::vector<double> corner(static_cast<size_t>(n_mels) + 2);  // Hz
    const double top = hz_to_mel(kSampleRate / 2.0);
    for (size_t i = 0; i < corner.size(); ++i)
        corner[i] = mel_to_hz(top * static_cast<double>(i) / (n_mels + 1));
    std::vector<MelFilter> filters(static_cast<size_t>(n_mels));
    for (size_t m = 0; m < filters.size(); ++m) {
        const double low = corner[m], middle = corner[m + 1], high = corner[m + 2];
        for (int bin = 0; bin < kBins; ++bin) {
            const double hz = static_cast<double>(bin) * kSampleRate / kWindow;
            const double weight =
                std::min((hz - low) / (middle - low), (high - hz) / (high - middle));
            if (weight <= 0) continue;
            if (filters[m].weights.empty()) filters[m].begin = bin;
            filters[m].weights.push_back(weight * 2 / (high - low));
        }
    }
    return filters;
}

}  // namespace

int64_t content_frames(int64_t samples) { return samples / kHop; }

int64_t log_mel_frames(int64_t samples) {
    return content_frames(samples) + (samples % kHop > 121 ? 3 : 2);
}

struct LogMel::Tables {
    PowerSpectrum400 spectrum;
    double window[kWindow];
    std::vector<MelFilter> filters;

    explicit Tables(int n_mels) : filters(mel_filters(n_mels)) {
        for (int n = 0; n < kWindow; ++n)
            window[n] = 0.5 - 0.5 * std::cos(2 * std::numbers::pi * n / kWindow);
    }
};

LogMel::LogMel(int n_mels) {
    require(n_mels == 80 || n_mels == 128, "expected 80 or 128 mels, found ", n_mels);
    tables_ = std::make_shared<const Tables>(n_mels);
}
LogMel::~LogMel() = default;
LogMel::LogMel(LogMel&&) noexcept = default;
LogMel& LogMel::operator=(LogMel&&) noexcept = default;

int LogMel::n_mels() const { return static_cast<int>(tables_->filters.size()); }

// Mirrors the start, so that the first frame is centred on the first sample.
void LogMel::begin() {
    constexpr int kPad = kWindow / 2;
    std::vector<float> mirrored(kPad);
    for (int i = 0; i < kPad; ++i)
        mirrored[static_cast<size_t>(i)] = pending_[static_cast<size_t>(kPad - i)];
    pending_.insert(pending_.begin(), mirrored.begin(), mirrored.end());
    begun_ = true;
}

void LogMel::push(std::span<const float> samples, std::vector<float>& frames) {
    samples_ += static_cast<int64_t>(samples.size());
    while (!samples.empty()) {  // in pieces, so that a long recording is not copied whole
        const auto piece = samples.first(std::min<size_t>(samples.size(), 100 * kHop));
        samples = samples.subspan(piece.size());
        pending_.insert(pending_.end(), piece.begin(), piece.end());
        if (!begun_ && pending_.size() > kWindow / 2) begin();
        if (begun_ && pending_.size() >= kWindow)
            compute(frames, static_cast<int64_t>(pending_.size() - kWindow) / kHop + 1);
    }
}

void LogMel::finish(std::vector<float>& frames) {
    const int64_t left = log_mel_frames(samples_) - next_frame_;
    if (!begun_) {
        pending_.resize(std::max<size_t>(pending_.size(), kWindow / 2 + 1));
        begin();
    }
    pending_.resize(std::max(pending_.size(), static_cast<size_t>((left - 1) * kHop + kWindow)));
    compute(frames, left);
}

// The next `count` frames; pending_ holds their windows.
void LogMel::compute(std::vector<float>& frames, int64_t count) {
    const Tables& t = *tables_;
    const size_t n_mels = t.filters.size();
    Pair windowed[kWindow], power[kBins];
    PowerSpectrum400::Work work;
    size_t out = frames.size();
    frames.resize(out + static_cast<size_t>(count) * n_mels);
    for (int64_t frame = 0; frame < count; frame += 2) {
        const float* first = pending_.data() + frame * kHop;
        const bool both = frame + 1 < count;
        const float* second = both ? first + kHop : first;
        for (int n = 0; n < kWindow; ++n) windowed[n] = Pair{first[n], second[n]} * t.window[n];
        t.spectrum(windowed, power, work);
        for (size_t m = 0; m < n_mels; ++m) {
            const MelFilter& filter = t.filters[m];
            Pair sum = {0, 0};
            for (size_t i = 0; i < filter.weights.size(); ++i)
                sum += power[static_cast<size_t>(filter.begin) + i] * filter.weights[i];
            frames[out + m] = static_cast<float>(std::log10(std::max(sum[0], 1e-10)));
            if (both)
                frames[out + n_mels + m] = static_cast<float>(std::log10(std::max(sum[1], 1e-10)));
        }
        out += 2 * n_mels;
    }
    pending_.erase(pending_.begin(), pending_.begin() + count * kHop);
    next_frame_ += count;
}

void normalize_log_mel(std::span<float> frames) {
    float top = -10;  // of the zeros behind the end
    for (float x : frames) top = std::max(top, x);
    for (float& x : frames) x = (std::max(x, top - 8) + 4) / 4;
}

}  // namespace hark
