// Sounds by rule that are no speech, and speech laid among them with what is known of it.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numbers>
#include <string>
#include <vector>

#include "audio/log_mel.h"
#include "core/random.h"
#include "speech/detector.h"
#include "support/process.h"
#include "support/recordings.h"

namespace hark::test {

using Samples = std::vector<float>;

constexpr int64_t kRate = 16000;
constexpr double kTurn = 2 * std::numbers::pi;

inline int64_t count_of(double seconds) { return std::llround(seconds * kRate); }
inline double between(Random& random, double low, double high) {
    return low + (high - low) * random.uniform();
}

inline double power_of(const Samples& x) {
    double sum = 0;
    for (float v : x) sum += static_cast<double>(v) * v;
    return x.empty() ? 0 : sum / static_cast<double>(x.size());
}
// Scaled so that its root mean square is `level`, of full scale.
inline Samples at_level(Samples x, double level) {
    const double power = power_of(x);
    if (power > 0)
        for (float& v : x) v *= static_cast<float>(level / std::sqrt(power));
    return x;
}
inline void add(Samples& to, int64_t at, const Samples& x) {
    const int64_t n = std::min(std::ssize(x), std::ssize(to) - at);
    for (int64_t i = 0; i < n; ++i) to[at + i] += x[i];
}

// Noise.
inline Samples white(Random& random, int64_t n) {
    Samples x(n);
    for (float& v : x) {
        double sum = -6;
        for (int i = 0; i < 12; ++i) sum += random.uniform();
        v = static_cast<float>(sum);
    }
    return x;
}
// The sum of leaky integrals an octave apart falls by 3 dB an octave.
inline Samples pink(Random& random, int64_t n) {
    const Samples noise = white(random, n);
    Samples x(n);
    for (double hz = 20; hz < 8000; hz *= 2) {
        const double keep = std::exp(-kTurn * hz / kRate), gain = std::sqrt(1 - keep);
        double state = 0;
        for (int64_t i = 0; i < n; ++i) {
            state = keep * state + (1 - keep) * noise[i];
            x[i] += static_cast<float>(state / gain * std::sqrt(20 / hz));
        }
    }
    return x;
}
inline Samples brown(Random& random, int64_t n) {
    Samples x = white(random, n);
    double state = 0;
    for (float& v : x) v = static_cast<float>(state = 0.995 * state + v);
    return x;
}
inline Samples modulated(Samples x, const std::function<double(double)>& gain) {
    for (size_t i = 0; i < x.size(); ++i)
        x[i] *= static_cast<float>(gain(static_cast<double>(i) / kRate));
    return x;
}
// Waves on a beach: pink noise that swells each 2 to 8 s.
inline Samples swelling(Random& random, int64_t n) {
    const double hz = between(random, 0.12, 0.5);
    return modulated(pink(random, n), [=](double t) { return 1 + 0.8 * std::sin(kTurn * hz * t); });
}
// Gusts: brown noise whose level wanders by 10 dB.
inline Samples wind(Random& random, int64_t n) {
    std::array<double, 4> phase, hz;
    for (size_t i = 0; i < 4; ++i) {
        phase[i] = between(random, 0, kTurn);
        hz[i] = between(random, 0.1, 1.2);
    }
    return modulated(brown(random, n), [=](double t) {
        double level = 0;
        for (size_t i = 0; i < 4; ++i) level += std::sin(kTurn * hz[i] * t + phase[i]);
        return std::exp(0.5 * level);
    });
}
// Noises of 1.6 to 5 s, each of its own colour and level, some of them silence.
inline Samples steps(Random& random, int64_t n) {
    Samples x(n);
    for (int64_t at = 0; at < n;) {
        const int64_t length = count_of(between(random, 1.6, 5));
        const int64_t colour = static_cast<int64_t>(4 * random.uniform());
        const Samples noise = colour == 1   ? white(random, length)
                              : colour == 2 ? pink(random, length)
                                            : brown(random, length);
        if (colour != 0) add(x, at, at_level(noise, std::pow(10, between(random, -2, 0))));
        at += length;
    }
    return x;
}

// Sines.
inline Samples sine(int64_t n, const std::function<double(double)>& hz) {
    Samples x(n);
    double phase = 0;
    for (int64_t i = 0; i < n; ++i) {
        x[i] = static_cast<float>(std::sin(phase));
        phase += kTurn * hz(static_cast<double>(i) / kRate) / kRate;
    }
    return x;
}
inline Samples tone(Random& random, int64_t n) {
    const double hz = between(random, 100, 4000);
    return sine(n, [=](double) { return hz; });
}
inline Samples sweep(Random& random, int64_t n) {
    const double low = between(random, 50, 500), high = between(random, 2000, 7000);
    const double period = between(random, 1, 6);
    return sine(n, [=](double t) { return low * std::pow(high / low, std::fmod(t / period, 1)); });
}
inline Samples siren(Random& random, int64_t n) {
    const double rate = between(random, 0.3, 3);
    return sine(n, [=](double t) { return 900 + 400 * std::sin(kTurn * rate * t); });
}
// A telephone's ringing.
inline Samples beeps(Random& random, int64_t n) {
    const double on = between(random, 0.1, 1.2), off = between(random, 0.1, 3);
    Samples x = sine(n, [](double) { return 440; });
    add(x, 0, sine(n, [](double) { return 480; }));
    return modulated(x, [=](double t) { return std::fmod(t, on + off) < on ? 1 : 0; });
}
inline Samples hum(Random& random, int64_t n) {
    const double hz = random.uniform() < 0.5 ? 50 : 60;
    Samples x(n);
    for (int h = 1; h < 20; ++h)
        add(x, 0, at_level(sine(n, [=](double) { return hz * h; }), 1.0 / h));
    add(x, 0, at_level(white(random, n), 0.1));
    return x;
}
inline Samples clicks(Random& random, int64_t n) {
    const double pause = between(random, 0.1, 1);
    Samples x(n);
    for (double t = pause; count_of(t) < n; t -= pause * std::log(1 - 0.99 * random.uniform())) {
        const Samples burst = white(random, random.uniform() < 0.5 ? 1 : 320);
        add(x, count_of(t), modulated(burst, [](double s) { return std::exp(-s / 0.004); }));
    }
    return x;
}

// A note of `harmonics` partials, the k-th 1/k as loud.
inline Samples note(double hz, double seconds, int harmonics,
                    const std::function<double(double)>& gain) {
    Samples x(count_of(seconds));
    for (int h = 1; h <= harmonics && h * hz < 7500; ++h)
        add(x, 0, at_level(sine(std::ssize(x), [=](double) { return hz * h; }), 1.0 / h));
    return modulated(std::move(x), gain);
}
inline double pitch(Random& random) {
    return 110 * std::pow(2, std::floor(between(random, 0, 36)) / 12);
}
// Plucked chords on a beat, with a drum in half of the recordings.
inline Samples music(Random& random, int64_t n) {
    Samples x(n);
    const double beat = between(random, 0.2, 0.6), decay = between(random, 0.15, 1.2);
    const int harmonics = 3 + static_cast<int>(13 * random.uniform());
    const bool drum = random.uniform() < 0.5;
    for (double t = 0; count_of(t) < n; t += random.uniform() < 0.3 ? beat / 2 : beat) {
        for (int voices = 1 + static_cast<int>(3 * random.uniform()); voices > 0; --voices)
            add(x, count_of(t), note(pitch(random), 2 * decay, harmonics, [=](double s) {
                    return std::min(s / 0.01, 1.0) * std::exp(-s / decay);
                }));
        const Samples burst = white(random, count_of(0.2));
        if (drum)
            add(x, count_of(t), modulated(burst, [](double s) { return std::exp(-s / 0.03); }));
    }
    return x;
}
// Held chords, one after the other.
inline Samples organ(Random& random, int64_t n) {
    Samples x(n);
    for (double t = 0; count_of(t) < n;) {
        const double length = between(random, 0.25, 1.5);
        for (int voices = 1 + static_cast<int>(3 * random.uniform()); voices > 0; --voices)
            add(x, count_of(t), note(pitch(random), length, 9, [=](double s) {
                    return std::min({1.0, s / 0.02, (length - s) / 0.02});
                }));
        t += length;
    }
    return x;
}
// The kinds of tests/support/recordings.h that are no speech: tones and chords.
inline Samples by_rule(const char* kind, Random& random, int64_t n) {
    return assemble_recording(kind, random.next(), static_cast<double>(n) / kRate, samples_dir());
}

struct Sound {
    const char* name;
    std::function<Samples(Random&, int64_t)> make;
};
inline const std::vector<Sound>& sounds() {
    static const std::vector<Sound> all = {
        {"white noise", white},
        {"pink noise", pink},
        {"brown noise", brown},
        {"noises in turn", steps},
        {"swelling noise", swelling},
        {"wind", wind},
        {"mains hum", hum},
        {"a tone", tone},
        {"tones in turn", [](Random& r, int64_t n) { return by_rule("tones", r, n); }},
        {"ringing", beeps},
        {"chirps", sweep},
        {"siren", siren},
        {"clicks", clicks},
        {"fading chords", [](Random& r, int64_t n) { return by_rule("chords", r, n); }},
        {"held chords", organ},
        {"plucked music", music},
    };
    return all;
}

// A recording with speech in it, and where: its clips, and in each the 10 ms frames that are within
// 30 dB of the clip's loud ones.
struct Scene {
    Samples samples;
    std::vector<Region> clips;
    std::vector<bool> voiced;  // a frame

    explicit Scene(double seconds)
        : samples(count_of(seconds)), voiced(samples.size() / Detector::kStep) {}

    void speak(int64_t at, const Samples& clip) {
        add(samples, at, clip);
        clips.push_back({at, std::min(at + std::ssize(clip), std::ssize(samples))});
        std::vector<double> power;
        for (int64_t i = 0; i < std::ssize(clip); i += Detector::kStep)
            power.push_back(
                power_of({clip.begin() + i,
                          clip.begin() + std::min(i + Detector::kStep, std::ssize(clip))}));
        std::vector<double> sorted = power;
        std::sort(sorted.begin(), sorted.end());
        const double least = sorted[sorted.size() * 95 / 100] / 1000;
        for (size_t i = 0; i < power.size(); ++i) {
            const size_t frame = static_cast<size_t>(at / Detector::kStep) + i;
            if (frame < voiced.size() && power[i] > least) voiced[frame] = true;
        }
    }
};

struct Score {
    double voiced = 0, missed = 0;  // seconds
    int runs = 0, lost = 0;         // of voiced frames, 0.1 s or longer; no frame of it found
    double outside = 0;             // seconds of regions further than 0.3 s from every clip

    void operator+=(const Score& more) {
        voiced += more.voiced;
        missed += more.missed;
        runs += more.runs;
        lost += more.lost;
        outside += more.outside;
    }
};

inline bool within(const std::vector<Region>& regions, int64_t sample, int64_t slack) {
    return std::any_of(regions.begin(), regions.end(), [&](const Region& r) {
        return sample >= r.begin - slack && sample < r.end + slack;
    });
}

inline Score score(const Scene& scene, const std::vector<Region>& found) {
    Score result;
    constexpr double kFrame = 0.01;
    int run = 0, hit = 0;
    for (size_t t = 0; t <= scene.voiced.size(); ++t) {
        const int64_t middle = static_cast<int64_t>(t) * Detector::kStep + Detector::kStep / 2;
        const bool covered = within(found, middle, 0);
        if (t < scene.voiced.size() && scene.voiced[t]) {
            result.voiced += kFrame;
            result.missed += covered ? 0 : kFrame;
            ++run;
            hit += covered;
            continue;
        }
        result.runs += run >= 10;
        result.lost += run >= 10 && hit == 0;
        run = hit = 0;
        if (covered && !within(scene.clips, middle, count_of(0.3))) result.outside += kFrame;
    }
    return result;
}

inline std::vector<float> log_mel_of(const Samples& samples, int n_mels = 80) {
    LogMel log_mel(n_mels);
    std::vector<float> frames;
    log_mel.push(samples, frames);
    log_mel.finish(frames);
    return frames;
}

inline std::vector<Region> detect(const Samples& samples, int n_mels = 80) {
    return speech_in_log_mel(log_mel_of(samples, n_mels), n_mels, std::ssize(samples), {});
}

}  // namespace hark::test
