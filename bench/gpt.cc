// bench gpt: a decoder of a published shape with random weights, or a model's files, on one text.
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "commands.h"
#include "core/cli/cli.h"
#include "core/error.h"
#include "gpt/decoder/model.h"
#include "gpt_work.h"
#include "harness.h"

namespace hark::bench {

using namespace hark::gpt;

namespace {

struct Options {
    GptWork work{"gpt2-124m", "f16", "auto", 128, 128, 16, 5};
    std::string device = "cpu";
    int64_t threads = 0;

    void flags(Flags& flags) {
        work.model_flags(flags);
        flags.add("device", device, {"cpu", "cuda"}, "DEVICE to compute on");
        flags.add("prompt", work.prompt, "N tokens of the prompt", 1, 1 << 20);
        flags.add("tokens", work.tokens, "N tokens generated", 2, 1 << 20);
        flags.add("left-out", work.left_out, "N of these that are not timed", 0, 1 << 20);
        flags.add("runs", work.runs, "N runs, of which the median counts", 1, 1000);
        flags.add("threads", threads, "N CPU threads; 0 takes all cores", 0, 4096);
    }
    void check() const {
        require_usage(threads == 0 || device == "cpu", "--threads: is for --device cpu");
        require_usage(work.gpus == 1 || device == "cuda", "--gpus: is for --device cuda");
        require_usage(work.left_out < work.tokens, "--left-out: expected less than --tokens");
    }
};

void run(const Options& options, Console& console) {
    options.check();
    const GptWork& work = options.work;
    if (options.device == "cuda")
        return on_gpus(work, console,
                       [&](Context& ctx, Communicator& ranks) { gpt_on_gpu(work, ctx, ranks); });
    Context ctx = make_cpu_context(options.threads);
    const Model model = bench_model(work, ctx);
    const std::string type = type_label(work);
    const double bytes = gpt_token_bytes(model, work);
    std::vector<GptTimes> times;
    for (const NamedSampler& sampler : gpt_samplers()) {
        const auto stream = make_decode_stream(ctx, model, model.config.n_vocab, sampler.options,
                                               work.prompt + work.tokens);
        times.push_back(time_gpt(*stream, work, model.config.n_vocab));
    }
    Limits limits(ctx.threads);
    Report report(limits);
    report.figure(concat(work.model, " prompt of ", work.prompt), type, times[0].prompt_ms,
                  static_cast<double>(work.prompt) * 1000 / times[0].prompt_ms, "tokens/s");
    for (size_t i = 0; i < times.size(); ++i) {
        const std::string what = concat(work.model, " step, ", gpt_samplers()[i].name);
        report.bytes(what, type, times[i].token_ms, bytes);
        report.figure(what, type, times[i].token_ms, 1000 / times[i].token_ms, "tokens/s");
    }
}

double median(std::vector<double> values) {
    const auto middle = values.begin() + std::ssize(values) / 2;
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

}  // namespace

std::vector<NamedSampler> gpt_samplers() {
    return {{"greedy", {.temperature = 0}}, {"default draws", {}}};
}

double gpt_token_bytes(const Model& model, const GptWork& work) {
    const DecoderConfig& c = model.config;
    const double keys =
        static_cast<double>(work.prompt) + static_cast<double>(work.left_out + work.tokens + 1) / 2;
    double unread = static_cast<double>(model.position_table.bytes());
    if (!c.tie_word_embeddings) unread += static_cast<double>(model.token_table.values.bytes());
    for (const DecoderLayer& layer : model.layers)
        if (const auto* experts = std::get_if<Experts>(&layer.mlp))
            for (const ExpertMatrices* of : {&experts->gate, &experts->up, &experts->down})
                for (size_t i = static_cast<size_t>(experts->per_row); i < of->each.size(); ++i)
                    unread += static_cast<double>(of->each[i].values.bytes());
    return static_cast<double>(model.weights.bytes()) - unread +
           keys *
               static_cast<double>(row_bytes(model.precision.cache, c.n_layer * c.cache_width()));
}

GptTimes time_gpt(DecodeStream& stream, const GptWork& work, int64_t vocabulary) {
    std::vector<int32_t> prompt;
    for (int64_t i = 0; i < work.prompt; ++i)
        prompt.push_back(static_cast<int32_t>((1000 + 2003 * i) % vocabulary));
    std::vector<double> prompts, tokens;
    for (int64_t run = 0; run <= work.runs; ++run) {
        using Clock = std::chrono::steady_clock;
        const auto ms = [](Clock::time_point from, Clock::time_point to) {
            return std::chrono::duration<double, std::milli>(to - from).count();
        };
        const auto begin = Clock::now();
        stream.begin(prompt, 1, work.tokens);
        stream.next();
        const auto first = Clock::now();
        const int64_t left_out = std::max<int64_t>(work.left_out, 1);
        for (int64_t i = 1; i < left_out; ++i) stream.next();
        const auto from = Clock::now();
        const int64_t timed = work.tokens - left_out;
        for (int64_t i = 0; i < timed; ++i) stream.next();
        if (run == 0) continue;  // warms up
        prompts.push_back(ms(begin, first));
        tokens.push_back(ms(from, Clock::now()) / static_cast<double>(timed));
    }
    return {median(prompts), median(tokens)};
}

int bench_gpt(int argc, char** argv) {
    return tool_main<Options>(
        {.name = "bench gpt",
         .summary =
             "Times a language model of a published shape with random weights, or of files."},
        argc, argv, run);
}

}  // namespace hark::bench
