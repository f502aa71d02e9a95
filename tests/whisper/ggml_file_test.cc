// whisper.cpp's files: the demonstration model written as one, and files that are wrong.
#include "whisper/ggml_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "support/ggml_writer.h"
#include "support/process.h"

namespace hark::whisper {
namespace {

using test::GgmlParts;
using test::write_text;

std::filesystem::path demo() { return test::source_dir() / "models/whisper-demo"; }

// The demonstration model's tensors by both names, and the shapes that are asked for.
struct Named {
    std::string hugging_face, openai;
    std::vector<int64_t> shape;
};

std::vector<Named> demo_tensors() {
    const int64_t c = 256;
    std::vector<Named> list = {
        {"encoder.conv1.weight", "encoder.conv1.weight", {c, 80, 3}},
        {"encoder.conv1.bias", "encoder.conv1.bias", {c}},
        {"encoder.conv2.weight", "encoder.conv2.weight", {c, c, 3}},
        {"encoder.conv2.bias", "encoder.conv2.bias", {c}},
        {"encoder.embed_positions.weight", "encoder.positional_embedding", {1500, c}},
        {"encoder.layer_norm.weight", "encoder.ln_post.weight", {c}},
        {"encoder.layer_norm.bias", "encoder.ln_post.bias", {c}},
        {"decoder.embed_tokens.weight", "decoder.token_embedding.weight", {5448, c}},
        {"decoder.embed_positions.weight", "decoder.positional_embedding", {448, c}},
        {"decoder.layer_norm.weight", "decoder.ln.weight", {c}},
        {"decoder.layer_norm.bias", "decoder.ln.bias", {c}}};
    const auto both = [&](const std::string& from, const std::string& to,
                          std::vector<int64_t> shape, bool bias = true) {
        list.push_back({from + ".weight", to + ".weight", shape});
        if (bias) list.push_back({from + ".bias", to + ".bias", {shape[0]}});
    };
    const auto attention = [&](const std::string& from, const std::string& to) {
        both(from + ".q_proj", to + ".query", {c, c});
        both(from + ".k_proj", to + ".key", {c, c}, false);
        both(from + ".v_proj", to + ".value", {c, c});
        both(from + ".out_proj", to + ".out", {c, c});
    };
    for (const std::string side : {"encoder", "decoder"})
        for (int i = 0; i < 4; ++i) {
            const std::string from = concat(side, ".layers.", i);
            const std::string to = concat(side, ".blocks.", i);
            attention(from + ".self_attn", to + ".attn");
            both(from + ".self_attn_layer_norm", to + ".attn_ln", {c});
            if (side == "decoder") {
                attention(from + ".encoder_attn", to + ".cross_attn");
                both(from + ".encoder_attn_layer_norm", to + ".cross_attn_ln", {c});
            }
            both(from + ".fc1", to + ".mlp.0", {4 * c, c});
            both(from + ".fc2", to + ".mlp.2", {c, 4 * c});
            both(from + ".final_layer_norm", to + ".mlp_ln", {c});
        }
    return list;
}

// TensorSource takes a braced list.
Tensor taken(TensorSource& source, const std::string& name, const std::vector<int64_t>& shape) {
    if (shape.size() == 1) return source.take(name, {shape[0]});
    if (shape.size() == 2) return source.take(name, {shape[0], shape[1]});
    return source.take(name, {shape[0], shape[1], shape[2]});
}

std::string bytes_of(const Tensor& tensor) {
    return {static_cast<const char*>(tensor.data), tensor.bytes()};
}

// The demonstration model, its tensors as its own file stores them.
GgmlParts demo_parts() {
    GgmlParts parts;
    parts.sizes = {5448, 1500, 256, 4, 4, 448, 256, 4, 4, 80, 1};
    parts.mels = 80;
    const Bpe bpe = Bpe::from_directory(demo());
    for (int32_t id = 0; id < 3840; ++id) parts.tokens.push_back(bpe.bytes_of(id));
    const std::unique_ptr<ModelFile> folder = open_model(demo());
    for (const Named& named : demo_tensors()) {
        const Tensor tensor = taken(folder->tensors(), named.hugging_face, named.shape);
        std::vector<int64_t> lengths = named.shape;
        if (named.openai.find("conv") != std::string::npos && lengths.size() == 1)
            lengths.push_back(1);
        parts.tensors.push_back(GgmlParts::tensor(named.openai, tensor.dtype == Dtype::f16 ? 1 : 0,
                                                  lengths, bytes_of(tensor)));
    }
    return parts;
}

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
    test::TemporaryDirectory directory_;
};

TEST_F(GgmlFileTest, TheDemoModelIsTheSameAsFromItsFolder) {
    const std::unique_ptr<ModelFile> folder = open_model(demo());
    const std::unique_ptr<ModelFile> file = open_model(write(demo_parts().text()));
    EXPECT_STREQ(file->format(), "ggml");
    for (const Named& named : demo_tensors()) {
        const Tensor expected = taken(folder->tensors(), named.hugging_face, named.shape);
        const Tensor found = taken(file->tensors(), named.hugging_face, named.shape);
        EXPECT_EQ(describe(found), describe(expected)) << named.openai;
        EXPECT_TRUE(bytes_of(found) == bytes_of(expected)) << named.openai;
    }
    file->tensors().forget_taken();
    EXPECT_TRUE(file->tensors().has("encoder.layers.3.fc2.bias"));
    EXPECT_FALSE(file->tensors().has("encoder.layers.4.fc2.bias"));
    const Config& config = file->config();
    EXPECT_EQ(config.n_mels, 80);
    EXPECT_EQ(config.n_audio_mlp, 1024);
    EXPECT_EQ(config.n_text_layer, 4);
    EXPECT_EQ(config.n_vocab, 5448);
}

TEST_F(GgmlFileTest, TheVocabularyIsTheFiles) {
    const Tokenizer own = open_model(demo())->tokenizer();
    const Tokenizer found = open_model(write(demo_parts().text()))->tokenizer();
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
    parts.sizes[0] = 256 + 1509 + 101;
    EXPECT_THROW(GgmlFile(write(parts.text())).tokenizer(), Error);
    parts.sizes[0] = 256 + 1509;
    EXPECT_THROW(GgmlFile(write(parts.text())).tokenizer(), Error);
    parts = small_parts();
    parts.tokens[7] = "a";
    EXPECT_THROW(GgmlFile(write(parts.text())).tokenizer(), Error);
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
    expect_error(parts, "as many channels, found 32 and 64");
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
