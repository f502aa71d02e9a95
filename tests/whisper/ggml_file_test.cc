// whisper.cpp's files: the demonstration model written as one, and files that are wrong.
#include "whisper/model/ggml_file.h"

#include <gtest/gtest.h>

#include <functional>

#include "core/error.h"
#include "core/json/json.h"
#include "support/process.h"
#include "whisper/ggml_demo.h"
#include "whisper/model/model.h"

namespace hark::whisper {
namespace {

using nlohmann::json;
using namespace test;

class GgmlFileTest : public testing::Test {
  protected:
    std::filesystem::path write(const std::string& bytes) {
        write_text(directory_.path() / "ggml-model.bin", bytes);
        return directory_.path() / "ggml-model.bin";
    }
    // What is said of a file with these bytes; "" where it is read.
    std::string error_of(const std::string& bytes) {
        try {
            const GgmlFile file(write(bytes));
        } catch (const Error& error) {
            return error.what();
        }
        return "";
    }
    void expect_error(const GgmlParts& parts, const std::string& part) {
        const std::string message = error_of(parts.text());
        EXPECT_NE(message.find(part), std::string::npos) << message;
        EXPECT_NE(message.find("ggml-model.bin"), std::string::npos) << message;
    }
    TemporaryDirectory directory_;
};

TEST_F(GgmlFileTest, TheDemoModelIsTheSameAsFromItsFolder) {
    const std::unique_ptr<ModelFile> folder = open_model(whisper_demo());
    const std::unique_ptr<ModelFile> file = open_model(write(ggml_demo().text()));
    EXPECT_STREQ(file->format(), "ggml");
    for (const Named& named : demo_tensors()) {
        const Tensor expected = taken(folder->tensors(), named.hugging_face, named.shape);
        const Tensor found = taken(file->tensors(), named.hugging_face, named.shape);
        EXPECT_EQ(describe(found), describe(expected)) << named.openai;
        EXPECT_TRUE(bytes_of(found) == bytes_of(expected)) << named.openai;
    }
    file->tensors().release_tensors();
    EXPECT_TRUE(file->tensors().has("encoder.layers.3.fc2.bias"));
    EXPECT_FALSE(file->tensors().has("encoder.layers.4.fc2.bias"));
    const Config& config = file->config();
    EXPECT_EQ(config.n_mels, 80);
    EXPECT_EQ(config.n_audio_mlp, 1024);
    EXPECT_EQ(config.n_text_layer, 4);
    EXPECT_EQ(config.n_vocab, 5448);
}

TEST_F(GgmlFileTest, TheVocabularyIsTheFiles) {
    const Tokenizer own = open_model(whisper_demo())->tokenizer();
    const Tokenizer found = open_model(write(ggml_demo().text()))->tokenizer();
    for (const char* text : {" The old captain walked slowly down to the harbour.", "a", " été",
                             "naïve 123   \n\t", "\xf0\x9f\x8c\x8a"})
        EXPECT_EQ(found.encode(text), own.encode(text)) << text;
    const SpecialTokens &a = found.special(), &b = own.special();
    EXPECT_EQ(a.eot, b.eot);
    EXPECT_EQ(a.sot, b.sot);
    EXPECT_EQ(a.languages, b.languages);
    EXPECT_EQ(a.translate, b.translate);
    EXPECT_EQ(a.transcribe, b.transcribe);
    EXPECT_EQ(a.sot_lm, b.sot_lm);
    EXPECT_EQ(a.sot_prev, b.sot_prev);
    EXPECT_EQ(a.no_speech, b.no_speech);
    EXPECT_EQ(a.no_timestamps, b.no_timestamps);
    EXPECT_EQ(a.timestamp_begin, b.timestamp_begin);
    EXPECT_TRUE(a.multilingual);
}

// A quantised model keeps its blocks, and its text is that of the original model.
TEST_F(GgmlFileTest, EveryTypeTranscribes) {
    const json entry = golden("whisper_transcribe.json")["recordings"][0];
    const MelRecording mel = mel_of(samples_of(entry));
    Context ctx = make_cpu_context(1);
    for (const Dtype dtype :
         {Dtype::f16, Dtype::q8_0, Dtype::q5_1, Dtype::q5_0, Dtype::q4_1, Dtype::q4_0}) {
        const GgmlParts parts = ggml_demo(dtype);
        const std::unique_ptr<ModelFile> file = open_model(write(parts.text()));
        const Model model = read_model(*file, precision_of("auto"), ctx.arena.source());
        EXPECT_EQ(model.decoder.token_embedding.values.dtype, dtype);
        EXPECT_EQ(model.encoder.blocks[0].attn.qkv.weight.values.dtype, dtype);
        TranscribeOptions options;
        options.fallback_temperatures = {};
        EXPECT_EQ(text_of(ctx, model, file->tokenizer(), options, mel),
                  entry["text"].get<std::string>())
            << name_of(dtype);
    }
}

// A model of two layers, and of a vocabulary of single bytes.
GgmlParts small_parts() {
    GgmlParts parts;
    for (int byte = 0; byte < 256; ++byte) parts.tokens.emplace_back(1, static_cast<char>(byte));
    parts.tensors = {GgmlParts::tensor("decoder.ln.weight", 0, {32}, std::string(128, '\0')),
                     GgmlParts::tensor("encoder.conv1.bias", 0, {32, 1}, std::string(128, '\1'))};
    return parts;
}

TEST_F(GgmlFileTest, SpecialTokensBehindTheRanksAreLeftOut) {
    GgmlParts parts = small_parts();
    for (const char* more : {"", "<|endoftext|>", "<|startoftranscript|>"}) {
        parts.tokens.emplace_back(more);
        const int64_t ranks = std::min<int64_t>(static_cast<int64_t>(parts.tokens.size()), 257);
        parts.sizes[0] = ranks + 1509 + 99;
        const Tokenizer tokenizer = GgmlFile(write(parts.text())).tokenizer();
        EXPECT_EQ(tokenizer.special().eot, ranks) << more;
        EXPECT_EQ(tokenizer.special().timestamp_begin, ranks + 99 + 8) << more;
    }
}

TEST_F(GgmlFileTest, VocabulariesThatDoNotFitAreRefused) {
    GgmlParts parts = small_parts();
    EXPECT_NO_THROW(GgmlFile(write(parts.text())).tokenizer());
    for (const int64_t n_vocab : {256 + 1509 + 101, 256 + 1509}) {
        parts.sizes[0] = n_vocab;
        const std::filesystem::path path = write(parts.text());
        try {
            GgmlFile(path).tokenizer();
            ADD_FAILURE() << n_vocab;
        } catch (const Error& error) {
            EXPECT_EQ(std::string(error.what()).find(path.string() + ": a vocabulary of 256"), 0u)
                << error.what();
        }
    }
    parts = small_parts();
    // What some converters make of bytes that are no characters.
    parts.tokens[200] = parts.tokens[201] = "\xef\xbf\xbd";
    try {
        GgmlFile(write(parts.text())).tokenizer();
        ADD_FAILURE() << "a vocabulary that has lost bytes was taken";
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("--tokenizer"), std::string::npos) << error.what();
    }
    parts.tokens[7] = std::string(513, 'a');
    expect_error(parts, "token 7: expected a number from 0 to 512, found 513");
    parts.tokens.assign(1866, "");
    expect_error(parts, "the number of tokens: expected a number from 1 to 1865, found 1866");
}

TEST_F(GgmlFileTest, AWrongHeaderNamesTheSize) {
    const char* names[] = {"n_vocab",       "n_audio_ctx", "n_audio_state", "n_audio_head",
                           "n_audio_layer", "n_text_ctx",  "n_text_state",  "n_text_head",
                           "n_text_layer",  "n_mels"};
    for (size_t i = 0; i < std::size(names); ++i)
        for (const int64_t wrong : {int64_t{0}, int64_t{-1}, int64_t{INT32_MAX}}) {
            GgmlParts parts = small_parts();
            parts.sizes[i] = wrong;
            expect_error(parts, names[i]);
        }
    GgmlParts parts = small_parts();
    parts.sizes[6] = 64;
    expect_error(parts, "as many channels of text as of audio, 32, found 64");
    parts = small_parts();
    parts.mels = 3;
    expect_error(parts, "expected mel filters (2, 201), found (3, 201)");
    std::string other = small_parts().text();
    other[0] = 'f';
    EXPECT_NE(error_of(other).find("expected a ggml file"), std::string::npos);
}

TEST_F(GgmlFileTest, EveryTruncatedFileIsRefused) {
    const GgmlParts parts = small_parts();
    const std::string bytes = parts.text();
    GgmlParts bare = parts;
    bare.tensors.clear();
    const size_t whole = bare.text().size(), first = whole + parts.tensors[0].size();
    for (size_t size = 0; size < bytes.size(); size += 11) {
        if (size == whole || size == first) continue;
        ASSERT_NE(error_of(bytes.substr(0, size)), "") << size;
    }
    EXPECT_EQ(error_of(bytes), "");
}

TEST_F(GgmlFileTest, TensorsThatCannotBeAreRefused) {
    const auto with = [](const std::string& tensor) {
        GgmlParts parts = small_parts();
        parts.tensors.push_back(tensor);
        return parts;
    };
    const std::string data(128, '\0');
    expect_error(with(GgmlParts::tensor("decoder.ln.weight", 0, {32}, data)),
                 "'decoder.ln.weight': is there twice");
    expect_error(with(GgmlParts::tensor("a", 0, {33}, data)), "tensor 'a'");
    expect_error(
        with(GgmlParts::tensor("a", 0, {INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX}, data)),
        "tensor 'a': expected values in the file");
    expect_error(with(GgmlParts::tensor("a", 0, {0}, data)), "length: expected a number from 1");
    expect_error(with(GgmlParts::tensor("a", 0, {1, 1, 1, 1, 1}, data)), "dimensions: expected");
    expect_error(with(GgmlParts::tensor("", 0, {32}, data)), "the name's length: expected");
    expect_error(with(GgmlParts::tensor("a", 9, {32}, data)), "tensor 'a': expected a ggml type");
    expect_error(with(GgmlParts::tensor("a", 8, {33}, data)), "whole blocks of 32");
    expect_error(with(GgmlParts::tensor("a", 8, {32}, std::string(34, '\0'))),
                 "quantised blocks of version 2, found version 0");
    GgmlParts right = with(GgmlParts::tensor("a", 8, {32}, std::string(34, '\0')));
    right.sizes[10] = 2007;
    EXPECT_EQ(error_of(right.text()), "");
}

TEST_F(GgmlFileTest, AMissingTensorAndAnotherShapeAreNamed) {
    GgmlFile file(write(small_parts().text()));
    TensorSource& source = file.tensors();
    EXPECT_EQ(describe(source.take("encoder.conv1.bias", {32})), "f32 (32)");
    const auto error = [&](const std::function<void()>& take) {
        try {
            take();
        } catch (const Error& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    const std::string missing = error([&] { source.take("decoder.embed_positions.weight", {8}); });
    EXPECT_NE(missing.find("'decoder.positional_embedding', found none among 2"), missing.npos)
        << missing;
    const std::string shape = error([&] { source.take("decoder.layer_norm.weight", {16}); });
    EXPECT_NE(shape.find("'decoder.ln.weight': expected f32 (16), found f32 (32)"), shape.npos)
        << shape;
}

}  // namespace
}  // namespace hark::whisper
