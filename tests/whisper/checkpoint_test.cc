// Model directories that are wrong: an error that names the file and what was found, never a crash.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files.h"
#include "support/process.h"
#include "whisper/mel_recording.h"
#include "whisper/model.h"

namespace hark::whisper {
namespace {

using nlohmann::json;
using test::read_text;
using test::write_text;

std::filesystem::path demo() { return test::source_dir() / "models/whisper-demo"; }

std::string error_of(const std::filesystem::path& directory) {
    try {
        load_model(directory, {});
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

class Directory : public testing::Test {
  protected:
    Directory() { config_ = json::parse(read_text(demo() / "config.json")); }
    std::string load(const json& config, bool weights = true) {
        write_text(directory_.path() / "config.json", config.dump());
        std::error_code failed;
        if (weights)
            std::filesystem::create_symlink(demo() / "model.safetensors",
                                            directory_.path() / "model.safetensors", failed);
        return error_of(directory_.path());
    }
    test::TemporaryDirectory directory_;
    json config_;
};

TEST_F(Directory, TheDemoModelLoads) { EXPECT_EQ(load(config_), ""); }

TEST_F(Directory, KeysThatAreMissingOrOutOfRangeAreNamed) {
    for (const char* key : {"d_model", "encoder_layers", "decoder_layers", "num_mel_bins",
                            "vocab_size", "max_target_positions", "decoder_ffn_dim"}) {
        json config = config_;
        config.erase(key);
        EXPECT_NE(load(config).find(key), std::string::npos) << key;
        for (const json& wrong : {json(-1), json(0), json("x"), json(1e12), json(nullptr)}) {
            config[key] = wrong;
            EXPECT_NE(load(config).find(key), std::string::npos) << key << " " << wrong;
        }
    }
}

TEST_F(Directory, AnotherModelTypeIsRefused) {
    config_["model_type"] = "gpt2";
    EXPECT_NE(load(config_).find("gpt2"), std::string::npos);
}

TEST_F(Directory, AWrongShapeNamesTheTensor) {
    config_["encoder_ffn_dim"] = 512;
    EXPECT_NE(load(config_).find("encoder.layers.0.fc1.weight"), std::string::npos);
}

TEST_F(Directory, AMissingTensorIsNamed) {
    config_["decoder_layers"] = 5;
    EXPECT_NE(load(config_).find("decoder.layers.4."), std::string::npos);
}

TEST_F(Directory, MissingWeightsAreNamed) {
    EXPECT_NE(load(config_, false).find("model.safetensors"), std::string::npos);
}

TEST_F(Directory, ATruncatedFileIsRefused) {
    const std::string bytes = read_text(demo() / "model.safetensors");
    for (size_t size : {size_t{0}, size_t{7}, size_t{100}, bytes.size() / 2, bytes.size() - 1}) {
        write_text(directory_.path() / "model.safetensors", bytes.substr(0, size));
        EXPECT_NE(load(config_, false).find("model.safetensors"), std::string::npos) << size;
    }
}

TEST_F(Directory, ShardsLoadAndAreNeverOutsideTheDirectory) {
    std::filesystem::create_symlink(demo() / "model.safetensors", directory_.path() / "part.st");
    write_text(directory_.path() / "model.safetensors.index.json",
               json{{"weight_map", {{"a", "part.st"}}}}.dump());
    EXPECT_EQ(load(config_, false), "");
    write_text(directory_.path() / "model.safetensors.index.json",
               json{{"weight_map", {{"a", "../part.st"}}}}.dump());
    EXPECT_NE(load(config_, false).find("index.json"), std::string::npos);
}

Chunk mel_chunk(int64_t frames, const std::string& content_frames) {
    std::vector<float> values(static_cast<size_t>(80 * frames), -2.0f);
    Chunk chunk;
    chunk.kind = "mel";
    chunk.last = true;
    chunk.document.where = "stdin: document 1";
    chunk.document.add("log_mel", Tensor(values.data(), Dtype::f32, {80, frames}));
    if (!content_frames.empty()) chunk.document.header.metadata["content_frames"] = content_frames;
    return chunk;
}

TEST(MelRecording, ChecksContentFramesAndMels) {
    EXPECT_NO_THROW(MelRecording().add(mel_chunk(12, "10"), 80));
    for (const char* wrong : {"", "13", "-1", "1e3", "99999999999999999999"})
        EXPECT_THROW(MelRecording().add(mel_chunk(12, wrong), 80), Error) << wrong;
    EXPECT_THROW(MelRecording().add(mel_chunk(12, "10"), 128), Error);
}

TEST(MelRecording, NormalisesByTheWholeRecordingAndPadsWithZeros) {
    Chunk chunk = mel_chunk(12, "10");
    const Tensor mel = chunk.values();
    mel.as<float>()[11] = 1.0f;   // mel 0, frame 11: behind the content, but heard
    mel.as<float>()[12] = -9.0f;  // mel 1, frame 0: below the floor
    MelRecording recording;
    recording.add(chunk, 80);
    std::vector<float> window(3000 * 80, 7.0f);
    recording.window(0, 10, window);
    EXPECT_FLOAT_EQ(window[0], (-2.0f + 4) / 4);
    EXPECT_FLOAT_EQ(window[1], (1.0f - 8 + 4) / 4);
    EXPECT_FLOAT_EQ(window[10 * 80], 0);
    recording.listening_window(0, window);
    EXPECT_FLOAT_EQ(window[11 * 80], (1.0f + 4) / 4);
    EXPECT_FLOAT_EQ(window[12 * 80], (1.0f - 8 + 4) / 4);  // silence, not zero
}

}  // namespace
}  // namespace hark::whisper
