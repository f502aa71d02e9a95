// The cases of tests/golden/op_errors*.json: every operation of inference, on any device.
#pragma once

#include <cmath>
#include <numeric>

#include "core/json/json.h"
#include "support/ops.h"
#include "support/process.h"

namespace hark::test {

using nlohmann::json;

// PyTorch's errors depend on the device that it computes on.
inline const json& op_cases(Device device) {
    static const auto read = [](const char* name) {
        return json::parse(read_text(source_dir() / "tests/golden" / name));
    };
    if (device == Device::cuda) {
        static const json of_cuda = read("op_errors_cuda.json");
        return of_cuda;
    }
    static const json of_cpu = read("op_errors.json");
    return of_cpu;
}

// A case on a device: its inputs, its call.
class OpCall {
  public:
    OpCall(TestDevice& device, Dtype dtype, const json& c)
        : device_(device), dtype_(dtype), c_(c) {}

    std::vector<float> result() {
        const Arena::Scope scope(ctx().arena);
        const std::string op = c_["op"];
        if (op == "linear") return device_.down(linear());
        if (op == "conv1d") return device_.down(conv1d());
        if (op == "layer_norm") return device_.down(layer_norm());
        if (op == "rms_norm") return device_.down(rms_norm());
        if (op == "gated_activation") return device_.down(gated_activation());
        if (op == "embedding") return device_.down(embedding());
        if (op == "add_positions") return device_.down(add_positions());
        if (op == "attention") return device_.down(attention());
        if (op == "attention_scores") return device_.down(attention_scores());
        if (op == "absorbed_attention") return device_.down(absorbed_attention());
        ADD_FAILURE() << "op_errors.json: unknown operation " << op;
        return {};
    }

  private:
    Context& ctx() { return device_.ctx(); }
    int64_t dim(const char* name, size_t i) const { return c_["inputs"][name]["shape"][i]; }

    // An input as the type that computes holds it.
    std::vector<float> values(const char* name) const {
        const json& input = c_["inputs"][name];
        const std::vector<int64_t> shape = input["shape"];
        const int64_t count =
            std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
        return TestDevice::rounded(random_values(count, input["seed"], input["deviation"]), dtype_);
    }
    Tensor up(const char* name, std::initializer_list<int64_t> shape) {
        return device_.up(values(name), dtype_, shape);
    }
    // Biases, norms and positions: f32 whatever computes.
    Tensor up_f32(const char* name, std::initializer_list<int64_t> shape) {
        return device_.up(values(name), Dtype::f32, shape);
    }
    // Sequences of the same numbers of queries and keys.
    BatchLayout rows(int64_t sequences, int64_t queries, int64_t keys) {
        std::vector<int32_t> starts, slots, lengths;
        for (int64_t b = 0; b <= sequences; ++b) starts.push_back(int32_t(b * queries));
        for (int64_t b = 0; b < sequences; ++b) slots.push_back(int32_t(b));
        lengths.assign(slots.size(), int32_t(keys));
        return {device_.up(starts), device_.up(slots), device_.up(lengths), queries, keys};
    }

    Tensor linear() {
        const int64_t t = dim("x", 0), k = dim("x", 1), n = dim("w", 0);
        Epilogue then{.bias = up_f32("bias", {n})};
        const std::string activation = c_["activation"];
        if (activation == "gelu") then.activation = Activation::gelu;
        if (activation == "gelu_tanh") then.activation = Activation::gelu_tanh;
        if (c_["inputs"].contains("residual")) then.residual = up("residual", {t, n});
        Tensor y = device_.empty(dtype_, {t, n});
        hark::linear(ctx(), y, up("x", {t, k}), {up("w", {n, k}), {}}, then);
        return y;
    }
    Tensor conv1d() {
        const int64_t b = dim("x", 0), t = dim("x", 1), c = dim("x", 2), n = dim("w", 0);
        const int stride = c_["stride"];
        std::vector<float> stored = values("w"), by_taps(stored.size());
        for (int64_t row = 0; row < n; ++row)
            for (int64_t channel = 0; channel < c; ++channel)
                for (int64_t tap = 0; tap < 3; ++tap)
                    by_taps[size_t((row * 3 + tap) * c + channel)] =
                        stored[size_t((row * c + channel) * 3 + tap)];
        Tensor y = device_.empty(dtype_, {b, (t - 1) / stride + 1, n});
        hark::conv1d(ctx(), y, up("x", {b, t, c}), {device_.up(by_taps, dtype_, {n, 3 * c}), {}},
                     stride, {.bias = up_f32("bias", {n}), .activation = Activation::gelu});
        return y;
    }
    Tensor layer_norm() {
        const int64_t t = dim("x", 0), c = dim("x", 1);
        Tensor y = device_.empty(dtype_, {t, c});
        hark::layer_norm(ctx(), y, up("x", {t, c}), up_f32("w", {c}), up_f32("b", {c}));
        return y;
    }
    Tensor rms_norm() {
        const int64_t t = dim("x", 0), c = dim("x", 1);
        Tensor y = device_.empty(dtype_, {t, c});
        hark::rms_norm(ctx(), y, up("x", {t, c}), up_f32("w", {c}), 1e-5f);
        return y;
    }
    Tensor gated_activation() {
        const int64_t t = dim("gate", 0), n = dim("gate", 1);
        Tensor y = device_.empty(dtype_, {t, n});
        hark::gated_activation(ctx(), y, {up("gate", {t, n})}, {up("up", {t, n})},
                               Activation::silu);
        return y;
    }
    Tensor embedding() {
        const int64_t t = dim("positions", 0), v = dim("table", 0), c = dim("table", 1);
        std::vector<int32_t> places(size_t(t), 0);
        std::iota(places.begin(), places.end(), 0);
        Tensor y = device_.empty(dtype_, {t, c});
        hark::embedding(ctx(), y, device_.up(c_["tokens"].get<std::vector<int32_t>>()),
                        device_.up(places), {up("table", {v, c}), {}}, up_f32("positions", {t, c}));
        return y;
    }
    Tensor add_positions() {
        const int64_t b = dim("x", 0), t = dim("x", 1), c = dim("x", 2);
        Tensor x = up("x", {b, t, c});
        hark::add_positions(ctx(), x, up_f32("positions", {t, c}));
        return x;
    }
    Tensor attention() {
        const int64_t b = dim("q", 0), queries = dim("q", 1), h = dim("q", 2), d = dim("q", 3);
        const int64_t length = dim("keys", 2);
        Tensor out = device_.empty(dtype_, {b * queries, h * d});
        hark::attention(
            ctx(), out, up("q", {b * queries, h * d}), up("keys", {b, h, length, d}),
            up("values", {b, h, length, d}), rows(b, queries, length),
            {.scale = 1 / std::sqrt(static_cast<float>(d)), .causal = c_["causal"].get<bool>()});
        return out;
    }
    Tensor attention_scores() {
        const int64_t b = dim("q", 0), queries = dim("q", 1), h = dim("q", 2), d = dim("q", 3);
        const int64_t length = dim("keys", 2);
        std::vector<int32_t> heads(size_t(h), 0);
        std::iota(heads.begin(), heads.end(), 0);
        Tensor scores = device_.empty(Dtype::f32, {h, b * queries, length});
        hark::attention_scores(ctx(), scores, up("q", {b * queries, h * d}),
                               up("keys", {b, h, length, d}), Tensor(heads.data(), Dtype::i32, {h}),
                               rows(b, queries, length), 1 / std::sqrt(static_cast<float>(d)));
        return scores;
    }
    Tensor absorbed_attention() {
        const int64_t b = dim("q", 0), queries = dim("q", 1), c = dim("q", 2);
        const int64_t frames = dim("encoder_out", 1);
        std::vector<float> bias(size_t(c), 0);  // of the keys
        for (const float value : values("bias")) bias.push_back(value);
        Tensor out = device_.empty(dtype_, {b * queries, c});
        hark::absorbed_attention(ctx(), out, up("q", {b * queries, c}),
                                 up("encoder_out", {b, frames, c}), {up("kv", {2 * c, c}), {}},
                                 device_.up(bias, Dtype::f32, {2 * c}), c / 64,
                                 rows(b, queries, frames), 0.125f);
        return out;
    }

    TestDevice& device_;
    Dtype dtype_;
    const json& c_;
};

}  // namespace hark::test
