// --dry-run's memory, compared with what a step takes.
#include "gpt/train/train_memory.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "gpt/train/trainer.h"
#include "support/ops.h"

using namespace hark;

namespace {

// Large tensors: the arena's blocks have 4 MiB at least, which a small model does not fill.
gpt::TrainOptions measured_options(const std::string& recompute) {
    gpt::TrainOptions options;
    options.batch = 4;
    options.length = 512;
    options.steps = 1;
    options.recompute = recompute;
    return options;
}

gpt::DecoderConfig measured_config() {
    gpt::DecoderConfig config;
    config.n_vocab = 500;
    config.n_positions = 512;
    config.n_embd = 512;
    config.n_head = 8;
    config.n_layer = 2;
    config.n_inner = 2048;
    gpt::complete_gpt2(config);
    return config;
}

// With a gated MLP and grouped heads.
gpt::DecoderConfig llama_config() {
    return gpt::parse_config(
        R"({"model_type": "llama", "vocab_size": 500, "max_position_embeddings": 512,
            "hidden_size": 512, "num_hidden_layers": 2, "num_attention_heads": 8,
            "num_key_value_heads": 2, "intermediate_size": 1536})",
        "llama");
}

class TrainMemoryOf : public testing::TestWithParam<test::DeviceCase> {
  protected:
    void SetUp() override {
        if (!device_) GTEST_SKIP() << device_.why_not();
    }
    void expect_plan_near(const gpt::DecoderConfig& config) const;

    test::TestDevice device_{GetParam()};
};

void TrainMemoryOf::expect_plan_near(const gpt::DecoderConfig& config) const {
    const Dtype matrices = GetParam().activations;
    for (const char* recompute : {"none", "norms", "blocks"}) {
        test::TestDevice device(GetParam());  // whose arena is empty
        Context& ctx = device.ctx();
        gpt::ParallelMesh mesh(ctx, nullptr, 1);
        const gpt::TrainOptions options = measured_options(recompute);
        const gpt::TokenWindows windows({"synthetic"}, options.length, config.n_vocab);
        gpt::Trainer trainer(ctx, mesh, config, options, matrices, windows, -1);
        trainer.fill(gpt::StateTensor::parameters,
                     [&](Tensor all) { std::fill_n(all.as<float>(), all.size(), 0.01f); });
        trainer.on_parameters_loaded(0);
        trainer.step(1);
        const auto taken = static_cast<double>(trainer.memory_bytes());
        const gpt::TrainMemory planned = gpt::train_memory(ctx, mesh, config, options, matrices);
        const auto used = static_cast<double>(trainer.activation_peak());
        EXPECT_NEAR(static_cast<double>(planned.activations), used, 0.05 * used) << recompute;
        // The arena's memory has unused ends of blocks too: 5.07% with `blocks` on a GPU in f32.
        EXPECT_NEAR(static_cast<double>(planned.total()), taken, 0.06 * taken)
            << recompute << ": weights " << planned.weights << ", gradients " << planned.gradients
            << ", moments " << planned.moments << ", activations " << planned.activations;
    }
}

}  // namespace

TEST_P(TrainMemoryOf, IsWithinFivePercentOfTheArenas) { expect_plan_near(measured_config()); }
TEST_P(TrainMemoryOf, OfLlamaToo) { expect_plan_near(llama_config()); }

INSTANTIATE_TEST_SUITE_P(Devices, TrainMemoryOf,
                         testing::Values(test::kCpuCase, test::kCpuBf16Case, test::kCudaF32Case,
                                         test::kCudaBf16Case),
                         test::name_of_case);
