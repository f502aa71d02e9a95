// Model directories that are wrong: an error that names the file and what was found, never a crash.
#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "core/error.h"
#include "core/files/files.h"
#include "core/json/json.h"
#include "support/golden.h"
#include "support/process.h"
#include "whisper/model/model.h"
#include "whisper/transcribe/mel_recording.h"

namespace hark::whisper {
namespace {

using nlohmann::json;
using test::read_text;
using test::write_text;

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
    Directory() { config_ = json::parse(read_text(test::whisper_demo() / "config.json")); }
    std::string load(const json& config, bool weights = true) {
        write_text(directory_.path() / "config.json", config.dump());
        std::error_code failed;
        if (weights)
            std::filesystem::create_symlink(absolute(test::whisper_demo()) / "model.safetensors",
                                            directory_.path() / "model.safetensors", failed);
        return error_of(directory_.path());
    }
    test::TemporaryDirectory directory_;
    json config_;
};

TEST_F(Directory, TheDemoModelLoads) { EXPECT_EQ(load(config_), ""); }

TEST_F(Directory, KeysThatAreMissingOrOutOfRangeAreNamed) {
    const std::set<std::string> optional = {"max_target_positions", "decoder_ffn_dim"};
    for (const char* key : {"d_model", "encoder_layers", "decoder_layers", "num_mel_bins",
                            "vocab_size", "max_target_positions", "decoder_ffn_dim"}) {
        json config = config_;
        config.erase(key);
        if (!optional.contains(key)) {
            EXPECT_NE(load(config).find(key), std::string::npos) << key;
        }
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

TEST_F(Directory, WhatAllModelsShareMayBeLeftOut) {
    for (const char* key : {"encoder_ffn_dim", "decoder_ffn_dim", "max_source_positions",
                            "max_target_positions", "model_type"})
        config_.erase(key);
    EXPECT_EQ(load(config_), "");
    const Config config = load_config(directory_.path());
    EXPECT_EQ(config.n_audio_mlp, 1024);
    EXPECT_EQ(config.n_text_mlp, 1024);
    EXPECT_EQ(config.n_audio_ctx, 1500);
    EXPECT_EQ(config.n_text_ctx, 448);
    config_["architectures"] = {"GPT2LMHeadModel"};
    EXPECT_NE(load(config_).find("expected model_type \"whisper\", found null"), std::string::npos);
    config_.erase("architectures");
    EXPECT_NE(load(config_).find("expected model_type \"whisper\", found null"), std::string::npos);
}

TEST_F(Directory, OptionalFilesMayBeMissing) {
    EXPECT_EQ(load(config_), "");
    std::filesystem::copy(test::whisper_demo() / "tokenizer.json",
                          directory_.path() / "tokenizer.json");
    const SpecialTokens expected = Tokenizer(test::whisper_demo(), 5448).special();
    const auto check = [&] {
        const auto model = open_model(directory_.path());
        const SpecialTokens found = model->tokenizer().special();
        EXPECT_TRUE(found.multilingual);
        EXPECT_EQ(found.languages, expected.languages);
        EXPECT_EQ(found.timestamp_begin, expected.timestamp_begin);
        EXPECT_EQ(model->config().alignment_heads.size(), 8u);  // the upper half's
    };
    check();  // neither generation_config.json nor preprocessor_config.json
    write_text(directory_.path() / "generation_config.json", R"({"max_length": null})");
    check();
}

// The shapes of distil-large-v3 and large-v3-turbo: fewer layers of text than of audio.
TEST(Shapes, DecodersMayBeShorterThanEncoders) {
    for (const auto& [layers, heads] : {std::pair(2, size_t{20}), {4, size_t{6}}}) {
        const json config = {{"architectures", {"WhisperForConditionalGeneration"}},
                             {"d_model", 1280},
                             {"encoder_layers", 32},
                             {"decoder_layers", layers},
                             {"encoder_attention_heads", 20},
                             {"decoder_attention_heads", 20},
                             {"num_mel_bins", 128},
                             {"vocab_size", 51866}};
        const Config found = parse_config(config.dump(), "config.json");
        EXPECT_EQ(found.n_text_layer, layers);
        EXPECT_EQ(found.n_audio_layer, 32);
        EXPECT_EQ(found.n_text_mlp, 5120);
        EXPECT_EQ(found.alignment_heads.size(), heads);
    }
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
    const std::string bytes = read_text(test::whisper_demo() / "model.safetensors");
    for (size_t size : {size_t{0}, size_t{7}, size_t{100}, bytes.size() / 2, bytes.size() - 1}) {
        write_text(directory_.path() / "model.safetensors", bytes.substr(0, size));
        EXPECT_NE(load(config_, false).find("model.safetensors"), std::string::npos) << size;
    }
}

TEST_F(Directory, ShardsLoadAndAreNeverOutsideTheDirectory) {
    std::filesystem::create_symlink(absolute(test::whisper_demo()) / "model.safetensors",
                                    directory_.path() / "part.st");
    write_text(directory_.path() / "model.safetensors.index.json",
               json{{"weight_map", {{"a", "part.st"}}}}.dump());
    EXPECT_EQ(load(config_, false), "");
    write_text(directory_.path() / "model.safetensors.index.json",
               json{{"weight_map", {{"a", "../part.st"}}}}.dump());
    EXPECT_NE(load(config_, false).find("index.json"), std::string::npos);
}

// The demo model in three files, as save_pretrained cuts a large one.
TEST_F(Directory, ShardsHoldTheTensorsApart) {
    const SafetensorsFile whole(test::whisper_demo() / "model.safetensors");
    json map;
    for (uint64_t shard = 0; shard < 3; ++shard) {
        SafetensorsHeader header;
        std::string data;
        const std::string name = concat("model-0000", shard + 1, "-of-00003.safetensors");
        for (size_t i = shard; i < whole.entries().size(); i += 3) {
            TensorEntry entry = whole.entries()[i];
            map[entry.name] = name;
            const Tensor tensor = whole.tensor(entry);
            entry.begin = data.size();
            data.append(static_cast<const char*>(tensor.data), tensor.bytes());
            entry.end = data.size();
            header.tensors.push_back(entry);
        }
        write_text(directory_.path() / name, format_safetensors_header(header) + data);
    }
    write_text(directory_.path() / "model.safetensors.index.json",
               json{{"metadata", {{"total_size", 1}}}, {"weight_map", map}}.dump());
    EXPECT_EQ(load(config_, false), "");
    const Model model = load_model(directory_.path(), {}),
                expected = load_model(test::whisper_demo(), {});
    const Tensor found = model.decoder.blocks[3].mlp.fc2.weight.values;
    EXPECT_EQ(std::memcmp(found.data, expected.decoder.blocks[3].mlp.fc2.weight.values.data,
                          found.bytes()),
              0);
    std::filesystem::remove(directory_.path() / "model-00002-of-00003.safetensors");
    EXPECT_NE(load(config_, false).find("model-00002-of-00003.safetensors"), std::string::npos);
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
    mel.as<float>()[11] = 1.0f;   // mel 0, frame 11: after the content, and in the maximum
    mel.as<float>()[12] = -9.0f;  // mel 1, frame 0: below the floor
    MelRecording recording;
    recording.add(chunk, 80);
    std::vector<float> window(3000 * 80, 7.0f);
    recording.window(0, 10, window);
    EXPECT_FLOAT_EQ(window[0], (-2.0f + 4) / 4);
    EXPECT_FLOAT_EQ(window[1], (1.0f - 8 + 4) / 4);
    EXPECT_FLOAT_EQ(window[10 * 80], 0);
    recording.detection_window(0, window);
    EXPECT_FLOAT_EQ(window[11 * 80], (1.0f + 4) / 4);
    EXPECT_FLOAT_EQ(window[12 * 80], (1.0f - 8 + 4) / 4);  // silence, not zero
}

}  // namespace
}  // namespace hark::whisper
