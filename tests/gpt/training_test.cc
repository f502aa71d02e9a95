// A training step against transformers (tests/golden/gpt_training.py) and against itself.
#include "gpt/training.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/error.h"
#include "kernels/backend.h"
#include "support/process.h"

using namespace hark;
using namespace hark::gpt;
using nlohmann::json;

namespace {

const json& golden() {
    static const json kGolden =
        json::parse(test::read_text(test::source_dir() / "tests/golden/gpt_training.json"));
    return kGolden;
}

std::filesystem::path demo() { return test::source_dir() / "models/gpt-demo"; }

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
        losses.resize(tokens.size());
    }
    Batch batch() {
        return {view(tokens), view(targets), view(position), {view(first), view(end)}};
    }
    Tensor loss_view() { return Tensor(losses.data(), Dtype::f32, {std::ssize(losses)}); }
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

struct Fixture {
    Fixture() : config(load_config(demo())), layout(config), weights(layout), gradients(layout) {
        SafetensorsDirectory source(demo(), "transformer.");
        layout.read(weights.tensor(), source);
    }
    void compute(Rows& rows, Recompute recompute = Recompute::none) {
        compute_gradients(ctx, config, layout.views(weights.tensor()),
                          layout.views(gradients.tensor()), rows.batch(), recompute,
                          1.0f / static_cast<float>(rows.tokens.size()), rows.loss_view());
    }
    Context ctx{2};
    Config config;
    ParameterLayout layout;
    Vector weights, gradients;
};

TEST(Training, LossesAreTheReferences) {
    Fixture f;
    Rows rows(golden()["ids"]);
    compute_losses(f.ctx, f.config, f.layout.views(f.weights.tensor()), rows.batch(),
                   rows.loss_view());
    const std::vector<double> expected = golden()["losses"];
    ASSERT_EQ(expected.size(), rows.losses.size());
    for (size_t i = 0; i < expected.size(); ++i)
        EXPECT_NEAR(rows.losses[i], expected[i], 2e-5) << i;
}

TEST(Training, GradientsOfAll16KindsAreTheReferences) {
    Fixture f;
    Rows rows(golden()["ids"]);
    f.compute(rows);
    const std::vector<double> losses = golden()["losses"];
    EXPECT_NEAR(rows.mean_loss(), std::accumulate(losses.begin(), losses.end(), 0.0) / 120, 1e-5);
    std::map<std::string, std::vector<float>> kinds;  // all layers' one after another
    for (const ParameterLayout::Entry& entry : f.layout.entries()) {
        const std::string& name = entry.name;
        const std::string kind = name.starts_with("h.") ? name.substr(name.find('.', 2) + 1) : name;
        const float* from = f.gradients.values.data() + entry.offset;
        kinds[kind].insert(kinds[kind].end(), from,
                           from + entry.stored_rows * std::max<int64_t>(entry.columns, 1));
    }
    ASSERT_EQ(kinds.size(), golden()["gradients"].size());
    for (const auto& [kind, expected] : golden()["gradients"].items()) {
        const std::vector<float>& found = kinds.at(kind);
        const std::vector<double> listed = expected["listed"];
        const double norm = expected["norm"];
        double squares = 0, difference = 0, size = 0;
        for (const float v : found) squares += static_cast<double>(v) * v;
        EXPECT_NEAR(std::sqrt(squares), norm, 1e-4 * norm) << kind;
        for (size_t i = 0; i < listed.size(); ++i) {
            const float v = found[i * (found.size() - 1) / (listed.size() - 1)];
            difference += std::pow(v - listed[i], 2);
            size += listed[i] * listed[i];
        }
        EXPECT_LT(std::sqrt(difference), 1e-4 * std::sqrt(size)) << kind;
    }
}

TEST(Training, TenStepsOfAdamWAreTheReferences) {
    Fixture f;
    Rows rows(golden()["ids"]);
    Vector m(f.layout), v(f.layout);
    AdamW with = {.rate = golden()["rate"],
                  .beta1 = golden()["betas"][0],
                  .beta2 = golden()["betas"][1],
                  .eps = golden()["eps"],
                  .decay = golden()["decay"]};
    std::vector<float> clip(2);
    const Tensor clip_view(clip.data(), Dtype::f32, {2});
    for (size_t i = 0; i < 10; ++i, ++with.step) {
        std::fill(f.gradients.values.begin(), f.gradients.values.end(), 0.0f);
        f.compute(rows);
        clip_by_norm(f.ctx, clip_view, f.gradients.tensor(), golden()["clip"]);
        adamw(f.ctx, f.weights.tensor(), m.tensor(), v.tensor(), f.gradients.tensor(), clip_view,
              f.layout.decayed(), with);
        EXPECT_NEAR(rows.mean_loss(), golden()["steps"][i], 2e-4) << i;
        EXPECT_NEAR(clip[0], golden()["norms"][i], 2e-3 * clip[0]) << i;
    }
}

// A context of one thread, activations computed again and a batch in two parts.
TEST(Training, ThreadsAndRecomputingChangeNoBit) {
    Fixture f;
    Rows rows(golden()["ids"]);
    f.compute(rows);
    for (const Recompute recompute : {Recompute::none, Recompute::gelu, Recompute::norms}) {
        Fixture other;
        other.ctx.threads = 1;
        Rows again(golden()["ids"]);
        other.compute(again, recompute);
        EXPECT_EQ(rows.losses, again.losses);
        EXPECT_EQ(0, std::memcmp(f.gradients.values.data(), other.gradients.values.data(),
                                 f.gradients.values.size() * sizeof(float)))
            << static_cast<int>(recompute);
    }
}

TEST(Training, GradientsOfPartsAddUp) {
    Fixture whole, parts;
    const std::vector<std::vector<int32_t>> ids = golden()["ids"];
    Rows all(ids);
    whole.compute(all);
    for (const std::vector<int32_t>& one : ids) {
        Rows rows({one});
        compute_gradients(parts.ctx, parts.config, parts.layout.views(parts.weights.tensor()),
                          parts.layout.views(parts.gradients.tensor()), rows.batch(),
                          Recompute::none, 1.0f / 120, rows.loss_view());
    }
    double difference = 0, size = 0;
    for (size_t i = 0; i < whole.gradients.values.size(); ++i) {
        difference += std::pow(whole.gradients.values[i] - parts.gradients.values[i], 2);
        size += std::pow(whole.gradients.values[i], 2);
    }
    EXPECT_LT(std::sqrt(difference), 1e-6 * std::sqrt(size));
}

TEST(Training, ParametersSurviveAFile) {
    Fixture f;
    const test::TemporaryDirectory folder;
    f.layout.write(f.weights.tensor(), folder.path() / "model.safetensors");
    SafetensorsDirectory source(folder.path(), "transformer.");
    Vector again(f.layout);
    f.layout.read(again.tensor(), source);
    EXPECT_EQ(f.weights.values, again.values);
}

TEST(Training, StartsAsThePaperDoes) {
    Config config = load_config(demo());
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
