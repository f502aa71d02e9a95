// Recordings for the tests, assembled by rule from the WAV files of samples/. The rules, the
// generator and the kinds are described in tests/golden/recordings.py, which gives the same
// samples.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

namespace hark::test {

// Sebastiano Vigna's splitmix64: the state steps by a constant, the output is a mix of it.
class SplitMix64 {
  public:
    explicit SplitMix64(std::uint64_t seed) : state_(seed) {}
    std::uint64_t draw();

  private:
    std::uint64_t state_;
};

// The samples of a 16-bit mono 16 kHz WAV file with a header of 44 bytes. Throws
// std::runtime_error for any other file.
std::vector<std::int16_t> read_plain_wav(const std::filesystem::path& path);

// The 16 kHz samples of a recording. kind is speech, drowned, babble, loud_noise, quiet_noise,
// silence, tones or chords; another throws std::invalid_argument. samples_dir holds the clips.
std::vector<std::int16_t> recording_samples(std::string_view kind, std::uint64_t seed,
                                            double seconds,
                                            const std::filesystem::path& samples_dir);

// FNV-1a, 64 bits, of the samples' little-endian bytes: the golden files hold it as 16 hex digits.
std::uint64_t checksum(std::span<const std::int16_t> samples);

// The samples divided by 32768.
std::vector<float> as_float(std::span<const std::int16_t> samples);

// A recording of any kind, 16 kHz in -1 .. 1.
std::vector<float> assemble_recording(std::string_view kind, std::uint64_t seed, double seconds,
                                      const std::filesystem::path& samples_dir);

// A recording of speech, 16 kHz in -1 .. 1.
std::vector<float> assemble_recording(std::uint64_t seed, double seconds,
                                      const std::filesystem::path& samples_dir);

}  // namespace hark::test
