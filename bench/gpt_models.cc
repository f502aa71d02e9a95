// Models for bench gpt: published shapes with random weights, in any type that a file has.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <tuple>

#include "core/error.h"
#include "core/half.h"
#include "core/ranges.h"
#include "gpt/answers/generate.h"
#include "gpt/decoder/model.h"
#include "gpt/families/gguf_types.h"
#include "gpt/families/model_file.h"
#include "gpt/families/published_shapes.h"
#include "gpt/families/tensor_spec.h"
#include "gpt_work.h"
#include "harness.h"
#include "kernels/comm/processes.h"
#include "kernels/quant/quantize.h"

namespace hark::bench {

using namespace hark::gpt;

namespace {

// gpt-oss's own types: experts in blocks, all other matrices in bf16.
constexpr const char* kExpertBlocks = "mxfp4";

// Normal values of deviation 0.02, norms near 1. Tensors of one shape and type are drawn once.
class RandomModel : public TensorSource {
  public:
    RandomModel(const DecoderConfig& config, const std::string& type) {
        const bool blocks = type == kExpertBlocks;
        for (const TensorSpec& spec : tensor_specs(config))
            types_[spec.name] = blocks && spec.is_matrix() && spec.expert >= 0
                                    ? Dtype::mxfp4
                                    : gguf_type_of(spec, config, blocks ? "bf16" : type);
    }

    Tensor take(const std::string& name, std::initializer_list<int64_t> shape) override {
        const Dtype dtype = types_.at(name);
        const bool norm = shape.size() == 1 && name.ends_with("weight");
        Drawn& drawn = drawn_[{dtype, norm, shape}];
        Tensor tensor(nullptr, dtype, shape);
        if (drawn.empty()) drawn = draw(tensor, norm);
        tensor.data = drawn.data();
        return tensor;
    }
    bool has(const std::string& name) const override { return types_.contains(name); }
    std::string where() const override { return "random weights"; }
    void release_tensors() override {}
    bool stores_out_in() const override { return true; }

  private:
    using Drawn = std::vector<std::byte>;

    static Drawn draw(Tensor tensor, bool norm) {
        Drawn bytes(static_cast<size_t>(tensor.bytes()));
        tensor.data = bytes.data();
        // Random values need not differ everywhere: some are stored, and copied.
        std::vector<float> values = normal_values(std::min(tensor.size(), kDrawn), 1);
        for (float& value : values) value = (norm ? 1.0f : 0.0f) + 0.02f * value;
        store(bytes.data(), values.data(), tensor.dtype, std::ssize(values));
        const size_t drawn = bytes.size() * values.size() / static_cast<size_t>(tensor.size());
        for (size_t from = drawn; from < bytes.size(); from += drawn)
            std::copy_n(bytes.begin(), std::min(drawn, bytes.size() - from),
                        bytes.begin() + static_cast<std::ptrdiff_t>(from));
        return bytes;
    }
    static void store(std::byte* to, const float* from, Dtype dtype, int64_t n) {
        if (is_quantized(dtype)) return quantize(to, from, dtype, n);
        for (int64_t i = 0; i < n; ++i) {
            if (dtype == Dtype::f32) reinterpret_cast<float*>(to)[i] = from[i];
            if (dtype == Dtype::f16) reinterpret_cast<f16_t*>(to)[i] = to_f16(from[i]);
            if (dtype == Dtype::bf16) reinterpret_cast<bf16_t*>(to)[i] = to_bf16(from[i]);
        }
    }

    static constexpr int64_t kDrawn = 1 << 22;
    std::map<std::string, Dtype> types_;
    std::map<std::tuple<Dtype, bool, std::vector<int64_t>>, Drawn> drawn_;
};

Precision precision_of_work(const GptWork& work, const Context& ctx, Dtype stored) {
    GenerateOptions options;
    options.kv_dtype = work.kv_dtype;
    return options.with_cache(precision_of(work.dtype, ctx.device, stored));
}

}  // namespace

std::vector<std::string> bench_types() {
    std::vector<std::string> types = gguf_types();
    types.emplace_back(kExpertBlocks);
    return types;
}

void GptWork::model_flags(Flags& flags) {
    flags.add("model", model, "SHAPE|PATH llama-3.1-8b, gpt2-124m ... or files of a model");
    flags.add("type", type, bench_types(), "TYPE of a shape's matrices");
    flags.add("dtype", dtype, {"auto", "f32", "f16", "bf16", "int8", "fp8"},
              "TYPE that they are converted to");
    flags.add("kv-dtype", kv_dtype, {"auto", "f32", "f16", "bf16", "q8_0"},
              "TYPE of keys and values");
    flags.add_switch("batch-invariant", batch_invariant, "a text's bits depend on no others");
    flags.add("gpus", gpus, "N GPUs that share the model", 1, 64);
}

std::string type_label(const GptWork& work) {
    return find_shape(work.model) ? work.type : "as stored";
}

void on_gpus(const GptWork& work, Console& console,
             const std::function<void(Context&, Communicator&)>& use) {
    with_links(work.gpus, console, [&](std::unique_ptr<Transport> links) {
        const int rank = links ? links->rank() : 0;
        if (rank > 0)
            require(std::freopen("/dev/null", "w", stdout) != nullptr, "/dev/null: cannot open");
        Context ctx = make_cuda_context(rank);
        ctx.batch_invariant = ctx.few_row_products = work.batch_invariant;
        const std::unique_ptr<Communicator> ranks = make_communicator(ctx, std::move(links));
        use(ctx, *ranks);
        ranks->finish();
    });
}

Model bench_model(const GptWork& work, Context& ctx, Communicator& ranks) {
    const PublishedShape* shape = find_shape(work.model);
    if (!shape) {
        require(std::filesystem::exists(work.model),
                "--model: expected a file, a folder or one of ",
                joined(published_shapes(), ", ", &PublishedShape::name), ", found ", work.model);
        const std::shared_ptr<ModelFile> file = open_model(work.model);
        return read_model(file, precision_of_work(work, ctx, stored_type(*file)),
                          ctx.arena.source(), ctx.threads, ranks);
    }
    const DecoderConfig config = parse_config(shape->config, shape->name);
    RandomModel random(config, work.type);
    const bool has_bf16 = work.type == "bf16" || work.type == kExpertBlocks;
    const Dtype stored = has_bf16 ? Dtype::bf16 : Dtype::f16;
    return read_model(random, config, precision_of_work(work, ctx, stored), ctx.arena.source(),
                      ctx.threads, ranks);
}

}  // namespace hark::bench
