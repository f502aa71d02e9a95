// bench kernels: the CPU kernels on the shapes of Whisper's tiny and base models.
#include <cstring>
#include <string>
#include <vector>

#include "../commands.h"
#include "../harness.h"
#include "core/cli/cli.h"
#include "kernels/batch_layout.h"
#include "kernels/ops.h"
#include "kernels/runtime/backend.h"
#include "nn/weights.h"

namespace hark::bench {
namespace {

struct Model {
    const char* name;
    int64_t width, heads, layers;
};

constexpr Model kModels[] = {{"tiny", 384, 6, 4}, {"base", 512, 8, 6}};
constexpr int64_t kVocabulary = 51865, kFrames = 1500;
using Kind = WeightPrecision;
constexpr std::pair<Kind, const char*> kKinds[] = {
    {Kind::f32, "f32"}, {Kind::f16, "f16"}, {Kind::bf16, "bf16"}, {Kind::int8, "int8"}};

struct Options {
    std::string model = "tiny";
    int64_t threads = 0;

    void flags(Flags& flags) {
        flags.add("model", model, {"tiny", "base"}, "MODEL whose shapes are measured");
        flags.add("threads", threads, "N CPU threads; 0 takes all cores", 0, 4096);
    }
};

Dtype arithmetic_of(Kind kind) {
    return kind == Kind::bf16 ? Dtype::bf16 : kind == Kind::int8 ? Dtype::i8 : Dtype::f32;
}

double bytes_of(const Matrix& w) {
    return static_cast<double>(w.values.bytes() + (w.scales ? w.scales.bytes() : 0));
}

class Bench {
  public:
    Bench(Context& ctx, const Model& model, Limits& limits, Report& report)
        : ctx_(ctx), model_(model), limits_(limits), report_(report) {}

    void limits() {
        for (const double mega : {1, 64, 1024}) {
            const double rate = limits_.read_bandwidth(mega * 1e6);
            report_.figure(concat("read ", mega, " MB"), "", mega / rate, rate, "GB/s");
        }
        for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::i8}) {
            const double speed = limits_.product_speed(dtype);
            report_.figure("product 2048 cubed", name_of(dtype),
                           2 * 2048.0 * 2048 * 2048 / speed * 1e-6, speed, "GFLOP/s");
        }
    }

    // The encoder's products with their epilogues: 1500 rows.
    void encoder_products() {
        const int64_t c = model_.width;
        for (const auto& [kind, name] : kKinds) {
            many_rows("linear", kFrames, 3 * c, c, kind, name, {});
            many_rows("linear, residual", kFrames, c, c, kind, name, {}, true);
            many_rows("linear, gelu", kFrames, 4 * c, c, kind, name,
                      {.activation = Activation::gelu});
            many_rows("linear, residual", kFrames, c, 4 * c, kind, name, {}, true);
        }
    }

    // All the weights that a token reads in the decoder, by a few tokens at once.
    void decoder_products() {
        for (const auto& [kind, name] : kKinds) decoder_products(kind, Dtype::f32, name);
        for (const Dtype dtype : kQuantizedDtypes)
            if (model_.width % block_size(dtype).values == 0)
                decoder_products(Kind::as_stored, dtype, name_of(dtype));
    }

    // A prompt's products with quantised weights.
    void prompt_products() {
        const int64_t c = model_.width;
        for (const Dtype dtype : kQuantizedDtypes)
            for (const int64_t rows : {32, 256})
                if (c % block_size(dtype).values == 0)
                    many_rows("linear", rows, 4 * c, c, Kind::as_stored, name_of(dtype), {}, false,
                              dtype);
    }

    void encoder_attention() {
        for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16})
            attend(concat("attention ", kFrames, " x ", kFrames), 1, kFrames, kFrames, dtype,
                   false);
        attend("attention 224 x 224 causal", 1, 224, 224, Dtype::f32, true);
    }

    void decoder_attention() {
        for (const Dtype dtype : {Dtype::f32, Dtype::f16}) {
            attend("attention 1 x 1500", 1, 1, kFrames, dtype, false);
            attend("attention 8 rows of 1 x 1500", 8, 1, kFrames, dtype, false);
            attend("attention 1 x 224", 1, 1, 224, dtype, true);
        }
    }

    void norms() {
        const int64_t c = model_.width;
        for (const int64_t rows : {int64_t{1}, kFrames}) {
            const Arena::Scope scope(ctx_.arena);
            Tensor x = filled({rows, c}), y = ctx_.arena.tensor(Dtype::f32, {rows, c});
            Tensor w = filled({c}), b = filled({c});
            const double ms = median_ms([&] { layer_norm(ctx_, y, x, w, b); });
            report_.bytes(concat("layer_norm ", rows, " x ", c), "f32", ms,
                          static_cast<double>(x.bytes() + y.bytes()));
        }
    }

    void convolutions() {
        const int64_t c = model_.width;
        for (const auto& [kind, name] : kKinds) {
            convolution(2 * kFrames, 80, 1, kind, name);
            convolution(2 * kFrames, c, 2, kind, name);
        }
    }

  private:
    // From weights stored as `dtype`.
    void decoder_products(Kind kind, Dtype dtype, const char* name) {
        const int64_t c = model_.width;
        WeightStore weights(kind);
        std::vector<Matrix> products;
        double bytes = 0, flops_per_row = 0;
        const auto add = [&](int64_t n, int64_t k) {
            products.push_back(
                weights.matrix({is_quantized(dtype) ? blocks(dtype, n, k) : values(n, k)}));
            bytes += bytes_of(products.back());
            flops_per_row += 2.0 * static_cast<double>(n * k);
            scratch_.clear();
        };
        for (int64_t layer = 0; layer < model_.layers; ++layer) {
            add(3 * c, c);
            for (int i = 0; i < 3; ++i) add(c, c);
            add(4 * c, c);
            add(c, 4 * c);
        }
        add(kVocabulary, c);
        for (const int64_t rows : {1, 2, 8, 16}) {
            const Arena::Scope scope(ctx_.arena);
            Tensor x = filled({rows, 4 * c}),
                   y = ctx_.arena.tensor(Dtype::f32, {rows, kVocabulary});
            const double ms = median_ms([&] {
                for (const Matrix& w : products) {
                    const int64_t n = w.values.dim(0), k = w.values.dim(1);
                    linear(ctx_, Tensor(y.data, Dtype::f32, {rows, n}),
                           Tensor(x.data, Dtype::f32, {rows, k}), w);
                }
            });
            report_.bytes(concat("decoder's products, ", rows, " rows"), name, ms, bytes,
                          static_cast<double>(rows) * flops_per_row);
        }
    }

    Tensor filled(std::initializer_list<int64_t> shape, Dtype dtype = Dtype::f32) {
        Tensor tensor = ctx_.arena.tensor(dtype, shape);
        fill(tensor);
        return tensor;
    }
    void fill(Tensor tensor) {
        WeightStore source(tensor.dtype == Dtype::f16    ? Kind::f16
                       : tensor.dtype == Dtype::bf16 ? Kind::bf16
                                                     : Kind::f32);
        const Matrix drawn = source.matrix({values(1, tensor.size())});
        std::memcpy(tensor.data, drawn.values.data, tensor.bytes());
        scratch_.clear();
    }
    // Valid until scratch_ is cleared.
    Tensor values(int64_t n, int64_t k) {
        scratch_.push_back(normal_values(n * k, ++seed_));
        return Tensor(scratch_.back().data(), Dtype::f32, {n, k});
    }
    // Blocks of zeros, also valid: what they hold does not change the time.
    Tensor blocks(Dtype dtype, int64_t n, int64_t k) {
        const size_t bytes = row_bytes(dtype, k) * static_cast<size_t>(n);
        scratch_.emplace_back((bytes + sizeof(float) - 1) / sizeof(float));
        return Tensor(scratch_.back().data(), dtype, {n, k});
    }

    void many_rows(const char* what, int64_t rows, int64_t n, int64_t k, Kind kind,
                   const char* name, Epilogue then, bool residual = false,
                   Dtype stored = Dtype::f32) {
        const Arena::Scope scope(ctx_.arena);
        WeightStore weights(kind);
        const Matrix w =
            weights.matrix({is_quantized(stored) ? blocks(stored, n, k) : values(n, k)});
        Tensor x = filled({rows, k}), y = filled({rows, n});
        then.bias = filled({n});
        if (residual) then.residual = y;
        const double ms = median_ms([&] { linear(ctx_, y, x, w, then); });
        report_.flops(concat(what, " ", rows, " x ", n, " x ", k), name, ms,
                      2.0 * static_cast<double>(rows * n * k), arithmetic_of(kind),
                      bytes_of(w) + static_cast<double>(x.bytes() + y.bytes()));
    }

    void convolution(int64_t frames, int64_t channels, int stride, Kind kind, const char* name) {
        const Arena::Scope scope(ctx_.arena);
        const int64_t n = model_.width, t_out = (frames - 1) / stride + 1;
        WeightStore weights(kind);
        const Matrix w = weights.matrix({values(n, 3 * channels)});
        Tensor x = filled({1, frames, channels}), y = ctx_.arena.tensor(Dtype::f32, {1, t_out, n});
        const Epilogue then = {.bias = filled({n}), .activation = Activation::gelu};
        const double ms = median_ms([&] { conv1d(ctx_, y, x, w, stride, then); });
        report_.flops(concat("conv1d ", frames, " x ", channels, " stride ", stride), name, ms,
                      2.0 * static_cast<double>(t_out * n * 3 * channels), arithmetic_of(kind),
                      bytes_of(w) + static_cast<double>(x.bytes() + y.bytes()));
    }

    void attend(const std::string& what, int64_t sequences, int64_t queries, int64_t keys,
                Dtype dtype, bool causal) {
        const Arena::Scope scope(ctx_.arena);
        const int64_t d = model_.width / model_.heads;
        Tensor q = filled({sequences * queries, model_.width});
        Tensor out = ctx_.arena.tensor(Dtype::f32, {sequences * queries, model_.width});
        Tensor k = filled({sequences, model_.heads, keys, d}, dtype);
        Tensor v = filled({sequences, model_.heads, keys, d}, dtype);
        HostBatchLayout rows;
        for (int64_t b = 0; b < sequences; ++b) rows.add(b, queries, keys);
        const double ms = median_ms([&] {
            attention(ctx_, out, q, k, v, rows.view(), {.scale = 0.125f, .causal = causal});
        });
        const double bytes = static_cast<double>(k.bytes() + v.bytes()),
                     flops = static_cast<double>(sequences * queries * keys * model_.width);
        if (queries == 1)
            report_.bytes(what, name_of(dtype), ms, bytes, 4 * flops);
        else
            report_.flops(what, name_of(dtype), ms, (causal ? 2 : 4) * flops, Dtype::f32, bytes);
    }

    Context& ctx_;
    Model model_;
    Limits& limits_;
    Report& report_;
    std::vector<std::vector<float>> scratch_;
    uint64_t seed_ = 0;
};

void run(const Options& options, Console&) {
    Context ctx = make_cpu_context(options.threads);
    Limits limits(ctx.threads);
    Report report(limits);
    const Model& model = options.model == "tiny" ? kModels[0] : kModels[1];
    Bench bench(ctx, model, limits, report);
    bench.limits();
    bench.encoder_products();
    bench.convolutions();
    bench.encoder_attention();
    bench.decoder_products();
    bench.prompt_products();
    bench.decoder_attention();
    bench.norms();
}

}  // namespace

int bench_kernels(int argc, char** argv) {
    return tool_main<Options>(
        {.name = "bench kernels", .summary = "CPU kernels on Whisper's shapes, as TSV"}, argc, argv,
        run);
}

}  // namespace hark::bench
