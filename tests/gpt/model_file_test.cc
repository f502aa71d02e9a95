// GPT-2 as other formats have it: the model_file_demo model, written as GGUF and as llm.c's, is the
// model_file_demo model.
#include "gpt/families/model_file.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "core/error.h"
#include "core/half.h"
#include "core/json/json.h"
#include "gpt/answers/generate.h"
#include "gpt/decoder/model.h"
#include "gpt/families/llmc_file.h"
#include "gpt/train/export_model.h"
#include "support/gguf_vocabulary.h"
#include "support/golden.h"
#include "support/process.h"

using namespace hark;
using namespace hark::gpt;
using nlohmann::json;
using test::GgufWriter;

namespace {

constexpr uint32_t kF32 = 0, kF16 = 1, kQ8 = 8, kBf16 = 30;  // ggml's numbers

std::vector<float> parameters_of(ModelFile& file) {
    const ParameterLayout layout(file.config());
    std::vector<float> values(static_cast<size_t>(layout.size()));
    layout.read(Tensor(values.data(), Dtype::f32, {layout.size()}), file.tensors());
    return values;
}

// The model_file_demo's parameters as the trainer has them: matrices (out, in).
struct ModelFileDemo {
    ModelFileDemo()
        : file(open_model(test::gpt_demo())),
          layout(file->config()),
          values(parameters_of(*file)) {}
    std::unique_ptr<ModelFile> file;
    ParameterLayout layout;
    std::vector<float> values;
};

ModelFileDemo& the_demo() {
    static ModelFileDemo model_file_demo;
    return model_file_demo;
}

std::string floats(const float* from, int64_t count, uint32_t type) {
    std::string bytes;
    bytes.reserve(static_cast<size_t>(count) * sizeof(float));
    for (int64_t i = 0; i < count; ++i)
        bytes += type == kF32    ? GgufWriter::number(from[i])
                 : type == kBf16 ? GgufWriter::number(to_bf16(from[i]).bits)
                                 : GgufWriter::number(to_f16(from[i]).bits);
    return bytes;
}

// Names from gguf-py's constants.py.
std::string gguf_name(const std::string& name) {
    static const std::vector<std::pair<std::string, std::string>> kNames = {
        {"wte.", "token_embd."},          {"wpe.", "position_embd."}, {"ln_f.", "output_norm."},
        {"ln_1.", "attn_norm."},          {"ln_2.", "ffn_norm."},     {"attn.c_attn.", "attn_qkv."},
        {"attn.c_proj.", "attn_output."}, {"mlp.c_fc.", "ffn_up."},   {"mlp.c_proj.", "ffn_down."}};
    for (const auto& [theirs, stored] : kNames) {
        const size_t at = name.find(theirs);
        if (at == name.npos) continue;
        const std::string block = at > 0 ? "blk." + name.substr(2, at - 2) : "";
        return block + stored + name.substr(at + theirs.size());
    }
    return "none";
}

struct Keys {
    std::string architecture = "gpt2";
    uint32_t positions = 512, channels = 256, layers = 8, heads = 4, inner = 1024, eos = 4095;
    float epsilon = 1e-5f;
};

void add_gpt2_keys(GgufWriter& out, const Keys& keys) {
    out.text("general.architecture", keys.architecture);
    out.u32("gpt2.context_length", keys.positions);
    out.u32("gpt2.embedding_length", keys.channels);
    out.u32("gpt2.block_count", keys.layers);
    out.u32("gpt2.attention.head_count", keys.heads);
    out.u32("gpt2.feed_forward_length", keys.inner);
    out.f32("gpt2.attention.layer_norm_epsilon", keys.epsilon);
    test::add_vocabulary(out, json::parse(test::read_text(test::gpt_demo() / "tokenizer.json")),
                         4096);
    out.u32("tokenizer.ggml.eos_token_id", keys.eos);
}

// A tensor of the demo as GGUF stores it, converted once.
const std::string& stored_demo(const ParameterLayout::Entry& entry, uint32_t type) {
    static std::map<std::pair<std::string, uint32_t>, std::string> converted;
    std::string& bytes = converted[{entry.name, type}];
    if (bytes.empty())
        bytes = floats(the_demo().values.data() + entry.offset, entry.stored_size(), type);
    return bytes;
}

// The model_file_demo as GGUF, its matrices in `type`, all tensors but `left_out`.
GgufWriter demo_gguf(uint32_t type, const Keys& keys = {}, const std::string& left_out = "") {
    GgufWriter out;
    add_gpt2_keys(out, keys);
    for (const ParameterLayout::Entry& entry : the_demo().layout.entries()) {
        const std::string name = gguf_name(entry.name);
        if (name == left_out) continue;
        const bool small = entry.columns == 0 || entry.name == "wpe.weight";
        std::vector<uint64_t> dims = {static_cast<uint64_t>(entry.stored_rows)};
        if (entry.columns > 0) dims.insert(dims.begin(), static_cast<uint64_t>(entry.columns));
        const uint32_t stored = small ? kF32 : type;
        out.tensor(name, dims, stored, stored_demo(entry, stored));
    }
    return out;
}

void expect_demo_config(const DecoderConfig& config, std::vector<int32_t> eos) {
    const DecoderConfig& expected = the_demo().file->config();
    EXPECT_EQ(config.n_vocab, expected.n_vocab);
    EXPECT_EQ(config.n_positions, expected.n_positions);
    EXPECT_EQ(config.n_embd, expected.n_embd);
    EXPECT_EQ(config.n_layer, expected.n_layer);
    EXPECT_EQ(config.n_head, expected.n_head);
    EXPECT_EQ(config.n_inner, expected.n_inner);
    EXPECT_EQ(config.norm_eps, expected.norm_eps);
    EXPECT_EQ(config.activation, expected.activation);
    EXPECT_EQ(config.tie_word_embeddings, expected.tie_word_embeddings);
    EXPECT_EQ(config.eos_token_ids, eos);
}

std::string generated(ModelFile& file, const Tokenizer& tokenizer) {
    Context ctx = make_cpu_context(1);
    const Model model = read_model(file.tensors(), file.config(), precision_of("auto"));
    GenerateOptions options;
    options.sampler.temperature = 0;
    options.max_tokens = 40;
    Generator generate(ctx, model, tokenizer, options);
    return generate("Once upon a time", 0, {}).text;
}

class ModelFiles : public testing::Test {
  protected:
    std::unique_ptr<ModelFile> open(const std::string& bytes) {
        test::write_text(path(), bytes);
        return open_model(path());
    }
    void expect_refused(const std::string& bytes, const std::string& part) {
        try {
            open(bytes);
            ADD_FAILURE() << "accepted; expected: " << part;
        } catch (const Error& error) {
            const std::string message = error.what();
            EXPECT_EQ(message.rfind(path().string() + ": ", 0), 0u) << message;
            EXPECT_NE(message.find(part), std::string::npos) << message;
        }
    }
    std::filesystem::path path() const { return directory_.path() / "model"; }

  private:
    test::TemporaryDirectory directory_;
};

// The matrices of a file in f16 are not copied; those of one that holds f32 are.
TEST_F(ModelFiles, AreUsedInPlaceWhereTheTypeStays) {
    const auto model_bytes = [](const char* dtype) {
        const std::shared_ptr<ModelFile> file = open_model(test::gpt_demo());
        const Model model = read_model(file, precision_of(dtype));
        const auto in_place = [&](const Matrix& matrix) {
            return file->tensors().is_mapped(matrix.values);
        };
        return std::pair(in_place(model.lm_head), model.weights.bytes());
    };
    const Model copied = [] {
        const std::unique_ptr<ModelFile> file = open_model(test::gpt_demo());
        return read_model(file->tensors(), file->config(), precision_of("auto"));
    }();
    EXPECT_EQ(model_bytes("auto"), std::pair(true, copied.weights.bytes()));
    EXPECT_FALSE(model_bytes("f32").first);
}

}  // namespace

TEST_F(ModelFiles, GgufOfTheDemoIsTheDemo) {
    const auto tokenizer = the_demo().file->tokenizer();
    for (const uint32_t type : {kF32, kF16, kBf16}) {
        const auto file = open(demo_gguf(type).bytes());
        EXPECT_STREQ(file->format(), "GGUF");
        expect_demo_config(file->config(), {4095});
        std::vector<float> expected = the_demo().values;
        if (type == kBf16)  // the model_file_demo's own are f16
            for (const ParameterLayout::Entry& entry : the_demo().layout.entries())
                if (entry.columns > 0 && entry.name != "wpe.weight")
                    for (int64_t i = entry.offset; i < entry.offset + entry.size(); ++i)
                        expected[static_cast<size_t>(i)] =
                            to_float(to_bf16(expected[static_cast<size_t>(i)]));
        EXPECT_EQ(parameters_of(*file), expected) << type;
        if (type != kBf16) {
            EXPECT_EQ(generated(*file, *file->tokenizer()),
                      generated(*the_demo().file, *tokenizer));
        }
    }
}

TEST_F(ModelFiles, LlmcOfTheDemoIsTheDemo) {
    ModelFileDemo& model_file_demo = the_demo();
    const Tensor values(model_file_demo.values.data(), Dtype::f32, {model_file_demo.layout.size()});
    write_llmc(path(), model_file_demo.file->config(), model_file_demo.layout, values, Dtype::f32);
    const auto file = open_model(path());
    EXPECT_STREQ(file->format(), "llm.c");
    expect_demo_config(file->config(), {});
    EXPECT_EQ(parameters_of(*file), model_file_demo.values);
    const auto tokenizer = model_file_demo.file->tokenizer();
    EXPECT_EQ(generated(*file, *tokenizer), generated(*model_file_demo.file, *tokenizer));
    try {
        file->tokenizer();
        ADD_FAILURE() << "a vocabulary was found";
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("--tokenizer"), std::string::npos) << error.what();
    }
}

// Blocks as the file stores them: a scale of 2 and 32 values from 1 on.
TEST_F(ModelFiles, QuantizedMatricesKeepTheirBlocks) {
    GgufWriter out;
    Keys keys;
    keys.channels = keys.inner = 32;
    keys.layers = 1;
    add_gpt2_keys(out, keys);
    const auto matrix = [&](const std::string& name, uint64_t in, uint64_t rows) {
        std::string block = GgufWriter::number(to_f16(2).bits), data;
        for (char value = 1; value <= 32; ++value) block += value;
        for (uint64_t i = 0; i < in / 32 * rows; ++i) data += block;
        out.tensor(name, {in, rows}, kQ8, data);
    };
    const auto vector = [&](const std::string& name, uint64_t rows) {
        const std::vector<float> zeros(rows);
        out.tensor(name, {rows}, kF32, floats(zeros.data(), std::ssize(zeros), kF32));
    };
    matrix("token_embd.weight", 32, 4096);
    matrix("position_embd.weight", 32, 512);
    matrix("blk.0.attn_qkv.weight", 32, 96);
    matrix("blk.0.attn_output.weight", 32, 32);
    matrix("blk.0.ffn_up.weight", 32, 32);
    matrix("blk.0.ffn_down.weight", 32, 32);
    matrix("output.weight", 32, 4096);
    vector("blk.0.attn_qkv.bias", 96);
    for (const char* name :
         {"blk.0.attn_output.bias", "blk.0.ffn_up.bias", "blk.0.ffn_down.bias",
          "output_norm.weight", "output_norm.bias", "blk.0.attn_norm.weight",
          "blk.0.attn_norm.bias", "blk.0.ffn_norm.weight", "blk.0.ffn_norm.bias"})
        vector(name, 32);
    const auto file = open(out.bytes());
    EXPECT_FALSE(file->config().tie_word_embeddings);
    EXPECT_TRUE(file->tensors().stores_out_in());
    EXPECT_TRUE(file->tensors().has("lm_head.weight"));
    const Tensor qkv = file->tensors().take("h.0.attn.c_attn.weight", {96, 32});
    EXPECT_EQ(describe(qkv), "q8_0 (96, 32)");
    EXPECT_EQ(static_cast<const char*>(qkv.slice(95, 96).data)[33], 32);
    EXPECT_FALSE(file->tensors().has("h.1.ln_1.weight"));
    EXPECT_THROW(file->tensors().take("h.0.attn.c_attn.weight", {32, 96}), Error);
    EXPECT_THROW(file->tensors().take("h.1.ln_1.weight", {32}), Error);
    // What is trained has numbers.
    EXPECT_THROW(parameters_of(*file), Error);
}

TEST_F(ModelFiles, BrokenGgufIsNamed) {
    const auto with = [](const std::function<void(Keys&)>& change) {
        Keys keys;
        change(keys);
        return demo_gguf(kF16, keys).bytes();
    };
    expect_refused(with([](Keys& k) { k.architecture = "mamba"; }), "deepseek2), found 'mamba'");
    expect_refused(with([](Keys& k) { k.positions = 0; }),
                   "key 'gpt2.context_length': expected a whole number from 1 to 1048576, found 0");
    expect_refused(with([](Keys& k) { k.layers = 4'000'000'000; }),
                   "from 1 to 1024, found 4000000000");
    expect_refused(with([](Keys& k) { k.heads = 3; }), "to divide 'n_embd', found 3 and 256");
    expect_refused(with([](Keys& k) { k.epsilon = 0; }),
                   "expected a number between 0 and 1, found 0");
    expect_refused(with([](Keys& k) { k.eos = 4096; }), "from 0 to 4095, found 4096");
    expect_refused(with([](Keys& k) { k.layers = 9; }), "expected a tensor 'blk.8.");
    expect_refused(with([](Keys& k) { k.inner = 512; }),
                   "tensor 'blk.0.ffn_up.weight': expected f16 (512, 256), found f16 (1024, 256)");
    expect_refused(
        with([](Keys& k) { k.positions = 1 << 20; }),
        "tensor 'position_embd.weight': expected f32 (1048576, 256), found f32 (512, 256)");
    expect_refused(demo_gguf(kF16, {}, "token_embd.weight").bytes(),
                   "'token_embd.weight', found none");
    expect_refused(demo_gguf(kF16, {}, "blk.7.ffn_down.bias").bytes(),
                   "expected a tensor 'blk.7.ffn_down.bias' for h.7.mlp.c_proj.bias, found none");
    expect_refused(GgufWriter().bytes(), "expected the key 'general.architecture', found none");
}

TEST_F(ModelFiles, WhatIsNoModelIsNamed) {
    expect_refused("PK\x03\x04 and more", "found a file that begins with the bytes 50 4b 03 04");
    expect_refused("", "found a file that begins with nothing");
    EXPECT_THROW(open_model(path() / "none"), Error);
}
