// Models in other formats than Hugging Face's: the same tensors, the same shape, the same tokens.
// Golden: tests/golden/model_files, by PyTorch and CTranslate2 (tests/golden/model_files.py and
// ctranslate2_int16.py). The model_files_demo model as that script writes it is read too where
// HARK_MODEL_FILES names the directory.
#include <gtest/gtest.h>

#include <cstdlib>

#include "core/error.h"
#include "core/json/json.h"
#include "support/golden.h"
#include "whisper/model/model.h"
#include "whisper/model_writers.h"

namespace hark::whisper {
namespace {

using namespace test;

std::filesystem::path golden() { return source_dir() / "tests/golden/model_files"; }

Tensor take(TensorSource& tensors, const std::string& name, const Tensor& like) {
    const auto& n = like.shape;
    return like.rank == 1   ? tensors.take(name, {n[0]})
           : like.rank == 2 ? tensors.take(name, {n[0], n[1]})
                            : tensors.take(name, {n[0], n[1], n[2]});
}

float value(const Tensor& tensor, int64_t i) {
    if (tensor.dtype == Dtype::f16) return to_float(tensor.as<f16_t>()[i]);
    return tensor.dtype == Dtype::bf16 ? to_float(tensor.as<bf16_t>()[i]) : tensor.as<float>()[i];
}

// How far values may be from the model's own: `rows` times their row's largest, `each` times
// themselves, and `all` times the tensor's largest.
struct Tolerance {
    float rows = 0, each = 0, all = 0;
};

float largest_of(const Tensor& tensor, int64_t from, int64_t to) {
    float largest = 0;
    for (int64_t i = from; i < to; ++i) largest = std::max(largest, std::abs(value(tensor, i)));
    return largest;
}

// Compares every tensor of a Hugging Face file with the model's.
void expect_same(ModelFile& model, const std::filesystem::path& directory, Tolerance tolerance) {
    const SafetensorsFile file(directory / "model.safetensors");
    ASSERT_GT(file.entries().size(), 40u);
    for (const TensorEntry& entry : file.entries()) {
        const std::string name = entry.name.substr(entry.name.find('.') + 1);
        if (name == "weight") continue;  // proj_out, the embedding's twin
        const Tensor expected = file.tensor(entry);
        ASSERT_TRUE(model.tensors().has(name)) << name;
        const Tensor found = take(model.tensors(), name, expected);
        const int64_t rows = expected.rank == 1 ? 1 : expected.dim(0),
                      size = expected.size() / rows;
        const float all = tolerance.all * largest_of(expected, 0, expected.size());
        for (int64_t row = 0; row < rows; ++row) {
            const float largest = largest_of(expected, row * size, (row + 1) * size);
            for (int64_t i = row * size; i < (row + 1) * size; ++i)
                ASSERT_LE(
                    std::abs(value(found, i) - value(expected, i)),
                    all + tolerance.rows * largest + tolerance.each * std::abs(value(expected, i)))
                    << entry.name << " " << i << ": " << value(found, i) << " "
                    << value(expected, i);
        }
        model.tensors().release_tensors();
    }
    EXPECT_FALSE(model.tensors().has("decoder.layers.99.fc1.weight"));
    EXPECT_THROW(model.tensors().take("decoder.layers.99.fc1.weight", {1, 1}), Error);
    EXPECT_THROW(model.tensors().take("encoder.conv1.bias", {1}), Error);
}

constexpr Tolerance kBits{}, kInt8{0.5f / 127 * 1.001f, 0}, kBf16{0, 0x1p-8f};
// Queries, keys and values have one scale: the largest of one is at most 4 times another's.
constexpr Tolerance kInt16{.all = 4 * 0.5f / 1024 * 1.001f};

void expect_same_shape(const Config& found, const Config& expected) {
    EXPECT_EQ(found.n_mels, expected.n_mels);
    EXPECT_EQ(found.n_audio_ctx, expected.n_audio_ctx);
    EXPECT_EQ(found.n_audio_state, expected.n_audio_state);
    EXPECT_EQ(found.n_audio_head, expected.n_audio_head);
    EXPECT_EQ(found.n_audio_layer, expected.n_audio_layer);
    EXPECT_EQ(found.n_audio_mlp, expected.n_audio_mlp);
    EXPECT_EQ(found.n_vocab, expected.n_vocab);
    EXPECT_EQ(found.n_text_ctx, expected.n_text_ctx);
    EXPECT_EQ(found.n_text_state, expected.n_text_state);
    EXPECT_EQ(found.n_text_head, expected.n_text_head);
    EXPECT_EQ(found.n_text_layer, expected.n_text_layer);
    EXPECT_EQ(found.n_text_mlp, expected.n_text_mlp);
}

void expect_same_tokens(const Tokenizer& found) {
    const Tokenizer expected(test::whisper_demo(), 5448);
    EXPECT_EQ(found.special().eot, expected.special().eot);
    EXPECT_EQ(found.special().sot_prev, expected.special().sot_prev);
    EXPECT_EQ(found.special().no_speech, expected.special().no_speech);
    EXPECT_EQ(found.special().timestamp_begin, expected.special().timestamp_begin);
    EXPECT_EQ(found.special().languages, expected.special().languages);
    EXPECT_EQ(found.sot_sequence("de", Task::translate),
              expected.sot_sequence("de", Task::translate));
    EXPECT_EQ(found.non_speech_tokens(), expected.non_speech_tokens());
    for (const char* text : {"He took off his hat and sat down by the fire.", " Straßenbahn",
                             "  12 o'clock\n\n(maybe) ♪", "数 \xF0\x9F\x98\x80", "zzzqqq"})
        EXPECT_EQ(found.encode(text), expected.encode(text)) << text;
}

std::string model_files_error_of(const std::filesystem::path& path) {
    try {
        open_model(path)->tokenizer();
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

TEST(ModelFiles, PytorchsOwnFileHasTheTensors) {
    const auto model = open_model(golden() / "small.pt");
    EXPECT_STREQ(model->format(), "OpenAI");
    expect_same_shape(model->config(), load_config(golden() / "hugging-face"));
    expect_same(*model, golden() / "hugging-face", kBits);
}

TEST(ModelFiles, Ctranslate2sOwnFileHasTheTensors) {
    const auto model = open_model(golden() / "ctranslate2");
    EXPECT_STREQ(model->format(), "CTranslate2");
    EXPECT_TRUE(model->int8());
    expect_same_shape(model->config(), load_config(golden() / "hugging-face"));
    expect_same(*model, golden() / "hugging-face", kInt8);
}

TEST(ModelFiles, Ctranslate2sOwnInt16HasTheTensors) {
    const auto model = open_model(golden() / "ctranslate2-int16");
    EXPECT_FALSE(model->int8());
    expect_same_shape(model->config(), load_config(golden() / "hugging-face"));
    expect_same(*model, golden() / "hugging-face", kInt16);
}

class WrittenFiles : public testing::Test {
  protected:
    TemporaryDirectory directory_;
    const std::filesystem::path path_ = directory_.path();
};

TEST_F(WrittenFiles, OpenaisFileWithItsVocabularyBesideIt) {
    write_openai(path_ / "demo.pt");
    const auto model = open_model(path_ / "demo.pt");
    expect_same_shape(model->config(), load_config(test::whisper_demo()));
    expect_same(*model, test::whisper_demo(), kBits);
    EXPECT_NE(model_files_error_of(path_ / "demo.pt")
                  .find("multilingual.tiktoken next to it, or --tokenizer"),
              std::string::npos)
        << model_files_error_of(path_ / "demo.pt");
    write_ranks(path_ / "multilingual.tiktoken");
    expect_same_tokens(model->tokenizer());
}

TEST_F(WrittenFiles, ADistilledDecoderIsShorterThanTheEncoder) {
    write_openai(path_ / "distil.pt", 2);
    const Model model = load_model(path_ / "distil.pt", {});
    EXPECT_EQ(model.encoder.blocks.size(), 4u);
    EXPECT_EQ(model.decoder.blocks.size(), 2u);
    EXPECT_EQ(model.config.alignment_heads.front(), (AlignmentHead{1, 0}));
}

TEST_F(WrittenFiles, Ctranslate2sFloatsAreTheSameBits) {
    write_text(path_ / "model.bin", Ctranslate2Writer(Ctranslate2Writer::Type::f16).text());
    write_text(path_ / "config.json", R"({"alignment_heads": [[3, 1], [2, 0]]})");
    const auto model = open_model(path_);
    expect_same_shape(model->config(), load_config(test::whisper_demo()));
    EXPECT_EQ(model->config().alignment_heads, (std::vector<AlignmentHead>{{2, 0}, {3, 1}}));
    EXPECT_FALSE(model->int8());
    expect_same(*model, test::whisper_demo(), kBits);
    EXPECT_NE(model_files_error_of(path_).find("vocabulary.json"), std::string::npos)
        << model_files_error_of(path_);
    const Bpe bpe = Bpe::from_directory(test::whisper_demo());
    const auto vocab = nlohmann::json::parse(read_text(test::whisper_demo() / "vocab.json"));
    std::vector<std::string> tokens(5448);
    for (int32_t id = 3840; id < 5448; ++id) tokens[static_cast<size_t>(id)] = bpe.bytes_of(id);
    for (const auto& [token, id] : vocab.items()) tokens.at(id.get<size_t>()) = token;
    std::string lines;
    for (const std::string& token : tokens) lines += token + "\n";
    write_text(path_ / "vocabulary.txt", lines);
    expect_same_tokens(model->tokenizer());
    write_text(path_ / "vocabulary.json", nlohmann::json(tokens).dump());
    expect_same_tokens(model->tokenizer());
    std::filesystem::copy(test::whisper_demo() / "tokenizer.json", path_ / "tokenizer.json");
    expect_same_tokens(model->tokenizer());
    write_text(path_ / "tokenizer.json", "{");
    EXPECT_NE(model_files_error_of(path_).find("tokenizer.json"), std::string::npos)
        << model_files_error_of(path_);
}

TEST_F(WrittenFiles, Ctranslate2sInt8StaysInt8) {
    write_text(path_ / "model.bin", Ctranslate2Writer(Ctranslate2Writer::Type::int8).text());
    write_text(path_ / "config.json", "{}");
    const auto file = open_model(path_);
    expect_same(*file, test::whisper_demo(), kInt8);
    const Model model = read_model(*file, {});
    EXPECT_EQ(model.precision.weights, WeightPrecision::int8);
    EXPECT_EQ(model.precision.cache, Dtype::f16);
    const Matrix& qkv = model.decoder.blocks[3].attn.qkv.weight;
    ASSERT_EQ(describe(qkv.values), "int8 (768, 256)");
    const Tensor keys =
        file->tensors().take("decoder.layers.3.self_attn.k_proj.weight", {256, 256});
    for (int64_t row = 0; row < 256; ++row)
        for (int64_t i = 0; i < 256; ++i) {
            const int8_t stored = qkv.values.as<int8_t>()[(256 + row) * 256 + i];
            const float scale = qkv.scales.as<float>()[256 + row];
            ASSERT_EQ(stored, std::lround(keys.as<float>()[row * 256 + i] / scale));
            ASSERT_FLOAT_EQ(stored * scale, keys.as<float>()[row * 256 + i]);
        }
    EXPECT_EQ(read_model(*file, {WeightPrecision::f32}).precision.weights, WeightPrecision::f32);
}

// Each value is a whole number divided by the scale, which queries, keys and values share.
TEST_F(WrittenFiles, Ctranslate2sInt16IsTakenAsF32) {
    const std::string text = Ctranslate2Writer(Ctranslate2Writer::Type::int16).text();
    write_text(path_ / "model.bin", text);
    write_text(path_ / "config.json", "{}");
    const auto file = open_model(path_);
    EXPECT_FALSE(file->int8());
    expect_same(*file, test::whisper_demo(), kInt16);
    const SafetensorsFile own(test::whisper_demo() / "model.safetensors");
    const std::string attention = "decoder.layers.3.self_attn.";
    std::map<std::string, Tensor> expected;
    float largest = 0;
    for (const std::string part : {"q", "k", "v"}) {
        const std::string name = attention + part + "_proj.weight";
        const Tensor tensor = own.tensor(*own.find("model." + name));
        expected[name] = tensor;
        largest = std::max(largest, largest_of(tensor, 0, tensor.size()));
    }
    const float scale = 1024 / largest;
    for (const auto& [name, tensor] : expected) {
        const Tensor found = file->tensors().take(name, {256, 256});
        ASSERT_EQ(describe(found), "f32 (256, 256)");
        for (int64_t i = 0; i < found.size(); ++i)
            ASSERT_EQ(found.as<float>()[i], std::nearbyint(value(tensor, i) * scale) / scale)
                << name << " " << i;
    }
    EXPECT_EQ(read_model(*file, {}).decoder.blocks[3].attn.qkv.weight.values.dtype, Dtype::f32);
    // The scale of a variable that is not there, is of another type, or is not above 0.
    const std::string scale_name = "encoder/conv1/weight_scale";
    const size_t at = text.find(scale_name) + scale_name.size() + 1;  // after its NUL: its rank
    const auto error = [&](size_t from, const std::string& bytes) {
        std::string changed = text;
        changed.replace(from, bytes.size(), bytes);
        write_text(path_ / "model.bin", changed);
        try {
            open_model(path_)->tensors().take("encoder.conv1.weight", {256, 80, 3});
        } catch (const Error& error) {
            return std::string(error.what());
        }
        return std::string("no error");
    };
    EXPECT_EQ(error(at, std::string(1, '\0')), "no error");
    EXPECT_NE(error(at - 2, "x").find("expected 'encoder/conv1/weight_scale', found none"),
              std::string::npos);
    EXPECT_NE(error(at + 1, "\x03").find("expected one scale of 32 bits"), std::string::npos);
    for (const uint64_t bits : {0x00000000u, 0xbf800000u, 0x7fc00000u})  // 0, -1, NaN
        EXPECT_NE(error(at + 6, little(bits, 4)).find("expected a scale above 0"),
                  std::string::npos);
}

TEST_F(WrittenFiles, BrokenCtranslate2FilesAreRefused) {
    write_text(path_ / "config.json", "{}");
    const std::string whole = read_text(golden() / "ctranslate2/model.bin");
    const auto found = [&](const std::string& bytes) {
        write_text(path_ / "model.bin", bytes);
        return model_files_error_of(path_);
    };
    for (size_t size : {0, 3, 5, 20, 24, 28, 60, 20000, 31000})
        EXPECT_NE(found(whole.substr(0, size)).find("model.bin"), std::string::npos) << size;
    EXPECT_NE(found(whole.substr(0, whole.size() - 1)).find("truncated?"), std::string::npos);
    EXPECT_NE(found(whole + "x").find("1 bytes after"), std::string::npos);
    const auto changed = [&](size_t at, const std::string& bytes) {
        std::string text = whole;
        text.replace(at, bytes.size(), bytes);
        return found(text);
    };
    EXPECT_NE(changed(0, little(2, 4)).find("of version 4 to 6, found 2"), std::string::npos);
    EXPECT_NE(changed(6, "Nonsense").find("expected WhisperSpec"), std::string::npos);
    EXPECT_NE(changed(18, little(9, 4)).find("revision 3"), std::string::npos);
    EXPECT_NE(changed(22, little(0xffffffff, 4)).find("model.bin"), std::string::npos);
    // A shape of 2^32 values and more, where its bytes are few.
    const size_t conv = whole.find("encoder/conv1/weight") + 21;
    EXPECT_NE(changed(conv + 1, little(9, 4)).find("needs 108 values of I8"), std::string::npos);
    EXPECT_NE(changed(conv + 1, std::string(12, '\xff')).find("more values than"),
              std::string::npos);
    EXPECT_NE(changed(conv + 13, "\x09").find("unknown dtype 9"), std::string::npos);
}

TEST_F(WrittenFiles, WhatIsNoModelSaysWhatItIs) {
    write_text(path_ / "x.pt", "\x80\x02\x8a\x0a old");
    EXPECT_NE(model_files_error_of(path_ / "x.pt").find("begins with the bytes 80 02 8a 0a"),
              std::string::npos)
        << model_files_error_of(path_ / "x.pt");
    write_text(path_ / "x.pt", "x");
    EXPECT_NE(model_files_error_of(path_ / "x.pt").find("begins with the bytes 78"),
              std::string::npos);
    EXPECT_NE(model_files_error_of(path_ / "none.pt").find("none.pt: cannot open"),
              std::string::npos);
    write_text(path_ / "x.pt", zip_of({{"a/data.pkl", pickled({{"n_mels", 80}}, {})}}));
    EXPECT_NE(model_files_error_of(path_ / "x.pt").find("expected a size 'n_audio_state'"),
              std::string::npos)
        << model_files_error_of(path_ / "x.pt");
}

TEST(ModelFiles, TheDemoModelByPytorchAndCtranslate2) {
    const char* files = std::getenv("HARK_MODEL_FILES");
    if (!files) GTEST_SKIP() << "HARK_MODEL_FILES names no directory of model_files.py's";
    for (const auto& [name, tolerance] : {std::pair("float16.pt", kBits),
                                          {"float32.pt", kBits},
                                          {"bfloat16.pt", kBf16},
                                          {"float32", kBits},
                                          {"float16", kBits},
                                          {"bfloat16", kBf16},
                                          {"int8", kInt8},
                                          {"int8_float32", kInt8},
                                          {"int8_float16", kInt8}}) {
        SCOPED_TRACE(name);
        const auto model = open_model(std::filesystem::path(files) / name);
        expect_same_shape(model->config(), load_config(test::whisper_demo()));
        EXPECT_EQ(model->config().alignment_heads,
                  load_config(test::whisper_demo()).alignment_heads);
        expect_same(*model, test::whisper_demo(), tolerance);
        expect_same_tokens(model->tokenizer());
    }
}

}  // namespace
}  // namespace hark::whisper
