// Models in other formats and types, read back by the readers.
#include "hub/convert.h"

#include <gtest/gtest.h>

#include <cstring>

#include "core/error.h"
#include "core/half.h"
#include "formats/safetensors.h"
#include "hub/describe.h"
#include "hub/tensor_list.h"
#include "kernels/quant/quantize.h"
#include "support/family_folder.h"
#include "support/golden.h"
#include "support/packed_folder.h"
#include "support/process.h"
#include "whisper/model/model.h"

namespace hark::models {
namespace {

namespace fs = std::filesystem;

constexpr const char* kText = "Once upon a time, it's a caf\xC3\xA9 \xE4\xB8\x80!  12 <|en|>\n";

class Convert : public ::testing::Test {
  protected:
    fs::path convert(const fs::path& from, const std::string& to, const std::string& format,
                     const std::string& dtype) {
        const fs::path path = directory_.path() / to;
        convert_model(from, path, {format, dtype, tokenizer_},
                      [&](const std::string& warning) { warnings_.push_back(warning); });
        return path;
    }
    std::string fails(const fs::path& from, const std::string& to, const std::string& format,
                      const std::string& dtype) {
        try {
            convert(from, to, format, dtype);
        } catch (const Error& error) {
            return error.what();
        }
        return "nothing was thrown";
    }
    std::vector<std::string> left() const {
        std::vector<std::string> names;
        for (const auto& entry : fs::directory_iterator(directory_.path()))
            names.push_back(entry.path().filename());
        return names;
    }

    test::TemporaryDirectory directory_;
    std::string tokenizer_;
    std::vector<std::string> warnings_;
};

using Rounded = std::function<std::vector<float>(const ModelTensor&, std::vector<float>)>;

// Every tensor of `found` is what `rounded` makes of the one of `from`.
void expect_tensors(const fs::path& from, const fs::path& found, const Rounded& rounded) {
    const ModelHandle a = open_any_model(from), b = open_any_model(found);
    for (const ModelTensor& tensor : tensor_list(a)) {
        const std::vector<float> expected = rounded(tensor, values_of(a.tensors(), tensor));
        const std::vector<float> values = values_of(b.tensors(), tensor);
        ASSERT_EQ(values.size(), expected.size()) << tensor.name;
        ASSERT_EQ(std::memcmp(values.data(), expected.data(), values.size() * sizeof(float)), 0)
            << tensor.name;
    }
}

const Rounded kSame = [](const ModelTensor&, std::vector<float> values) { return values; };

// What a model's text is made with.
void expect_same_vocabulary(const whisper::Tokenizer& a, const whisper::Tokenizer& b) {
    EXPECT_EQ(a.encode(kText), b.encode(kText));
    EXPECT_EQ(a.decode(a.encode(kText)), kText);
    EXPECT_EQ(b.decode(a.encode(kText)), kText);
    EXPECT_EQ(a.special().languages, b.special().languages);
    EXPECT_EQ(a.special().multilingual, b.special().multilingual);
    EXPECT_EQ(a.special().eot, b.special().eot);
    EXPECT_EQ(a.special().no_speech, b.special().no_speech);
    EXPECT_EQ(a.special().timestamp_begin, b.special().timestamp_begin);
    EXPECT_EQ(a.non_speech_tokens(), b.non_speech_tokens());
}

TEST_F(Convert, ToOtherTypesOfHuggingFace) {
    expect_tensors(test::whisper_demo(), convert(test::whisper_demo(), "f32", "safetensors", "f32"),
                   kSame);
    // The demonstration models are f16: their own bytes come back.
    expect_tensors(test::whisper_demo(), convert(test::whisper_demo(), "f16", "safetensors", "f16"),
                   kSame);
    const fs::path bf16 = convert(test::whisper_demo(), "bf16", "safetensors", "bf16");
    expect_tensors(test::whisper_demo(), bf16, [](const ModelTensor&, std::vector<float> values) {
        for (float& value : values) value = to_float(to_bf16(value));
        return values;
    });
    EXPECT_EQ(describe_model(open_any_model(bf16))["stored"].begin().key(), "bf16");
    EXPECT_NE(test::read_text(bf16 / "config.json").find("\"torch_dtype\": \"bfloat16\""),
              std::string::npos);
    for (const char* name : {"tokenizer.json", "generation_config.json", "merges.txt",
                             "preprocessor_config.json", "vocab.json"})
        EXPECT_EQ(test::read_text(bf16 / name), test::read_text(test::whisper_demo() / name))
            << name;
    EXPECT_EQ(warnings_, std::vector<std::string>());
}

TEST_F(Convert, AGptModel) {
    const fs::path path = convert(test::gpt_demo(), "gpt/", "safetensors", "f32");
    expect_tensors(test::gpt_demo(), path, kSame);
    EXPECT_EQ(gpt::open_model(path)->tokenizer()->encode(kText),
              gpt::open_model(test::gpt_demo())->tokenizer()->encode(kText));
    EXPECT_NE(fails(test::gpt_demo(), "gpt.bin", "ggml", "f16")
                  .find("a language model cannot be written as ggml"),
              std::string::npos);
}

// transformers 5 keeps it in a file of its own.
TEST_F(Convert, AFoldersChatTemplateGoesAlong) {
    test::write_tiny_qwen2(directory_.path() / "chat");
    const fs::path path = convert(directory_.path() / "chat", "f16", "safetensors", "f16");
    EXPECT_EQ(test::read_text(path / "chat_template.jinja"), test::kTinyTemplate);
}

// A model of several kinds of input becomes one of text.
TEST_F(Convert, ATextModelInsideAnother) {
    nlohmann::json text = nlohmann::json::parse(test::kTinyConfig);
    text.erase("tie_word_embeddings");
    test::write_tiny_model(
        directory_.path() / "other",
        nlohmann::json(
            {{"model_type", "other"}, {"tie_word_embeddings", true}, {"text_config", text}})
            .dump(),
        "qwen2", "language_model.model.");
    const fs::path path = convert(directory_.path() / "other", "text", "safetensors", "f32");
    expect_tensors(directory_.path() / "other", path, kSame);
    const auto config = nlohmann::json::parse(test::read_text(path / "config.json"));
    EXPECT_EQ(config["model_type"], "qwen2");
    EXPECT_EQ(config["tie_word_embeddings"], true);
    EXPECT_TRUE(SafetensorsFile(path / "model.safetensors").find("model.norm.weight"));
}

// Of another family than GPT-2, and quantised: a folder of plain numbers.
TEST_F(Convert, AQuantizedFolder) {
    const auto golden = nlohmann::json::parse(
        test::read_text(test::source_dir() / "tests/golden/packed.json"))["gptq, 4 bits, act-order"];
    const fs::path from = directory_.path() / "packed";
    test::write_packed_folder(from, golden["config"], test::stored_tensors(golden));
    const fs::path path = convert(from, "plain", "safetensors", "f32");
    EXPECT_TRUE(gpt::open_model(from)->widening().has_value());
    EXPECT_FALSE(gpt::open_model(path)->widening().has_value());
    expect_tensors(from, path, kSame);
}

TEST_F(Convert, ToGgmlAndBack) {
    const fs::path ggml = convert(test::whisper_demo(), "ggml-demo.bin", "ggml", "f32");
    const ModelHandle model = open_any_model(ggml);
    EXPECT_STREQ(model.format(), "ggml");
    expect_tensors(test::whisper_demo(), ggml, kSame);
    const auto original = whisper::open_model(test::whisper_demo());
    expect_same_vocabulary(original->tokenizer(), model.whisper->tokenizer());

    // From a file of another format the configuration and the tokenizer are made again.
    const fs::path back = convert(ggml, "back", "safetensors", "f16");
    expect_tensors(test::whisper_demo(), back, kSame);
    const auto again = whisper::open_model(back);
    expect_same_vocabulary(original->tokenizer(), again->tokenizer());
    EXPECT_EQ(again->config().alignment_heads, original->config().alignment_heads);
    EXPECT_EQ(describe_model(open_any_model(back)),
              describe_model(open_any_model(test::whisper_demo())));
    EXPECT_EQ(warnings_, std::vector<std::string>());
}

TEST_F(Convert, GgmlsTypes) {
    const fs::path f16 = convert(test::whisper_demo(), "f16.bin", "ggml", "f16");
    expect_tensors(test::whisper_demo(), f16, kSame);
    EXPECT_LT(fs::file_size(f16), 21'000'000u);
    for (const Dtype dtype : {Dtype::q4_0, Dtype::q4_1, Dtype::q5_0, Dtype::q5_1, Dtype::q8_0}) {
        SCOPED_TRACE(name_of(dtype));
        const fs::path path =
            convert(test::whisper_demo(), concat(name_of(dtype), ".bin"), "ggml", name_of(dtype));
        expect_tensors(test::whisper_demo(), path,
                       [&](const ModelTensor& tensor, std::vector<float> values) {
                           if (!tensor.matrix || tensor.shape.size() == 3)
                               return values;  // convolutions: f16
                           const auto n = static_cast<int64_t>(values.size());
                           std::vector<std::byte> blocks(row_bytes(dtype, n));
                           quantize(blocks.data(), values.data(), dtype, n);
                           dequantize(values.data(), blocks.data(), dtype, n);
                           return values;
                       });
    }
}

// 0.02486259 and 0.00199082 are the first two filters' at bin 1, openai/whisper's mel_filters.npz.
TEST_F(Convert, AGgmlFileBeginsAsWhisperCppReadsIt) {
    const std::string bytes =
        test::read_text(convert(test::whisper_demo(), "q5.bin", "ggml", "q5_1"));
    int32_t header[14];
    float filters[203];
    std::memcpy(header, bytes.data(), sizeof header);
    std::memcpy(filters, bytes.data() + sizeof header, sizeof filters);
    const int32_t expected[14] = {0x67676d6c, 5448, 1500, 256, 4,    4,  448,
                                  256,        4,    4,    80,  2009, 80, 201};
    for (int i = 0; i < 14; ++i) EXPECT_EQ(header[i], expected[i]) << i;
    EXPECT_EQ(filters[0], 0.0f);
    EXPECT_NEAR(filters[1], 0.02486259, 1e-8);
    EXPECT_NEAR(filters[202], 0.00199082, 1e-8);
}

TEST_F(Convert, TheModelsOwnAlignmentHeadsAreMissed) {
    fs::copy(test::whisper_demo(), directory_.path() / "from", fs::copy_options::recursive);
    std::string config = test::read_text(test::whisper_demo() / "generation_config.json");
    config.insert(1, "\"alignment_heads\": [[1, 2]],");
    test::write_text(directory_.path() / "from/generation_config.json", config);
    convert(directory_.path() / "from", "heads.bin", "ggml", "f16");
    ASSERT_EQ(warnings_.size(), 1u);
    EXPECT_NE(warnings_[0].find("alignment heads are lost"), std::string::npos);
}

TEST_F(Convert, AVocabularyFromElsewhere) {
    tokenizer_ = test::whisper_demo();
    const fs::path ggml = convert(test::whisper_demo(), "a.bin", "ggml", "f16");
    const fs::path back = convert(ggml, "back", "safetensors", "f16");
    expect_same_vocabulary(whisper::open_model(test::whisper_demo())->tokenizer(),
                           whisper::open_model(back)->tokenizer());
    tokenizer_ = directory_.path() / "none";
    EXPECT_NE(fails(ggml, "other", "safetensors", "f16").find("none"), std::string::npos);
    EXPECT_FALSE(fs::exists(directory_.path() / "other"));
}

TEST_F(Convert, WhatCannotBeWrittenLeavesNothing) {
    EXPECT_THROW(convert(test::whisper_demo(), "x", "safetensors", "q8_0"), UsageError);
    EXPECT_THROW(convert(test::whisper_demo(), "x", "ggml", "bf16"), UsageError);
    test::write_text(directory_.path() / "there", "");
    EXPECT_NE(fails(test::whisper_demo(), "there", "safetensors", "f16")
                  .find("expected a new or empty folder"),
              std::string::npos);
    // 100,000 is beyond f16.
    fs::copy(test::gpt_demo(), directory_.path() / "from", fs::copy_options::recursive);
    const SafetensorsFile whole(test::gpt_demo() / "model.safetensors");
    SafetensorsHeader header;
    std::string data;
    for (TensorEntry entry : whole.entries()) {
        const Tensor tensor = whole.tensor(entry);
        std::string bytes(static_cast<const char*>(tensor.data), tensor.bytes());
        if (entry.name.ends_with("ln_f.bias")) {
            entry.dtype = "F32";
            std::vector<float> values(256, 1e5f);
            bytes.assign(reinterpret_cast<const char*>(values.data()), 1024);
        }
        entry.begin = data.size();
        data += bytes;
        entry.end = data.size();
        header.tensors.push_back(entry);
    }
    test::write_text(directory_.path() / "from/model.safetensors",
                     format_safetensors_header(header) + data);
    EXPECT_EQ(fails(directory_.path() / "from", "large", "safetensors", "f16"),
              (directory_.path() / "from/model.safetensors").string() +
                  ": ln_f.bias: expected values that f16 can hold, found 100000");
    std::vector<std::string> names = left();
    std::sort(names.begin(), names.end());
    EXPECT_EQ(names, (std::vector<std::string>{"from", "there"}));
}

// Whisper's keys have no bias: where they are one product with others, zeros stand for it.
int64_t bytes_of_key_biases(const whisper::Config& c) {
    return 4 * (c.n_audio_layer * c.n_audio_state + 2 * c.n_text_layer * c.n_text_state);
}

void expect_memory(const fs::path& path, const std::string& stored) {
    const auto described = describe_model(open_any_model(path));
    EXPECT_TRUE(described["stored"].contains(stored)) << path << described["stored"];
    for (const std::string dtype : {"auto", "f32", "f16", "bf16", "int8", "fp8"}) {
        const Device on = dtype == "fp8" ? Device::cuda : Device::cpu;  // a GPU's alone
        const whisper::Model model = whisper::load_model(path, precision_of(dtype, on));
        EXPECT_EQ(described["memory"][dtype].get<int64_t>(),
                  static_cast<int64_t>(model.weights.bytes()) - bytes_of_key_biases(model.config))
            << path << " " << dtype;
    }
}

TEST_F(Convert, MemoryIsWhatLoadingTakes) {
    expect_memory(test::whisper_demo(), "f16");
    expect_memory(convert(test::whisper_demo(), "f32", "safetensors", "f32"),
                  "f32");  // whose values f16 holds
    expect_memory(convert(test::whisper_demo(), "bf16", "safetensors", "bf16"), "bf16");
    expect_memory(convert(test::whisper_demo(), "q5.bin", "", "q5_0"), "q5_0");
    expect_memory(test::source_dir() / "tests/golden/model_files/ctranslate2", "int8");
}

}  // namespace
}  // namespace hark::models
