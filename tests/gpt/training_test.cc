// A training step against transformers (tests/training_golden/gpt_training.py) and against itself.
#include "gpt/train/training.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <numeric>

#include "core/error.h"
#include "core/json/json.h"
#include "kernels/gradients.h"
#include "kernels/runtime/transfer.h"
#include "support/golden.h"
#include "support/ops.h"
#include "support/process.h"

using namespace hark;
using namespace hark::gpt;
using nlohmann::json;

namespace {

const json& training_golden() {
    static const json kGolden = test::golden("gpt_training.json");
    return kGolden;
}

// Parameters, or what is laid out like them.
struct Vector {
    explicit Vector(const ParameterLayout& layout) : values(static_cast<size_t>(layout.size())) {}
    Tensor tensor() { return Tensor(values.data(), Dtype::f32, {std::ssize(values)}); }
    std::vector<float> values;
};

// Sequences of ids, each predicting its next.
struct Rows {
    explicit Rows(const std::vector<std::vector<int32_t>>& sequences) {
        for (const std::vector<int32_t>& ids : sequences) {
            const size_t n = ids.size() - 1;
            tokens.insert(tokens.end(), ids.begin(), ids.end() - 1);
            targets.insert(targets.end(), ids.begin() + 1, ids.end());
            for (size_t i = 0; i < n; ++i) position.push_back(static_cast<int32_t>(i));
            first.resize(tokens.size(), static_cast<int32_t>(tokens.size() - n));
            end.resize(tokens.size(), static_cast<int32_t>(tokens.size()));
        }
    }
    Batch batch() {
        return {view(tokens), view(targets), view(position), {view(first), view(end)}};
    }
    double mean_loss() const {
        return std::accumulate(losses.begin(), losses.end(), 0.0) /
               static_cast<double>(losses.size());
    }
    static Tensor view(std::vector<int32_t>& ids) {
        return Tensor(ids.data(), Dtype::i32, {std::ssize(ids)});
    }
    std::vector<int32_t> tokens, targets, position, first, end;
    std::vector<float> losses;
};

// The training_demo model on a device, its matrices in the case's type. Parameters and gradients
// are on the host too, for what the tests look at.
struct Fixture {
    explicit Fixture(test::TestDevice& device, const test::DeviceCase& on)
        : device(device),
          ctx(device.ctx()),
          config(load_config(test::gpt_demo())),
          layout(config),
          weights(layout),
          gradients(layout) {
        SafetensorsDirectory source(test::gpt_demo(), "transformer.");
        layout.read(weights.tensor(), source);
        parameters = device.up(weights.values, Dtype::f32, {layout.size()});
        d_parameters = device.up(gradients.values, Dtype::f32, {layout.size()});
        if (on.activations != Dtype::f32)
            matrices = device.empty(on.activations, {layout.decayed()});
        round();
    }
    void round() {
        if (matrices) stochastic_round(ctx, matrices, parameters.slice(0, layout.decayed()), 1);
    }
    ModelTensors views() const { return layout.views(parameters, matrices); }
    void compute_losses_of(Rows& rows) {
        Tensor losses = device.empty(Dtype::f32, {std::ssize(rows.tokens)});
        compute_losses(ctx, one, config, views(), to_device(ctx, rows.batch()), losses);
        rows.losses = device.down(losses);
    }
    void compute(Rows& rows, Recompute recompute = Recompute::none, float targets = 0,
                 const std::function<void(int64_t)>& done = {}) {
        Tensor losses = device.empty(Dtype::f32, {std::ssize(rows.tokens)});
        compute_gradients(ctx, one, config, views(), layout.views(d_parameters),
                          to_device(ctx, rows.batch()), recompute,
                          1 / (targets > 0 ? targets : static_cast<float>(rows.tokens.size())),
                          losses, done);
        rows.losses = device.down(losses);
        gradients.values = device.down(d_parameters);
    }
    test::TestDevice& device;
    Context& ctx;
    Communicator one;
    DecoderConfig config;
    ParameterLayout layout;
    Vector weights, gradients;
    Tensor parameters, d_parameters, matrices;
};

class Training : public testing::TestWithParam<test::DeviceCase> {
  protected:
    void SetUp() override {
        if (!device_) GTEST_SKIP() << device_.why_not();
    }
    Fixture fixture() { return Fixture(device_, GetParam()); }
    bool half() const { return GetParam().activations != Dtype::f32; }

    test::TestDevice device_{GetParam()};
};

// The root of the mean square of the differences.
double apart(const std::vector<float>& found, const std::vector<double>& expected) {
    double squares = 0;
    for (size_t i = 0; i < expected.size(); ++i) squares += std::pow(found[i] - expected[i], 2);
    return std::sqrt(squares / static_cast<double>(expected.size()));
}

TEST_P(Training, LossesAreTheReferences) {
    Fixture f = fixture();
    Rows rows(training_golden()["ids"]);
    f.compute_losses_of(rows);
    const std::vector<double> expected = training_golden()["losses"];
    ASSERT_EQ(expected.size(), rows.losses.size());
    if (half()) {  // at most twice as far as PyTorch's own bfloat16
        EXPECT_LT(apart(rows.losses, expected),
                  2 * training_golden()["bf16"]["losses"].get<double>());
        return;
    }
    for (size_t i = 0; i < expected.size(); ++i)
        EXPECT_NEAR(rows.losses[i], expected[i], 2e-5) << i;
}

TEST_P(Training, GradientsOfAll16KindsAreTheReferences) {
    Fixture f = fixture();
    Rows rows(training_golden()["ids"]);
    f.compute(rows);
    const std::vector<double> losses = training_golden()["losses"];
    EXPECT_NEAR(rows.mean_loss(), std::accumulate(losses.begin(), losses.end(), 0.0) / 120,
                half() ? 0.01 : 1e-5);
    std::map<std::string, std::vector<float>> kinds;  // all layers' one after another
    for (const ParameterLayout::Entry& entry : f.layout.entries()) {
        const std::string& name = entry.name;
        const std::string kind = name.starts_with("h.") ? name.substr(name.find('.', 2) + 1) : name;
        const float* from = f.gradients.values.data() + entry.offset;
        kinds[kind].insert(kinds[kind].end(), from,
                           from + entry.stored_rows * std::max<int64_t>(entry.columns, 1));
    }
    ASSERT_EQ(kinds.size(), training_golden()["gradients"].size());
    for (const auto& [kind, expected] : training_golden()["gradients"].items()) {
        const std::vector<float>& found = kinds.at(kind);
        const std::vector<double> listed = expected["listed"];
        const double norm = expected["norm"];
        double squares = 0, difference = 0, size = 0;
        for (const float v : found) squares += static_cast<double>(v) * v;
        const double share =
            half() ? 2 * training_golden()["bf16"]["gradients"][kind].get<double>() : 1e-4;
        EXPECT_NEAR(std::sqrt(squares), norm, share * norm) << kind;
        for (size_t i = 0; i < listed.size(); ++i) {
            const float v = found[i * (found.size() - 1) / (listed.size() - 1)];
            difference += std::pow(v - listed[i], 2);
            size += listed[i] * listed[i];
        }
        EXPECT_LT(std::sqrt(difference), share * std::sqrt(size)) << kind;
    }
}

TEST_P(Training, TenStepsOfAdamWAreTheReferences) {
    Fixture f = fixture();
    Rows rows(training_golden()["ids"]);
    const auto zeros = [&] {
        return device_.up(Vector(f.layout).values, Dtype::f32, {f.layout.size()});
    };
    Tensor m = zeros(), v = zeros(), clip = device_.empty(Dtype::f32, {2});
    AdamW with = {.rate = training_golden()["rate"],
                  .beta1 = training_golden()["betas"][0],
                  .beta2 = training_golden()["betas"][1],
                  .eps = training_golden()["eps"],
                  .decay = training_golden()["decay"]};
    for (size_t i = 0; i < 10; ++i, ++with.step) {
        set_zero(f.ctx, f.d_parameters);
        f.compute(rows);
        clip_by_norm(f.ctx, clip, f.d_parameters, training_golden()["clip"]);
        adamw(f.ctx, f.parameters, m, v, f.d_parameters, clip, f.layout.decayed(), with);
        f.round();
        const json& apart = training_golden()["bf16"];
        EXPECT_NEAR(rows.mean_loss(), training_golden()["steps"][i],
                    half() ? 2 * apart["steps"].get<double>() : 2e-4)
            << i;
        const float norm = device_.down(clip)[0];
        EXPECT_NEAR(norm, training_golden()["norms"][i],
                    (half() ? 3 * apart["norms"].get<double>() : 2e-3) * norm)
            << i;
    }
}

TEST_P(Training, RecomputingChangesNoBit) {
    Fixture f = fixture();
    Rows rows(training_golden()["ids"]);
    f.compute(rows);
    for (const Recompute recompute :
         {Recompute::none, Recompute::gelu, Recompute::norms, Recompute::blocks}) {
        Fixture other = fixture();
        Rows again(training_golden()["ids"]);
        other.compute(again, recompute);
        EXPECT_EQ(rows.losses, again.losses);
        // A GPU's GELU is that of its input before it was rounded.
        const bool rounds = recompute == Recompute::gelu || recompute == Recompute::norms;
        if (half() && other.ctx.on_cuda() && rounds) continue;
        EXPECT_EQ(0, std::memcmp(f.gradients.values.data(), other.gradients.values.data(),
                                 f.gradients.values.size() * sizeof(float)))
            << static_cast<int>(recompute);
    }
}

// What is told to be done changes no more, and blocks come from the last one down.
TEST_P(Training, BlocksThatAreDoneStayAsTheyAre) {
    Fixture f = fixture();
    Rows rows(training_golden()["ids"]);
    const int64_t layers = f.config.n_layer, vectors = f.layout.decayed();
    std::map<int64_t, std::vector<float>> seen;  // by where it begins
    int64_t next = layers;
    f.compute(rows, Recompute::none, 0, [&](int64_t block) {
        EXPECT_EQ(block, --next);
        const auto see = [&](int64_t begin, int64_t end) {
            seen[begin] = device_.down(f.d_parameters.slice(begin, end));
        };
        see(f.layout.block(block), f.layout.block(block + 1));
        if (block == 0) see(vectors, f.layout.size());
    });
    EXPECT_EQ(next, 0);
    int64_t at = f.layout.tables();
    for (const auto& [begin, values] : seen) {
        EXPECT_EQ(begin, at);
        at += std::ssize(values);
        const float* found = f.gradients.values.data() + begin;
        EXPECT_EQ(0, std::memcmp(values.data(), found, values.size() * sizeof(float))) << begin;
    }
    EXPECT_EQ(at, f.layout.size());
}

TEST_P(Training, GradientsOfPartsAddUp) {
    Fixture whole = fixture(), parts = fixture();
    const std::vector<std::vector<int32_t>> ids = training_golden()["ids"];
    Rows all(ids);
    whole.compute(all);
    for (const std::vector<int32_t>& one : ids) {
        Rows rows({one});
        parts.compute(rows, Recompute::none, 120);
    }
    double difference = 0, size = 0;
    for (size_t i = 0; i < whole.gradients.values.size(); ++i) {
        difference += std::pow(whole.gradients.values[i] - parts.gradients.values[i], 2);
        size += std::pow(whole.gradients.values[i], 2);
    }
    EXPECT_LT(std::sqrt(difference), (half() ? 5e-3 : 1e-6) * std::sqrt(size));
}

INSTANTIATE_TEST_SUITE_P(Devices, Training,
                         testing::Values(test::kCpuCase, test::kCpuBf16Case, test::kCudaF32Case,
                                         test::kCudaBf16Case),
                         test::name_of_case);

ParameterLayout demo_layout() { return ParameterLayout(load_config(test::gpt_demo())); }

TEST(Parameters, SurviveAFile) {
    const ParameterLayout layout = demo_layout();
    Vector weights(layout), again(layout);
    SafetensorsDirectory demo_source(test::gpt_demo(), "transformer.");
    layout.read(weights.tensor(), demo_source);
    const test::TemporaryDirectory folder;
    layout.write(weights.tensor(), folder.path() / "model.safetensors");
    SafetensorsDirectory source(folder.path(), "transformer.");
    layout.read(again.tensor(), source);
    EXPECT_EQ(weights.values, again.values);
}

TEST(Parameters, StartAsThePaperDoes) {
    DecoderConfig config = load_config(test::gpt_demo());
    config.n_vocab = 4093;  // padded
    const ParameterLayout layout(config);
    Vector weights(layout), again(layout), other(layout);
    layout.initialize(weights.tensor(), 1);
    layout.initialize(again.tensor(), 1);
    layout.initialize(other.tensor(), 2);
    EXPECT_EQ(weights.values, again.values);
    EXPECT_NE(weights.values, other.values);
    for (const ParameterLayout::Entry& entry : layout.entries()) {
        const float* from = weights.values.data() + entry.offset;
        const int64_t n = entry.rows * std::max<int64_t>(entry.columns, 1);
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < n; ++i) sum += from[i], squares += std::pow(from[i], 2);
        const double mean = sum / static_cast<double>(n);
        const double deviation = std::sqrt(squares / static_cast<double>(n) - mean * mean);
        const bool vector = entry.columns == 0;
        EXPECT_NEAR(mean, vector && entry.name.ends_with("weight") ? 1 : 0, 5e-4) << entry.name;
        EXPECT_NEAR(deviation,
                    vector                                  ? 0
                    : entry.name.ends_with("c_proj.weight") ? 0.02 / std::sqrt(16.0)
                                                            : 0.02,
                    5e-4)
            << entry.name;
    }
    for (int64_t i = 4093 * config.n_embd; i < layout.padded_vocab() * config.n_embd; ++i)
        ASSERT_EQ(weights.values[static_cast<size_t>(i)], 0);
}

}  // namespace
