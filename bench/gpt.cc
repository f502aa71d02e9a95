// bench gpt: a GPT-2 model of an official size with random weights, decoding one text.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <utility>

#include "commands.h"
#include "core/cli.h"
#include "core/error.h"
#include "formats/tensor_source.h"
#include "gpt_work.h"
#include "harness.h"

namespace hark::bench {

using namespace hark::gpt;

namespace {

constexpr int64_t kContext = 1024;

struct Options {
    std::string size = "124M", device = "cpu", dtype = "auto";
    int64_t tokens = 240, threads = 0;

    void flags(Flags& flags) {
        flags.add("size", size, {"124M", "355M", "774M", "1558M"}, "SIZE official size");
        flags.add("device", device, {"cpu", "cuda"}, "DEVICE to compute on");
        flags.add("dtype", dtype, {"auto", "f32", "f16", "bf16", "int8"}, "TYPE of the weights");
        flags.add("tokens", tokens, "N tokens behind a prompt of 16", 1, kContext - kGptPrompt);
        flags.add("threads", threads, "N CPU threads; 0 takes all cores", 0, 4096);
    }
    void check() const {
        require_usage(threads == 0 || device == "cpu", "--threads: is for --device cpu");
    }
};

DecoderConfig official_config(const std::string& size) {
    struct Shape {
        const char* size;
        int64_t layers, channels, heads;
    };
    constexpr Shape kShapes[] = {{"124M", 12, 768, 12},
                                 {"355M", 24, 1024, 16},
                                 {"774M", 36, 1280, 20},
                                 {"1558M", 48, 1600, 25}};
    const auto* shape = std::find_if(std::begin(kShapes), std::end(kShapes),
                                     [&](const Shape& one) { return size == one.size; });
    require(shape != std::end(kShapes), "no official size of GPT-2: ", size);
    DecoderConfig config;
    config.n_vocab = 50257;
    config.n_positions = kContext;
    config.n_embd = shape->channels;
    config.n_layer = shape->layers;
    config.n_head = shape->heads;
    config.n_inner = 4 * shape->channels;
    complete_gpt2(config);
    return config;
}

void run(const Options& options, Console&) {
    options.check();
    if (options.device == "cuda") return gpt_on_gpu({options.size, options.dtype, options.tokens});
    Context ctx = make_cpu_context(options.threads);
    const Model model = random_gpt(options.size, precision_of(options.dtype), cpu_memory());
    const double bytes = gpt_token_bytes(model, options.tokens);
    std::vector<double> ms;
    for (const NamedSampler& sampler : gpt_samplers()) {
        const auto stream = make_decode_stream(ctx, model, model.config.n_vocab, sampler.options);
        ms.push_back(gpt_token_ms(*stream, options.tokens, 1));
    }
    Limits limits(ctx.threads);
    Report report(limits);
    for (size_t i = 0; i < ms.size(); ++i) {
        const std::string what = concat("gpt ", options.size, " step, ", gpt_samplers()[i].name);
        report.bytes(what, options.dtype, ms[i], bytes);
        report.figure(what, options.dtype, ms[i], 1000 / ms[i], "tokens/s");
    }
}

}  // namespace

std::vector<NamedSampler> gpt_samplers() {
    return {{"greedy", {.temperature = 0}}, {"default draws", {}}};
}

namespace {

// Random tensors that are drawn once per shape: layers are alike, but in memory of their own.
class RepeatedTensors : public TensorSource {
  public:
    Tensor take(const std::string& name, std::initializer_list<int64_t> shape) override {
        const auto key = std::pair(name.ends_with("weight"), std::vector<int64_t>(shape));
        const auto found = drawn_.find(key);
        return found != drawn_.end() ? found->second : drawn_[key] = random_.take(name, shape);
    }
    bool has(const std::string&) const override { return true; }
    std::string where() const override { return random_.where(); }
    void forget_taken() override {}
    bool stores_out_in() const override { return true; }

  private:
    RandomTensors random_{1};
    std::map<std::pair<bool, std::vector<int64_t>>, Tensor> drawn_;
};

}  // namespace

Model random_gpt(const std::string& size, Precision precision, const MemorySource& memory) {
    RepeatedTensors random;
    return read_model(random, official_config(size), precision, memory);
}

double gpt_token_bytes(const Model& model, int64_t tokens) {
    const DecoderConfig& c = model.config;
    const double keys = static_cast<double>(kGptPrompt) + static_cast<double>(tokens + 1) / 2;
    return static_cast<double>(model.weights.bytes() - model.position_table.bytes()) +
           static_cast<double>(2 * c.n_layer * c.n_embd) * keys *
               static_cast<double>(size_of(model.precision.cache));
}

std::vector<int32_t> gpt_prompt() {
    std::vector<int32_t> prompt;
    for (int32_t i = 0; i < kGptPrompt; ++i) prompt.push_back(1000 + 2003 * i);
    return prompt;
}

double gpt_token_ms(DecodeStream& stream, int64_t tokens, int runs) {
    std::vector<double> times;
    for (int run = 0; run < runs; ++run) {
        stream.begin(gpt_prompt(), 1, tokens + 1);
        stream.next();
        const auto begin = std::chrono::steady_clock::now();
        for (int64_t i = 0; i < tokens; ++i) stream.next();
        const std::chrono::duration<double, std::milli> ms =
            std::chrono::steady_clock::now() - begin;
        times.push_back(ms.count() / static_cast<double>(tokens));
    }
    std::nth_element(times.begin(), times.begin() + runs / 2, times.end());
    return times[static_cast<size_t>(runs / 2)];
}

int bench_gpt(int argc, char** argv) {
    return tool_main<Options>(
        {.name = "bench gpt",
         .summary = "Times a GPT-2 model of an official size with random weights."},
        argc, argv, run);
}

}  // namespace hark::bench
