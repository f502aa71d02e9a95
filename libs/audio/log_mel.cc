#include "audio/log_mel.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "audio/mel_scale.h"
#include "core/error.h"
#include "formats/recordings.h"
#include "kernels/runtime/cuda_library.h"
#include "kernels/runtime/parallel.h"
#include "kernels/runtime/transfer.h"

// Once for processors with AVX2 and once for all; the same bits.
#ifdef __x86_64__
#define HARK_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define HARK_CLONES
#endif

namespace hark {
namespace {

using mel_frame::kBins;
using mel_frame::kHop;
using mel_frame::kWindow;

// Source: librosa.filters.mel(htk=False, norm="slaney").
void make_filters(int n_mels, mel_frame::Tables& tables) {
    std::vector<double> corner(static_cast<size_t>(n_mels) + 2);  // Hz
    const double top = hz_to_mel(kSampleRate / 2.0);
    for (size_t i = 0; i < corner.size(); ++i)
        corner[i] = mel_to_hz(top * static_cast<double>(i) / (n_mels + 1));
    int32_t count = 0;
    for (size_t m = 0; m < static_cast<size_t>(n_mels); ++m) {
        tables.offset[m] = count;
        const double low = corner[m], middle = corner[m + 1], high = corner[m + 2];
        for (int bin = 0; bin < kBins; ++bin) {
            const double hz = static_cast<double>(bin) * kSampleRate / kWindow;
            const double weight =
                std::min((hz - low) / (middle - low), (high - hz) / (high - middle));
            if (weight <= 0) continue;
            if (count == tables.offset[m]) tables.begin[m] = bin;
            tables.weights[count++] = weight * 2 / (high - low) / 4;  // power_of gives it fourfold
        }
    }
    tables.offset[n_mels] = count;
}

std::unique_ptr<const mel_frame::Tables> make_tables(int n_mels) {
    require(n_mels == 80 || n_mels == 128, "wrong number of mels (got ", n_mels,
            ", expected 80 or 128)");
    auto tables = std::make_unique<mel_frame::Tables>();
    tables->n_mels = n_mels;
    for (int n = 0; n < kWindow; ++n) {
        const double angle = 2 * std::numbers::pi * n / kWindow;
        tables->window[n] = 0.5 - 0.5 * std::cos(angle);
        tables->roots[n] = {std::cos(angle), -std::sin(angle)};
    }
    make_filters(n_mels, *tables);
    return tables;
}

// Four frames side by side; no lane sees another.
constexpr int kLanes = 4;
typedef double Lanes __attribute__((vector_size(kLanes * sizeof(double))));
typedef uint64_t LaneBits __attribute__((vector_size(kLanes * sizeof(uint64_t))));
typedef float LaneSamples __attribute__((vector_size(kLanes * sizeof(float))));

// The log-mel of the windows at four places.
HARK_CLONES
void four_frames(const mel_frame::Tables& tables, const float* const* windows, float* const* out) {
    const auto sample = [&](int n) __attribute__((always_inline)) {
        const LaneSamples samples = {windows[0][n], windows[1][n], windows[2][n], windows[3][n]};
        return __builtin_convertvector(samples, Lanes) * tables.window[n];
    };
    const auto pair = [&](int i) __attribute__((always_inline)) {
        return mel_frame::Complex<Lanes>{sample(2 * i), sample(2 * i + 1)};
    };
    mel_frame::Complex<Lanes> a[mel_frame::kPoints], b[mel_frame::kPoints];
    const auto point = [&](int i) __attribute__((always_inline)) { return a[i]; };
    for (int i = 0; i < mel_frame::kItems5; ++i)
        mel_frame::stage5<200, 1>(i, tables.roots, pair, a);
    for (int i = 0; i < mel_frame::kItems5; ++i)
        mel_frame::stage5<40, 5>(i, tables.roots, point, b);
    for (int i = 0; i < mel_frame::kItems8; ++i) mel_frame::stage8(i, b, a);
    Lanes power[kBins];
    for (int k = 0; k < mel_frame::kItemsPower; ++k)
        mel_frame::power_of(k, a, tables.roots[k], power);
    for (int m = 0; m < tables.n_mels; ++m) {
        const Lanes value = mel_frame::log_mel_of<Lanes, LaneBits>(m, tables, power);
        for (int lane = 0; lane < kLanes; ++lane) out[lane][m] = static_cast<float>(value[lane]);
    }
}

const CudaLogMel& cuda_log_mel() {
    static const auto* table =
        reinterpret_cast<const CudaLogMel* (*)()>(cuda_symbol("hark_cuda_log_mel"))();
    return *table;
}

}  // namespace

std::vector<float> mel_filters(int n_mels) {
    const auto tables = make_tables(n_mels);
    std::vector<float> filters(static_cast<size_t>(n_mels) * kBins);
    for (int m = 0; m < n_mels; ++m)
        for (int32_t i = tables->offset[m]; i < tables->offset[m + 1]; ++i) {
            const int bin = tables->begin[m] + i - tables->offset[m];
            filters[static_cast<size_t>(m * kBins + bin)] =
                static_cast<float>(4 * tables->weights[i]);
        }
    return filters;
}

int64_t content_frames(int64_t samples) { return samples / kHop; }

int64_t log_mel_frames(int64_t samples) {
    return content_frames(samples) + (samples % kHop > 121 ? 3 : 2);
}

MelFrames::MelFrames(int n_mels, Context* ctx) : tables_(make_tables(n_mels)), ctx_(ctx) {
    if (!ctx || !ctx->on_cuda()) return;
    memory_ = std::make_unique<Arena>(ctx->arena.source());
    const Tensor copy = memory_->tensor(Dtype::u8, {sizeof(mel_frame::Tables)});
    memory_->source().write(copy.data, tables_.get(), sizeof(mel_frame::Tables));
    device_tables_ = static_cast<const mel_frame::Tables*>(copy.data);
}

void MelFrames::launch(float* frames, const float* samples, int64_t count) const {
    require(device_tables_ != nullptr, "expected a context on a GPU");
    cuda_log_mel().log_mel(*ctx_, frames, samples, count, n_mels(), device_tables_);
}

void MelFrames::operator()(float* frames, const float* samples, int64_t count) const {
    if (count <= 0) return;
    if (device_tables_) {
        const Scratch scratch(*ctx_);
        const int64_t length = (count - 1) * kHop + kWindow;
        const Tensor in = ctx_->arena.tensor(Dtype::f32, {length});
        const Tensor out = ctx_->arena.tensor(Dtype::f32, {count, n_mels()});
        cuda_runtime().upload(*ctx_, in.data, samples, in.bytes());
        launch(out.as<float>(), in.as<float>(), count);
        cuda_runtime().download(*ctx_, frames, out.data, out.bytes());
        return;
    }
    // A thread is woken for a hundred microseconds' work at least.
    const int64_t groups = (count + kLanes - 1) / kLanes, kGroupsAThread = 16;
    const int threads = static_cast<int>(std::min<int64_t>(
        ctx_ ? ctx_->threads : 1, (groups + kGroupsAThread - 1) / kGroupsAThread));
    parallel_for(threads, groups, [&](int64_t group) {
        const float* windows[kLanes];
        float* out[kLanes];
        for (int lane = 0; lane < kLanes; ++lane) {  // after the last frame that one again
            const int64_t frame = std::min(group * kLanes + lane, count - 1);
            windows[lane] = samples + frame * kHop;
            out[lane] = frames + frame * n_mels();
        }
        four_frames(*tables_, windows, out);
    });
}

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
        const auto piece = samples.first(std::min<size_t>(samples.size(), 3000 * kHop));
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
    const size_t had = frames.size();
    frames.resize(had + static_cast<size_t>(count * n_mels()));
    (*compute_)(frames.data() + had, pending_.data(), count);
    pending_.erase(pending_.begin(), pending_.begin() + count * kHop);
    next_frame_ += count;
}

void normalize_log_mel(std::span<float> frames) {
    float top = -10;  // of the zeros after the end
    for (float x : frames) top = std::max(top, x);
    for (float& x : frames) x = (std::max(x, top - 8) + 4) / 4;
}

}  // namespace hark
