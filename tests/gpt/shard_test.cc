// A model sliced among the ranks of a tensor-parallel group computes what the full one does, and is
// gathered again.
#include "gpt/train/shard.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <cstring>
#include <numeric>

#include "core/error.h"
#include "gpt/train/training.h"
#include "support/ops.h"
#include "support/ranks.h"

using namespace hark;
using namespace hark::gpt;
using namespace hark::test;

namespace {

// Of grouped heads, rotary positions, biases of q, k and v alone.
DecoderConfig small_qwen2() {
    return parse_config(
        R"({"model_type": "qwen2", "vocab_size": 61, "max_position_embeddings": 16,
            "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 8,
            "num_key_value_heads": 4, "intermediate_size": 96})",
        "small");
}

DecoderConfig ranks_config(bool tied) {
    DecoderConfig config;
    config.n_vocab = 61;  // padded
    config.n_positions = 16;
    config.n_embd = 32;
    config.n_head = 4;
    config.n_layer = 2;
    config.n_inner = 96;
    config.tie_word_embeddings = tied;
    complete_gpt2(config);
    return config;
}

Tensor view_of(std::vector<float>& values) {
    return Tensor(values.data(), Dtype::f32, {std::ssize(values)});
}

std::vector<float> zeros_of(const ParameterLayout& layout) {
    return std::vector<float>(static_cast<size_t>(layout.size()));
}

// Values of which no two vectors have the same; zeros where the vocabulary is padded.
std::vector<float> values_of(const ParameterLayout& layout) {
    std::vector<float> values = random_values(layout.size(), 1);
    for (const ParameterLayout::Entry& entry : layout.entries()) {
        float* of_entry = values.data() + entry.offset;
        for (int64_t i = 0; i < entry.size(); ++i) of_entry[i] *= 0.2f;
        std::fill(of_entry + entry.stored_rows * std::max<int64_t>(entry.columns, 1),
                  of_entry + entry.size(), 0.0f);
    }
    return values;
}

struct ShardFound {
    std::vector<float> losses, gradients;
    std::vector<float> alone;  // losses without gradients
};

// `weights`: those of one of `tensor`'s ranks. The tables' gradients are summed over the ranks.
ShardFound computed_by_ranks(TestDevice& device, Communicator& tensor, const DecoderConfig& config,
                             const ParameterLayout& layout, std::vector<float>& weights,
                             PackedRows& rows, Dtype dtype, Recompute recompute = Recompute::none) {
    Context& ctx = device.ctx();
    const Arena::Scope scope(ctx.arena);
    Tensor matrices;
    if (dtype != Dtype::f32)
        matrices = device.up({weights.begin(), weights.begin() + layout.decayed()}, dtype,
                             {layout.decayed()});
    ModelTensors views = layout.views(device.up(weights, Dtype::f32, {layout.size()}), matrices);
    views.ropes = upload_ropes(ctx, ctx.arena, config);
    Tensor gradients = device.up(zeros_of(layout), Dtype::f32, {layout.size()});
    const auto count = std::ssize(rows.tokens);
    Tensor losses = device.empty(Dtype::f32, {count}), again = device.empty(Dtype::f32, {count});
    const Batch batch = to_device(ctx, view_of(rows));
    compute_gradients(ctx, tensor, config, views, layout.views(gradients), batch, recompute,
                      1 / static_cast<float>(count), losses);
    tensor.all_reduce(ctx, gradients.slice(0, layout.tables()));
    compute_losses(ctx, tensor, config, views, batch, again);
    return {device.down(losses), device.down(gradients), device.down(again)};
}

void expect_close(const std::string& what, const float* found, const float* expected, int64_t n,
                  double share) {
    double difference = 0, size = 0;
    for (int64_t i = 0; i < n; ++i) {
        difference += std::pow(found[i] - expected[i], 2);
        size += std::pow(expected[i], 2);
    }
    require(size > 0 && std::sqrt(difference) <= share * std::sqrt(size), what, ": expected ",
            share, " of ", std::sqrt(size), " or less, found a difference of ",
            std::sqrt(difference));
}

// values[begin, end) are those of the first rank.
void expect_alike(const char* what, Communicator& ranks, const std::vector<float>& values,
                  int64_t begin, int64_t end) {
    std::vector<float> first(values.begin() + begin, values.begin() + end);
    ranks.share(std::as_writable_bytes(std::span(first)), 0);
    require(std::memcmp(first.data(), values.data() + begin, first.size() * sizeof(float)) == 0,
            what, ": other bits than the first rank's");
}

// All ranks must call it. Throws Error if the sliced model computes something else.
void check(TestDevice& device, Communicator& ranks, const DecoderConfig& config, int64_t length,
           Dtype dtype, double share) {
    const Shard shard(config, ranks);
    Communicator one;
    PackedRows rows;
    for (const int64_t n : {length, 2 * length}) {
        for (int64_t i = 0; i < n; ++i)
            rows.push(static_cast<int32_t>(7 * i % 61), static_cast<int32_t>((7 * i + n) % 61));
        rows.end_sequence();
    }
    std::vector<float> weights = values_of(shard.full()), part = zeros_of(shard.local());
    shard.slice(view_of(part), view_of(weights));
    const ShardFound all =
        computed_by_ranks(device, one, config, shard.full(), weights, rows, dtype);
    const ShardFound ours =
        computed_by_ranks(device, ranks, config, shard.local(), part, rows, dtype);
    expect_close("losses", ours.losses.data(), all.losses.data(), std::ssize(all.losses), share);
    expect_close("losses alone", ours.alone.data(), all.alone.data(), std::ssize(all.alone), share);
    expect_alike("losses", ranks, ours.losses, 0, std::ssize(ours.losses));
    expect_alike("tables", ranks, ours.gradients, 0, shard.local().tables());
    expect_alike("vectors", ranks, ours.gradients, shard.local().sliced(), shard.local().size());
    if (dtype == Dtype::f32)
        for (const Recompute recompute : {Recompute::norms, Recompute::blocks})
            require(ours.gradients == computed_by_ranks(device, ranks, config, shard.local(), part,
                                                        rows, dtype, recompute)
                                          .gradients,
                    "recomputing changes bits");
    const Tensor whole =
        shard.gather(device.ctx(), device.up(ours.gradients, Dtype::f32, {shard.local().size()}));
    require(static_cast<bool>(whole) == ranks.first(), "gathered on rank ", ranks.rank());
    if (!ranks.first()) return;
    for (const ParameterLayout::Entry& entry : shard.full().entries())
        expect_close(entry.name, whole.as<float>() + entry.offset,
                     all.gradients.data() + entry.offset, entry.size(), share);
}

}  // namespace

TEST(Shard, PartsAreGatheredToTheWhole) {
    for (const int size : {1, 2, 4})
        in_ranks(size, [](std::unique_ptr<Transport> links) {
            Context ctx(1);
            const std::unique_ptr<Communicator> ranks = make_communicator(ctx, std::move(links));
            const Shard shard(ranks_config(true), *ranks);
            std::vector<float> whole = values_of(shard.full()), part = zeros_of(shard.local());
            shard.slice(view_of(part), view_of(whole));
            const Tensor found = shard.gather(ctx, view_of(part));
            if (!ranks->first()) return;
            require(std::equal(whole.begin(), whole.end(), found.as<float>()), "other values");
        });
}

// Heads, the MLP's channels and the rows by hand.
TEST(Shard, ARankHasItsHeadsAndChannels) {
    in_ranks(2, [](std::unique_ptr<Transport> links) {
        Context ctx(1);
        const std::unique_ptr<Communicator> ranks = make_communicator(ctx, std::move(links));
        const Shard shard(ranks_config(true), *ranks);
        std::vector<float> whole = zeros_of(shard.full()), part = zeros_of(shard.local());
        std::iota(whole.begin(), whole.end(), 0.0f);
        shard.slice(view_of(part), view_of(whole));
        const BlockTensors all = shard.full().views(view_of(whole)).blocks[1],
                           own = shard.local().views(view_of(part)).blocks[1];
        const int64_t r = ranks->rank();
        const auto same = [](const Tensor& found, int64_t i, const Tensor& from, int64_t j) {
            require(found.as<float>()[i] == from.as<float>()[j], "element ", i, " is not ", j);
        };
        require(own.qkv_weight.dim(0) == 48 && own.attn_out_weight.dim(1) == 16, "attention");
        require(own.mlp_in_weight.dim(0) == 48 && own.down_weight.dim(1) == 48, "MLP");
        same(own.qkv_weight, 5, all.qkv_weight, r * 16 * 32 + 5);           // queries
        same(own.qkv_weight, 16 * 32, all.qkv_weight, (32 + r * 16) * 32);  // keys
        same(own.qkv_bias, 2 * 16 + 3, all.qkv_bias, 2 * 32 + r * 16 + 3);  // values
        same(own.attn_out_weight, 3 * 16 + 2, all.attn_out_weight, 3 * 32 + r * 16 + 2);
        same(own.mlp_in_weight, 2 * 32, all.mlp_in_weight, (r * 48 + 2) * 32);
        same(own.mlp_in_bias, 47, all.mlp_in_bias, r * 48 + 47);
        same(own.down_weight, 31 * 48, all.down_weight, 31 * 96 + r * 48);
        for (const int64_t i : {0, 31}) {
            same(own.attn_out_bias, i, all.attn_out_bias, i);
            same(own.mlp_norm_weight, i, all.mlp_norm_weight, i);
        }
    });
}

TEST(Shard, RanksMustDivideHeadsAndChannels) {
    DecoderConfig config = ranks_config(true);
    EXPECT_THROW(ParameterLayout(config, 3), Error);
    config.n_inner = 90;
    EXPECT_THROW(ParameterLayout(config, 4), Error);
    EXPECT_EQ(ParameterLayout(config, 2).tables(), ParameterLayout(config).tables());
}

class ShardedGradients : public testing::TestWithParam<int> {};

TEST_P(ShardedGradients, AreTheWholeModels) {
    in_ranks(GetParam(), [](std::unique_ptr<Transport> links) {
        TestDevice device({"cpu", Device::cpu, Dtype::f32, 0, 1});
        const std::unique_ptr<Communicator> ranks =
            make_communicator(device.ctx(), std::move(links));
        check(device, *ranks, ranks_config(true), 5, Dtype::f32, 1e-6);
        check(device, *ranks, ranks_config(false), 5, Dtype::f32, 1e-6);
        check(device, *ranks, ranks_config(true), 1, Dtype::f32, 1e-6);  // fewer rows than ranks
        check(device, *ranks, ranks_config(true), 5, Dtype::bf16, 2e-2);
        check(device, *ranks, small_qwen2(), 5, Dtype::f32, 1e-6);
        check(device, *ranks, small_qwen2(), 5, Dtype::bf16, 3e-2);
        ranks->finish();
    });
}
INSTANTIATE_TEST_SUITE_P(Sizes, ShardedGradients, testing::Values(1, 2, 4));

TEST(ShardedGradients, AreTheWholeModelsBetweenGpus) {
    struct stat found;
    if (::stat("/dev/nvidia1", &found) != 0) GTEST_SKIP() << "needs two GPUs";
    in_ranks(2, [](std::unique_ptr<Transport> links) {
        TestDevice device({"cuda", Device::cuda}, links->local_rank());
        require(static_cast<bool>(device), device.why_not());
        const std::unique_ptr<Communicator> ranks =
            make_communicator(device.ctx(), std::move(links));
        check(device, *ranks, ranks_config(true), 5, Dtype::f32, 1e-5);
        check(device, *ranks, ranks_config(true), 5, Dtype::bf16, 3e-2);
        check(device, *ranks, small_qwen2(), 5, Dtype::f32, 1e-5);
        ranks->finish();
    });
}
