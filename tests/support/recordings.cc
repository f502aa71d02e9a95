#include "support/recordings.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <string>

#include "support/process.h"

namespace hark::test {
namespace {

constexpr std::int64_t kRate = 16000;
constexpr std::array kClips = {
    "harbour.wav",  "road.wav",   "minister.wav", "hat.wav",   "lights.wav", "mountain.wav",
    "alarm.wav",    "sea.wav",    "prices.wav",   "key.wav",   "train.wav",  "music.wav",
    "stranger.wav", "answer.wav", "nacht.wav",    "vater.wav", "maison.wav", "roi.wav"};
constexpr std::array<std::int64_t, 10> kNoisePeaks = {0, 0, 4, 8, 16, 32, 64, 96, 128, 200};
constexpr std::array<std::int64_t, 6> kGains = {128, 192, 224, 256, 288, 320};
constexpr std::array<std::int64_t, 12> kNotes = {196, 220, 247, 262, 294, 330,
                                                 349, 392, 440, 494, 523, 587};

using Samples = std::vector<std::int64_t>;

std::int64_t draw_below(SplitMix64& generator, std::int64_t limit) {
    return static_cast<std::int64_t>(generator.draw() % static_cast<std::uint64_t>(limit));
}

template <class Choices>
auto draw_one(SplitMix64& generator, const Choices& choices) {
    return choices[generator.draw() % choices.size()];
}

// Adds a clip at a position, cut at the end; returns the position after it.
template <class Clip>
std::int64_t add_clip(Samples& samples, std::int64_t position, const Clip& clip,
                      std::int64_t gain) {
    const auto end = std::min<std::int64_t>(std::ssize(samples), position + std::ssize(clip));
    for (std::int64_t i = position; i < end; ++i) samples[i] += (clip[i - position] * gain) >> 8;
    return position + std::ssize(clip);
}

void add_speech(Samples& samples, SplitMix64& generator, bool long_gaps,
                const std::filesystem::path& samples_dir) {
    std::int64_t position = 0;
    while (position < std::ssize(samples)) {
        const std::int64_t u = draw_below(generator, 100);
        const std::int64_t limit = u < 12 ? 0 : u < 72 ? 1 : u < 94 ? 3 : 8;
        if (limit > 0) position += draw_below(generator, limit * kRate);
        if (long_gaps && draw_below(generator, 24) == 0)
            position += 30 * kRate + draw_below(generator, 10 * kRate);
        const auto clip = read_plain_wav(samples_dir / draw_one(generator, kClips));
        const std::int64_t gain = draw_one(generator, kGains);
        position = add_clip(samples, position, clip, gain);
    }
}

// One sample of a tone, between -32768 and 32768: two parabolas, close to a sine.
std::int64_t wave(std::uint32_t phase) {
    const std::int64_t h = (phase >> 16) & 32767;
    const std::int64_t y = (h * (32768 - h)) >> 13;
    return (phase >> 31) != 0 ? -y : y;
}

std::uint32_t phase_step(std::int64_t hertz) {
    return static_cast<std::uint32_t>((hertz << 32) / kRate);
}

void add_tones(Samples& samples, SplitMix64& generator) {
    std::int64_t position = 0;
    while (position < std::ssize(samples)) {
        Samples tone(1600 + draw_below(generator, 6400));
        const std::uint32_t step = phase_step(200 + draw_below(generator, 1800));
        std::uint32_t phase = 0;
        for (std::int64_t& sample : tone) {
            sample = (wave(phase) * 12000) >> 15;
            phase += step;
        }
        position = add_clip(samples, position, tone, 256);
    }
}

std::int64_t floor_divide(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

void add_chords(Samples& samples, SplitMix64& generator) {
    std::int64_t position = 0;
    while (position < std::ssize(samples)) {
        const std::int64_t length = 4000 + draw_below(generator, 8000);
        Samples chord(length);
        for (int note = 0; note < 3; ++note) {
            const std::int64_t base = draw_one(generator, kNotes);
            const std::uint32_t step = phase_step(base << draw_below(generator, 2));
            std::uint32_t phase = 0;
            for (std::int64_t i = 0; i < length; ++i) {
                chord[i] += floor_divide(wave(phase) * 7000 * (length - i), length) >> 15;
                phase += step;
            }
        }
        position = add_clip(samples, position, chord, 256);
    }
}

void add_noise(Samples& samples, SplitMix64& generator, std::int64_t peak) {
    if (peak == 0) return;
    for (std::int64_t& sample : samples) {
        const auto drawn = static_cast<std::int64_t>(generator.draw() >> 33);
        sample += drawn % (2 * peak + 1) - peak;
    }
}

}  // namespace

std::uint64_t SplitMix64::draw() {
    state_ += 0x9E3779B97F4A7C15u;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

std::vector<std::int16_t> read_plain_wav(const std::filesystem::path& path) {
    const std::string data = read_text(path);
    // "WAVE" to "data": PCM, 1 channel, 16000 Hz, 32000 bytes/s, 2 bytes a sample, 16 bits.
    constexpr char kForm[] = "WAVEfmt \x10\0\0\0\x01\0\x01\0\x80\x3e\0\0\0\x7d\0\0\x02\0\x10\0data";
    if (data.size() < 44 || std::memcmp(data.data() + 8, kForm, 32) != 0)
        throw std::runtime_error(path.string() + ": not a plain 16 kHz WAV file");
    std::vector<std::int16_t> samples((data.size() - 44) / 2);
    for (std::size_t i = 0; i < samples.size(); ++i) {
        const auto low = static_cast<std::uint8_t>(data[44 + 2 * i]);
        const auto high = static_cast<std::uint8_t>(data[45 + 2 * i]);
        samples[i] = static_cast<std::int16_t>(static_cast<std::uint16_t>(low | (high << 8)));
    }
    return samples;
}

std::vector<std::int16_t> recording_samples(std::string_view kind, std::uint64_t seed,
                                            double seconds,
                                            const std::filesystem::path& samples_dir) {
    SplitMix64 generator(seed);
    Samples samples(static_cast<std::size_t>(std::floor(seconds * kRate)));
    std::int64_t peak = 0;
    if (kind == "speech") {
        peak = draw_one(generator, kNoisePeaks);
        add_speech(samples, generator, seconds > 60, samples_dir);
    } else if (kind == "drowned") {
        peak = 6000;
        add_speech(samples, generator, seconds > 60, samples_dir);
    } else if (kind == "babble") {
        for (int voice = 0; voice < 6; ++voice) add_speech(samples, generator, false, samples_dir);
    } else if (kind == "tones") {
        add_tones(samples, generator);
    } else if (kind == "chords") {
        add_chords(samples, generator);
    } else if (kind == "loud_noise") {
        peak = 20000;
    } else if (kind == "quiet_noise") {
        peak = 327;
    } else if (kind != "silence") {
        throw std::invalid_argument("no such kind of recording: " + std::string(kind));
    }
    add_noise(samples, generator, peak);
    std::vector<std::int16_t> result(samples.size());
    std::transform(samples.begin(), samples.end(), result.begin(), [](std::int64_t sample) {
        return static_cast<std::int16_t>(std::clamp<std::int64_t>(sample, -32768, 32767));
    });
    return result;
}

std::uint64_t checksum(std::span<const std::int16_t> samples) {
    std::uint64_t value = 0xCBF29CE484222325u;
    for (const std::int16_t sample : samples) {
        const auto bits = static_cast<std::uint16_t>(sample);
        for (const unsigned byte : {bits & 255u, unsigned{bits} >> 8})
            value = (value ^ byte) * 0x100000001B3u;
    }
    return value;
}

std::vector<float> as_float(std::span<const std::int16_t> samples) {
    std::vector<float> result(samples.size());
    std::transform(samples.begin(), samples.end(), result.begin(),
                   [](std::int16_t sample) { return static_cast<float>(sample) / 32768.0f; });
    return result;
}

std::vector<float> assemble_recording(std::string_view kind, std::uint64_t seed, double seconds,
                                      const std::filesystem::path& samples_dir) {
    return as_float(recording_samples(kind, seed, seconds, samples_dir));
}

std::vector<float> assemble_recording(std::uint64_t seed, double seconds,
                                      const std::filesystem::path& samples_dir) {
    return assemble_recording("speech", seed, seconds, samples_dir);
}

}  // namespace hark::test
