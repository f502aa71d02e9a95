// Model files in llm.c's format: read against the same model as Hugging Face stores it, written and
// read again, and broken.
#include "gpt/families/llmc_file.h"

#include <gtest/gtest.h>

#include <cstring>

#include "core/error.h"
#include "core/half.h"
#include "gpt/train/export_model.h"
#include "support/process.h"

using namespace hark;
using namespace hark::gpt;

namespace {

// Two layers of 3 heads and 12 channels, 130 tokens, of which a file pads 126.
DecoderConfig small_config() {
    DecoderConfig config;
    config.n_vocab = 130;
    config.n_positions = 7;
    config.n_embd = 12;
    config.n_layer = 2;
    config.n_head = 3;
    config.n_inner = 48;
    complete_gpt2(config);
    return config;
}

struct Parameters {
    explicit Parameters(const DecoderConfig& of) : config(of), layout(of) {
        values.resize(static_cast<size_t>(layout.size()));
    }
    Tensor tensor() { return Tensor(values.data(), Dtype::f32, {std::ssize(values)}); }
    // No two alike, as a swap of two tensors must show; not written: the vocabulary's padding.
    void fill() {
        for (const ParameterLayout::Entry& entry : layout.entries())
            for (int64_t i = 0; i < entry.stored_rows * std::max<int64_t>(entry.columns, 1); ++i)
                values[static_cast<size_t>(entry.offset + i)] =
                    1 + static_cast<float>(entry.offset + i) * 0x1p-16f;
    }
    DecoderConfig config;
    ParameterLayout layout;
    std::vector<float> values;
};

float value_at(const std::string& bytes, size_t index) {
    float value;
    std::memcpy(&value, bytes.data() + 1024 + index * sizeof value, sizeof value);
    return value;
}

std::string with_field(std::string bytes, size_t field, int32_t value) {
    std::memcpy(bytes.data() + field * sizeof value, &value, sizeof value);
    return bytes;
}

void expect_llmc_file_refused(const std::filesystem::path& path, const std::string& bytes,
                              const std::string& part) {
    test::write_text(path, bytes);
    try {
        LlmcFile file(path);
        ADD_FAILURE() << "accepted; expected: " << part;
    } catch (const Error& error) {
        const std::string message = error.what();
        EXPECT_TRUE(message.starts_with(path.string() + ": ")) << message;
        EXPECT_NE(message.find(part), std::string::npos) << message;
    }
}

}  // namespace

TEST(LlmcFile, ParametersSurviveIt) {
    Parameters model(small_config()), again(small_config());
    model.fill();
    const test::TemporaryDirectory folder;
    for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
        const std::filesystem::path path = folder.path() / name_of(dtype);
        write_llmc(path, model.config, model.layout, model.tensor(), dtype);
        LlmcFile file(path);
        EXPECT_EQ(file.dtype(), dtype);
        EXPECT_EQ(file.config().n_vocab, 130);
        EXPECT_EQ(file.config().n_positions, 7);
        EXPECT_EQ(file.config().n_layer, 2);
        EXPECT_EQ(file.config().n_head, 3);
        EXPECT_EQ(file.config().n_embd, 12);
        EXPECT_EQ(file.config().n_inner, 48);
        again.layout.read(again.tensor(), file);
        std::vector<float> expected = model.values;
        if (dtype == Dtype::bf16)
            for (float& value : expected) value = to_float(to_bf16(value));
        EXPECT_EQ(again.values, expected) << name_of(dtype);
    }
}

// Sizes and places worked out by hand from the format's description.
TEST(LlmcFile, IsLaidOutAsLlmcReadsIt) {
    Parameters model(small_config());
    model.fill();
    const ModelTensors views = model.layout.views(model.tensor());
    const test::TemporaryDirectory folder;
    write_llmc(folder.path() / "f32", model.config, model.layout, model.tensor(), Dtype::f32);
    write_llmc(folder.path() / "bf16", model.config, model.layout, model.tensor(), Dtype::bf16);
    const std::string bytes = test::read_text(folder.path() / "f32");
    int32_t fields[9];
    std::memcpy(fields, bytes.data(), sizeof fields);
    const std::vector<int32_t> expected = {20240326, 3, 7, 130, 2, 3, 12, 256, 0};
    EXPECT_EQ(std::vector<int32_t>(fields, fields + 9), expected);
    const size_t c = 12, block = 12 * c * c + 13 * c;
    ASSERT_EQ(bytes.size(), 1024 + 4 * (256 * c + 7 * c + 2 * block + 2 * c));
    EXPECT_EQ(test::read_text(folder.path() / "bf16").size() - 1024, (bytes.size() - 1024) / 2);
    EXPECT_EQ(test::read_text(folder.path() / "bf16")[4], 5);

    EXPECT_EQ(value_at(bytes, 129 * c + 11), views.token_table.as<float>()[129 * c + 11]);
    for (size_t i = 130 * c; i < 256 * c; ++i) ASSERT_EQ(value_at(bytes, i), 0) << i;
    size_t at = 256 * c;
    const auto expect_here = [&](const Tensor& tensor) {
        for (int64_t i = 0; i < tensor.size(); ++i)
            ASSERT_EQ(value_at(bytes, at++), tensor.as<float>()[i]);
    };
    expect_here(views.position_table);
    for (Tensor BlockTensors::*part :
         {&BlockTensors::attn_norm_weight, &BlockTensors::attn_norm_bias, &BlockTensors::qkv_weight,
          &BlockTensors::qkv_bias, &BlockTensors::attn_out_weight, &BlockTensors::attn_out_bias,
          &BlockTensors::mlp_norm_weight, &BlockTensors::mlp_norm_bias,
          &BlockTensors::mlp_in_weight, &BlockTensors::mlp_in_bias, &BlockTensors::down_weight,
          &BlockTensors::down_bias})
        for (const BlockTensors& layer : views.blocks) expect_here(layer.*part);
    expect_here(views.final_norm_weight);
    expect_here(views.final_norm_bias);
    EXPECT_EQ(1024 + 4 * at, bytes.size());
}

TEST(LlmcFile, BrokenFilesAreNamed) {
    Parameters model(small_config());
    const test::TemporaryDirectory folder;
    const std::filesystem::path path = folder.path() / "model.bin";
    write_llmc(path, model.config, model.layout, model.tensor(), Dtype::f32);
    const std::string good = test::read_text(path);
    expect_llmc_file_refused(path, good.substr(0, 1000), "found 1000 bytes in all");
    expect_llmc_file_refused(path, good.substr(0, good.size() - 4),
                             concat("a model of ", good.size(), " bytes, found ", good.size() - 4));
    expect_llmc_file_refused(path, good + "abcd", concat("found ", good.size() + 4));
    expect_llmc_file_refused(path, with_field(good, 0, 20240520),
                             "begins with 20240326, found 20240520");
    expect_llmc_file_refused(path, with_field(good, 1, 1), "expected version 3 (float32) or 5");
    expect_llmc_file_refused(path, with_field(good, 1, 5), "its header describes a model of");
    expect_llmc_file_refused(path, with_field(good, 2, 0), "positions: expected a number from 1");
    expect_llmc_file_refused(path, with_field(good, 3, -1), "vocabulary: expected a number from 1");
    expect_llmc_file_refused(path, with_field(good, 4, 1 << 30),
                             "layers: expected a number from 1 to 1024");
    expect_llmc_file_refused(path, with_field(good, 5, 5),
                             "heads that divide the channels, found 5 and 12");
    expect_llmc_file_refused(path, with_field(good, 6, 24), "its header describes a model of");
    expect_llmc_file_refused(path, with_field(good, 7, 129),
                             "padded vocabulary: expected a number from 130");
    test::write_text(path, good);
    LlmcFile file(path);
    EXPECT_THROW(file.take("lm_head.weight", {130, 12}), Error);
    EXPECT_THROW(file.take("wte.weight", {256, 12}), Error);
    EXPECT_FALSE(file.has("h.2.ln_1.weight"));
    EXPECT_TRUE(file.has("h.1.ln_1.weight"));
}

TEST(LlmcFile, AnotherKindOfModelIsNotWritten) {
    DecoderConfig config = small_config();
    config.n_inner = 24;
    EXPECT_THROW(check_llmc(config, "x.bin"), Error);
    config = small_config();
    config.tie_word_embeddings = false;
    EXPECT_THROW(check_llmc(config, "x.bin"), Error);
    check_llmc(small_config(), "x.bin");
}
