// Silero VAD against its own probabilities (tests/golden/silero.py). The weights are not committed:
// silero_vad_16k.safetensors of snakers4/silero-vad, and whisper.cpp's ggml file of version 6.2.0.
#include "speech/silero.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "core/json/json.h"
#include "core/random.h"
#include "support/audio.h"
#include "support/process.h"
#include "support/recordings.h"

namespace hark::test {
namespace {

constexpr const char* kSafetensors = "silero_vad_16k.safetensors";
constexpr const char* kGgml = "for-tests-silero-v6.2.0-ggml.bin";

std::filesystem::path official(const std::string& name) {
    return source_dir() / "../shared/data" / name;
}

std::vector<float> probabilities(const std::shared_ptr<const SileroModel>& model,
                                 const std::vector<float>& samples, size_t step) {
    Silero silero(model);
    std::vector<float> found;
    for (size_t at = 0; at < samples.size(); at += step)
        silero.push(std::span(samples).subspan(at, std::min(step, samples.size() - at)), found);
    silero.finish(found);
    return found;
}

// f16 in whisper.cpp's file rounds the convolutions.
void expect_golden(const std::string& file, const char* reference, double tolerance) {
    const auto model = load_silero(official(file));
    const auto golden = nlohmann::json::parse(read_text(source_dir() / "tests/golden/silero.json"));
    for (const auto& entry : golden["cases"]) {
        const std::vector<float> samples =
            assemble_recording(entry["kind"].get<std::string>(), entry["seed"].get<uint64_t>(),
                               entry["seconds"].get<double>(), samples_dir());
        const auto wanted = entry[reference].get<std::vector<double>>();
        const std::vector<float> found = probabilities(model, samples, samples.size());
        ASSERT_EQ(found.size(), wanted.size());
        double worst = 0;
        for (size_t i = 0; i < wanted.size(); ++i)
            worst = std::max(worst, std::abs(found[i] - wanted[i]));
        EXPECT_LT(worst, tolerance) << entry["kind"];
        EXPECT_TRUE(probabilities(model, samples, 777) == found);
    }
}

TEST(Silero, SafetensorsGiveItsOwnProbabilities) {
    if (!std::filesystem::exists(official(kSafetensors)))
        GTEST_SKIP() << "no ../shared/data/" << kSafetensors << " next to the source";
    expect_golden(kSafetensors, "safetensors", 1e-4);
}

TEST(Silero, GgmlGivesItsOwnProbabilities) {
    if (!std::filesystem::exists(official(kGgml)))
        GTEST_SKIP() << "no ../shared/data/" << kGgml << " next to the source";
    expect_golden(kGgml, "jit", 0.02);
}

// A ggml file as the converter writes it, with drawn weights; the reader's cases change it.
struct GgmlFile {
    struct Entry {
        std::string name;
        std::vector<int> shape;  // fastest first
        int type;                // 0 f32, 1 f16
    };
    std::string type = "silero-16k";
    std::vector<int> header = {6, 2,  0,  512, 64, 4,   129, 128, 3,   128, 64,
                               3, 64, 64, 3,   64, 128, 3,   128, 128, 128, 1};
    std::vector<Entry> entries = {{"_model.encoder.0.reparam_conv.weight", {3, 129, 128}, 1},
                                  {"_model.encoder.0.reparam_conv.bias", {128}, 0},
                                  {"_model.encoder.1.reparam_conv.weight", {3, 128, 64}, 1},
                                  {"_model.encoder.1.reparam_conv.bias", {64}, 0},
                                  {"_model.encoder.2.reparam_conv.weight", {3, 64, 64}, 1},
                                  {"_model.encoder.2.reparam_conv.bias", {64}, 0},
                                  {"_model.encoder.3.reparam_conv.weight", {3, 64, 128}, 1},
                                  {"_model.encoder.3.reparam_conv.bias", {128}, 0},
                                  {"_model.decoder.rnn.weight_ih", {128, 512}, 0},
                                  {"_model.decoder.rnn.weight_hh", {128, 512}, 0},
                                  {"_model.decoder.rnn.bias_ih", {512}, 0},
                                  {"_model.decoder.rnn.bias_hh", {512}, 0},
                                  {"_model.decoder.decoder.2.weight", {128}, 1},
                                  {"_model.decoder.decoder.2.bias", {}, 0},
                                  {"_model.stft.forward_basis_buffer", {256, 1, 258}, 1}};
    std::string value = "\xcd\xcc\xcc\x3d";  // 0.1f, and for f16 a small number: 0x2ccc

    std::string bytes() const {
        const auto number = [](int64_t n) { return little_endian(static_cast<uint64_t>(n), 4); };
        std::string file = number(0x67676d6c) + number(std::ssize(type)) + type;
        for (int n : header) file += number(n);
        for (const Entry& entry : entries) {
            file += number(std::ssize(entry.shape)) + number(std::ssize(entry.name)) +
                    number(entry.type);
            int64_t count = 1;
            for (int n : entry.shape) file += number(n), count *= n;
            file += entry.name;
            const std::string one = entry.type == 0 ? value : std::string("\xcc\x2c");
            for (int64_t i = 0; i < count; ++i) file += one;
        }
        return file;
    }
};

std::string message_of(const std::string& bytes) {
    const TemporaryDirectory directory;
    write_text(directory.path() / "vad.bin", bytes);
    try {
        load_silero(directory.path() / "vad.bin");
    } catch (const Error& failure) {
        return failure.what();
    }
    return "";
}

void expect_refused(const GgmlFile& file, const std::string& part) {
    const std::string message = message_of(file.bytes());
    EXPECT_NE(message.find(part), std::string::npos) << "'" << part << "' is not in: " << message;
    EXPECT_NE(message.find("vad.bin: "), std::string::npos) << message;
}

TEST(SileroFile, ReadsWhatTheConverterWrites) {
    const TemporaryDirectory directory;
    write_text(directory.path() / "vad.bin", GgmlFile().bytes());
    const auto model = load_silero(directory.path() / "vad.bin");
    const std::vector<float> found = probabilities(model, std::vector<float>(1000, 0.25f), 300);
    ASSERT_EQ(found.size(), 2u);  // 512, and 488 with zeros after them
    for (float p : found) EXPECT_TRUE(p > 0.5f && p <= 1.0f) << p;
}

TEST(SileroFile, RefusesWhatIsNotSileroAt16kHz) {
    GgmlFile file;
    file.type = "silero-8k";
    expect_refused(file, "wrong model (got 'silero-8k', expected silero-16k)");
    for (size_t i = 3; i < file.header.size(); ++i) {
        file = {};
        ++file.header[i];
        expect_refused(file, "expected " + std::to_string(file.header[i] - 1) + ", found " +
                                 std::to_string(file.header[i]));
    }
    EXPECT_NE(message_of("no model at all, but some words").find("vad.bin: "), std::string::npos);
}

TEST(SileroFile, RefusesTensorsThatDoNotFit) {
    GgmlFile file;
    file.entries[4].shape = {3, 63, 64};
    expect_refused(file,
                   "'_model.encoder.2.reparam_conv.weight': wrong shape (got (64, 63, 3), expected "
                   "(64, 64, 3))");
    file = {};
    file.entries[4].name = "_model.encoder.9";
    expect_refused(file, "got a tensor '_model.encoder.9'");
    file = {};
    file.entries.pop_back();
    expect_refused(file, "no tensor 'stft_conv.weight'");
    file = {};
    file.entries.push_back(file.entries[1]);
    expect_refused(file, "is there twice");
    file = {};
    file.entries[1].type = 7;
    expect_refused(file, "wrong type (got 7, expected 0 or 1)");
    file = {};
    file.value = std::string("\0\0\xc0\x7f", 4);
    expect_refused(file, "not a finite number");
    const std::string bytes = GgmlFile().bytes();
    for (size_t length = 0; length < bytes.size(); length += 997)
        EXPECT_NE(message_of(bytes.substr(0, length)), "") << length;
}

}  // namespace
}  // namespace hark::test
