// bench gpt-batch: many texts at once, of a published shape with random weights or of a model's
// files.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>

#include "commands.h"
#include "core/cli.h"
#include "core/random.h"
#include "gpt/answers/constraint.h"
#include "gpt/engine/engine.h"
#include "gpt_work.h"
#include "kernels/runtime/backend.h"
#include "vocabulary.h"

namespace hark::bench {

using namespace hark::gpt;

namespace {

using Clock = std::chrono::steady_clock;

struct Options {
    GptWork work{"gpt2-124m", "f16", "auto", 128, 128, 0, 1};
    EngineOptions engine;
    int64_t requests = 64, shared = 0, constrained = 0;
    std::string device = "cpu", vocabulary;
    int64_t threads = 0;

    void flags(Flags& flags) {
        work.model_flags(flags);
        flags.add("device", device, {"cpu", "cuda"}, "DEVICE to compute on");
        flags.add("requests", requests, "N texts", 1, 1 << 20);
        flags.add("prompt", work.prompt, "N tokens of each prompt", 1, 1 << 20);
        flags.add("shared", shared, "N of them that all prompts have in common", 0, 1 << 20);
        flags.add("tokens", work.tokens, "N tokens generated for each", 1, 1 << 20);
        flags.add("constrained", constrained, "N of the texts that must be JSON", 0, 1 << 20);
        flags.add("vocabulary", vocabulary, "PATH tokenizer whose tokens those are made of");
        flags.add("max-sequences", engine.max_sequences, "N computed at once; 0: as the tools do",
                  0, 4096);
        flags.add("runs", work.runs, "N runs after one that warms up", 1, 1000);
        flags.add("threads", threads, "N CPU threads; 0 takes all cores", 0, 4096);
    }
};

struct Times {
    double seconds = 0, first = 0;  // all texts; the mean time to a text's first token
    // Of the steps in which max_sequences texts got a token each: how many, and their time.
    int64_t full_steps = 0;
    double full_seconds = 0;
};

std::vector<int32_t> prompt_of(const Options& options, int64_t number, int64_t vocabulary) {
    std::vector<int32_t> prompt;
    for (int64_t i = 0; i < options.work.prompt; ++i) {
        const uint64_t seed = i < options.shared ? 0 : static_cast<uint64_t>(number) + 1;
        const double u = uniform_at(seed, static_cast<uint64_t>(i));
        prompt.push_back(static_cast<int32_t>(u * static_cast<double>(vocabulary)));
    }
    return prompt;
}

Times time_run(Engine& engine, const Options& options, int64_t vocabulary, int64_t run,
               const std::shared_ptr<TokenMasks>& json) {
    const auto since = [](Clock::time_point from) {
        return std::chrono::duration<double>(Clock::now() - from).count();
    };
    Times times;
    const auto begin = Clock::now();
    for (int64_t i = 0; i < options.requests; ++i) {
        TextRequest request;
        request.prompt = prompt_of(options, run * options.requests + i, vocabulary);
        request.sampler.temperature = 0;
        request.max_tokens = options.work.tokens;
        if (i < options.constrained) request.sampler.constraint = json;
        engine.add(std::move(request));
    }
    const int64_t full = std::min(engine.max_sequences(), options.requests);
    bool was_full = false;
    for (auto last = Clock::now(); !engine.is_idle(); last = Clock::now()) {
        const std::vector<EngineToken> tokens = engine.step();
        const bool is_full = std::ssize(tokens) == full;
        // A step after a full one: both passes had all texts.
        if (is_full && was_full) {
            ++times.full_steps;
            times.full_seconds += since(last);
        }
        was_full = is_full;
        for (const EngineToken& token : tokens)
            if (token.is_first) times.first += since(begin) / static_cast<double>(options.requests);
    }
    times.seconds = since(begin);
    return times;
}

void run(const Options& options, Console&) {
    Context ctx =
        options.device == "cuda" ? make_cuda_context(0) : make_cpu_context(options.threads);
    ctx.batch_invariant = ctx.few_row_products = options.work.batch_invariant;
    const Model model = bench_model(options.work, ctx);
    const int64_t vocabulary = model.config.n_vocab;
    EngineOptions sizes = options.engine;
    sizes.context = options.work.prompt + options.work.tokens;
    Engine engine(ctx, model, vocabulary, sizes);
    std::optional<Tokenizer> tokenizer;
    std::shared_ptr<TokenMasks> json;
    if (options.constrained > 0) {
        require_usage(!options.vocabulary.empty(), "--constrained: --vocabulary is required");
        tokenizer = vocabulary_of(options.vocabulary, vocabulary);
        Constraints constraints(*tokenizer, {tokenizer->vocab_size() - 1}, nullptr);
        json = constraints.masks({ConstraintRequest::Kind::json, ""}, false);
    }
    std::printf("what\tdtype\ttokens/s\tseconds\tfirst token s\tfull steps\tms\ttokens/s\n");
    for (int64_t i = 0; i <= options.work.runs; ++i) {
        const Times times = time_run(engine, options, vocabulary, i, json);
        if (i == 0) continue;  // warms up, records graphs
        const double tokens = static_cast<double>(options.requests * options.work.tokens);
        const double step =
            times.full_seconds / static_cast<double>(std::max<int64_t>(times.full_steps, 1));
        const auto full = static_cast<double>(std::min(engine.max_sequences(), options.requests));
        std::printf(
            "%s, %lld of %lld / %lld, %lld at once\t%s\t%.0f\t%.3f\t%.3f\t%lld\t%.3f\t%.0f\n",
            options.work.model.c_str(), static_cast<long long>(options.requests),
            static_cast<long long>(options.work.prompt),
            static_cast<long long>(options.work.tokens),
            static_cast<long long>(engine.max_sequences()), type_label(options.work).c_str(),
            tokens / times.seconds, times.seconds, times.first,
            static_cast<long long>(times.full_steps), step * 1000, step > 0 ? full / step : 0.0);
        std::fflush(stdout);
    }
}

}  // namespace

int bench_gpt_batch(int argc, char** argv) {
    return tool_main<Options>(
        {.name = "bench gpt-batch", .summary = "Times many texts of a language model at once."},
        argc, argv, run);
}

}  // namespace hark::bench
