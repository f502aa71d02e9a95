// Training of tiny models of several families against transformers in float32
// (tests/golden/family_gradients.py), and what their parameters are in memory and in files.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/error.h"
#include "core/json/json.h"
#include "gpt/families/model_file.h"
#include "gpt/families/model_folder.h"
#include "gpt/train/training.h"
#include "kernels/runtime/transfer.h"
#include "support/family_weights.h"
#include "support/golden.h"
#include "support/ops.h"
#include "support/process.h"

namespace hark::gpt {
namespace {

using nlohmann::json;

const json& training_cases() {
    static const json read = test::golden("family_gradients.json");
    return read;
}

DecoderConfig trained_config(const std::string& name) {
    return parse_config(training_cases()[name]["config"].dump(), name);
}

std::vector<float> formula_weights(const ParameterLayout& layout) {
    std::vector<float> values(static_cast<size_t>(layout.size()));
    test::FamilyWeights source(false);
    layout.read(Tensor(values.data(), Dtype::f32, {layout.size()}), source);
    return values;
}

struct Found {
    std::vector<float> losses, gradients, alone;  // alone: losses without gradients
};

// The two sequences' losses and gradients, with matrices of `dtype`.
Found computed(test::TestDevice& device, Dtype dtype, const std::string& name,
               Recompute recompute = Recompute::none) {
    Context& ctx = device.ctx();
    const DecoderConfig config = trained_config(name);
    const ParameterLayout layout(config);
    const std::vector<float> weights = formula_weights(layout);
    const Tensor parameters = device.up(weights, Dtype::f32, {layout.size()});
    Tensor matrices;
    if (dtype != Dtype::f32) {
        matrices = device.empty(dtype, {layout.decayed()});
        stochastic_round(ctx, matrices, parameters.slice(0, layout.decayed()), 1);
    }
    const Tensor gradients =
        device.up(std::vector<float>(weights.size()), Dtype::f32, {layout.size()});
    PackedRows rows;
    for (const std::vector<int32_t> ids : training_cases()[name]["sequences"]) {
        for (size_t i = 0; i + 1 < ids.size(); ++i) rows.push(ids[i], ids[i + 1]);
        rows.end_sequence();
    }
    const auto count = std::ssize(rows.tokens);
    const Tensor losses = device.empty(Dtype::f32, {count}),
                 alone = device.empty(Dtype::f32, {count});
    ModelTensors views = layout.views(parameters, matrices);
    views.ropes = upload_ropes(ctx, ctx.arena, config);
    const Batch batch = to_device(ctx, view_of(rows));
    Communicator one;
    compute_gradients(ctx, one, config, views, layout.views(gradients), batch, recompute,
                      1 / static_cast<float>(count), losses);
    compute_losses(ctx, one, config, views, batch, alone);
    return {device.down(losses), device.down(gradients), device.down(alone)};
}

class FamilyTraining : public testing::TestWithParam<std::tuple<std::string, test::DeviceCase>> {
  protected:
    void SetUp() override {
        if (!device_) GTEST_SKIP() << device_.why_not();
    }
    std::string name() const { return std::get<0>(GetParam()); }
    Dtype dtype() const { return std::get<1>(GetParam()).activations; }
    bool half() const { return dtype() != Dtype::f32; }

    test::TestDevice device_{std::get<1>(GetParam())};
};

TEST_P(FamilyTraining, LossesAreTheReferences) {
    const Found found = computed(device_, dtype(), name());
    const std::vector<double> expected = training_cases()[name()]["losses"];
    ASSERT_EQ(found.losses.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i)
        EXPECT_NEAR(found.losses[i], expected[i], half() ? 0.2 : 2e-5) << i;
    if (half()) return;
    for (size_t i = 0; i < expected.size(); ++i)
        EXPECT_NEAR(found.alone[i], expected[i], 2e-5) << i;
}

// In f32 every listed value within 1e-5 of the tensor's largest. In bf16 the listed values as a
// whole: three percent, where 8 bits of a value are half a percent.
TEST_P(FamilyTraining, GradientsOfAllTensorsAreTheReferences) {
    const Found found = computed(device_, dtype(), name());
    const ParameterLayout layout(trained_config(name()));
    const json& all = training_cases()[name()]["gradients"];
    ASSERT_EQ(layout.entries().size(), all.size());
    for (const ParameterLayout::Entry& entry : layout.entries()) {
        const json& expected = all.at(entry.name);
        const std::vector<double> listed = expected["listed"];
        const double norm = expected["norm"], largest = expected["largest"];
        const float* values = found.gradients.data() + entry.offset;
        const int64_t size = entry.stored_size(), last = std::ssize(listed) - 1;
        double squares = 0, apart = 0, of_listed = 0;
        for (int64_t i = 0; i < size; ++i) squares += static_cast<double>(values[i]) * values[i];
        for (int64_t i = 0; i <= last; ++i) {
            const double value = listed[static_cast<size_t>(i)];
            const double difference = values[i * (size - 1) / std::max<int64_t>(last, 1)] - value;
            apart += difference * difference, of_listed += value * value;
            EXPECT_NEAR(difference, 0, half() ? largest : 1e-5 * largest) << entry.name << " " << i;
        }
        EXPECT_NEAR(std::sqrt(squares), norm, (half() ? 0.05 : 1e-5) * norm) << entry.name;
        EXPECT_LT(std::sqrt(apart), (half() ? 0.05 : 1e-5) * std::sqrt(of_listed)) << entry.name;
        for (int64_t i = size; i < entry.size(); ++i) ASSERT_EQ(values[i], 0) << entry.name;
    }
}

TEST_P(FamilyTraining, RecomputingChangesNoBit) {
    const Found found = computed(device_, dtype(), name());
    for (const Recompute recompute : {Recompute::gelu, Recompute::norms, Recompute::blocks}) {
        const Found again = computed(device_, dtype(), name(), recompute);
        EXPECT_EQ(found.losses, again.losses);
        EXPECT_EQ(found.gradients, again.gradients) << static_cast<int>(recompute);
    }
}

std::vector<std::string> trained_names() {
    std::vector<std::string> all;
    for (const auto& [name, of] : training_cases().items()) all.push_back(name);
    return all;
}

std::string training_case_name(const testing::TestParamInfo<FamilyTraining::ParamType>& info) {
    std::string name = std::get<0>(info.param) + "_" + std::get<1>(info.param).name;
    std::replace_if(
        name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
    return name;
}

INSTANTIATE_TEST_SUITE_P(All, FamilyTraining,
                         testing::Combine(testing::ValuesIn(trained_names()),
                                          testing::Values(test::kCpuCase, test::kCpuBf16Case,
                                                          test::kCudaF32Case, test::kCudaBf16Case)),
                         training_case_name);

constexpr const char* kQwen2 = "qwen2, biases, tied";

TEST(FamilyParameters, OfOneProductAreNextToEachOther) {
    const DecoderConfig config = trained_config(kQwen2);
    const ParameterLayout layout(config);
    std::vector<float> values(static_cast<size_t>(layout.size()));
    const ModelTensors model = layout.views(Tensor(values.data(), Dtype::f32, {layout.size()}));
    const auto at = [&](const char* name) { return values.data() + layout.at(name).offset; };
    const BlockTensors& block = model.blocks[1];
    EXPECT_EQ(describe(block.qkv_weight), "f32 (128, 64)");
    EXPECT_EQ(describe(block.qkv_bias), "f32 (128)");
    EXPECT_EQ(describe(block.mlp_in_weight), "f32 (192, 64)");
    EXPECT_FALSE(block.mlp_in_bias || block.attn_out_bias || block.mlp_norm_bias);
    EXPECT_EQ(block.qkv_weight.data, at("layers.1.self_attn.q_proj.weight"));
    EXPECT_EQ(block.qkv_bias.as<float>() + 64 + 32, at("layers.1.self_attn.v_proj.bias"));
    EXPECT_EQ(block.mlp_in_weight.as<float>() + 96 * 64, at("layers.1.mlp.up_proj.weight"));
    EXPECT_FALSE(model.position_table);
    EXPECT_EQ(model.lm_head.data, model.token_table.data);
    EXPECT_EQ(layout.at("layers.1.self_attn.q_proj.weight").offset, layout.block(1));
}

TEST(FamilyParameters, SurviveAFileWithTheFamilysNames) {
    for (const char* name : {kQwen2, "llama, grouped heads"}) {
        const ParameterLayout layout(trained_config(name));
        std::vector<float> values = formula_weights(layout), again(values.size());
        const auto view = [&](std::vector<float>& of) {
            return Tensor(of.data(), Dtype::f32, {layout.size()});
        };
        const test::TemporaryDirectory folder;
        layout.write(view(values), folder.path() / "model.safetensors");
        const SafetensorsFile file(folder.path() / "model.safetensors");
        std::set<std::string> stored, expected;
        for (const TensorEntry& entry : file.entries()) stored.insert(entry.name);
        for (const auto& [tensor, of] : training_cases()[name]["gradients"].items())
            expected.insert(tensor == "lm_head.weight" ? tensor : "model." + tensor);
        EXPECT_EQ(stored, expected);
        test::write_text(folder.path() / "config.json", training_cases()[name]["config"].dump());
        layout.read(view(again), open_model(folder.path())->tensors());
        EXPECT_EQ(values, again);
    }
}

TEST(FamilyParameters, ADirectoryHasTheConfigurationThatWasReadWithTheNewType) {
    const test::TemporaryDirectory from, to;
    const DecoderConfig config = trained_config(kQwen2);
    json read = training_cases()[kQwen2]["config"];
    read["torch_dtype"] = "float32";
    test::write_text(from.path() / "config.json", read.dump());
    test::write_text(from.path() / "generation_config.json", R"({"eos_token_id": [3, 5]})");
    describe_model(to.path(), config, from.path(), Dtype::bf16);
    read["torch_dtype"] = "bfloat16";
    EXPECT_EQ(json::parse(test::read_text(to.path() / "config.json")), read);
    EXPECT_EQ(load_config(to.path()).eos_token_ids, (std::vector<int32_t>{3, 5}));
    EXPECT_THROW(describe_model(to.path(), config, {}, Dtype::f32), Error);
    test::write_text(from.path() / "config.json", R"({"text_config": {}})");
    EXPECT_THROW(describe_model(to.path(), config, from.path(), Dtype::f32), Error);
}

TEST(FamilyParameters, StartAsGpt2sDo) {
    const DecoderConfig config = trained_config(kQwen2);
    const ParameterLayout layout(config);
    std::vector<float> values(static_cast<size_t>(layout.size()));
    layout.initialize(Tensor(values.data(), Dtype::f32, {layout.size()}), 1);
    for (const ParameterLayout::Entry& entry : layout.entries()) {
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < entry.stored_size(); ++i) {
            const double value = values[static_cast<size_t>(entry.offset + i)];
            sum += value, squares += value * value;
        }
        const auto n = static_cast<double>(entry.stored_size());
        const bool is_norm = entry.name.find("norm") != entry.name.npos;
        const bool is_residual = entry.part == Part::attn_out || entry.part == Part::down;
        const double deviation = entry.columns == 0 ? 0 : is_residual ? 0.01 : 0.02;
        EXPECT_NEAR(sum / n, is_norm ? 1 : 0, 1.5e-3) << entry.name;
        EXPECT_NEAR(std::sqrt(squares / n - std::pow(sum / n, 2)), deviation, 1e-3) << entry.name;
    }
}

TEST(FamilyParameters, WhatIsNotTrainedIsNamed) {
    const auto expect = [](const std::string& what, const auto& change) {
        DecoderConfig config = trained_config("llama, grouped heads");
        change(config);
        try {
            ParameterLayout layout(config);
            FAIL() << what;
        } catch (const Error& error) {
            EXPECT_NE(std::string(error.what()).find(what), std::string::npos) << error.what();
            EXPECT_NE(std::string(error.what()).find("'llama'"), std::string::npos);
        }
    };
    expect("window", [](DecoderConfig& c) { c.layers[1].window = 8; });
    expect("norms after", [](DecoderConfig& c) { c.norm_place = NormPlace::both; });
    expect("offset", [](DecoderConfig& c) { c.norm_offset = 1; });
    expect("soft caps", [](DecoderConfig& c) { c.logit_soft_cap = 30; });
    expect("scaled", [](DecoderConfig& c) { c.embedding_scale = 8; });
    expect("scale of their own", [](DecoderConfig& c) { c.attention_scale = 1; });
    expect("longrope", [](DecoderConfig& c) { c.ropes[0].long_frequencies = {1}; });
    expect("experts", [](DecoderConfig& c) { c.experts.count = 4; });
    expect("sinks", [](DecoderConfig& c) { c.attention_sinks = true; });
    DecoderConfig config = trained_config("llama, grouped heads");
    config.layers[1].window = config.n_positions;  // which hides nothing
    EXPECT_NO_THROW(ParameterLayout{config});
    EXPECT_THROW(ParameterLayout(config, 4), Error);  // two heads of keys and values
    EXPECT_NO_THROW(ParameterLayout(config, 2));
    EXPECT_THROW(ParameterLayout(trained_config("qwen3, norms of heads"), 2), Error);
}

}  // namespace
}  // namespace hark::gpt
