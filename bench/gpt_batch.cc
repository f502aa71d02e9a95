// bench gpt-batch: many texts at once, of a published shape with random weights or of a model's
// files.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>
#include <thread>

#include "commands.h"
#include "core/cli/cli.h"
#include "core/random.h"
#include "gpt/answers/constraint.h"
#include "gpt/decoder/model.h"
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
    double rate = 0;  // texts that come per second; 0: all at once

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
        flags.add("rate", rate, "R texts per second that come; 0: all at once", 0, 1e6);
        flags.add("mixed-rows", engine.mixed_rows, "N rows of a pass of prompts and steps", 0,
                  4096);
        flags.add("runs", work.runs, "N runs after one that warms up", 1, 1000);
        flags.add("threads", threads, "N CPU threads; 0 takes all cores", 0, 4096);
    }
};

struct Times {
    double seconds = 0;  // all texts
    // Of each text to its first token, from when it came; between two tokens of a text.
    std::vector<double> first, between;
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

// When texts come, in seconds: exponential distances, as of independent users.
std::vector<double> arrivals(const Options& options) {
    std::vector<double> times(static_cast<size_t>(options.requests));
    if (options.rate == 0) return times;
    double at = 0;
    for (size_t i = 0; i < times.size(); ++i)
        times[i] = at -= std::log(1 - uniform_at(1, i)) / options.rate;
    return times;
}

// Texts that come to an engine, and when their tokens are there.
class Run {
  public:
    Run(Engine& engine, const Options& options, int64_t vocabulary, int64_t number,
        std::shared_ptr<TokenMasks> json)
        : engine_(engine),
          options_(options),
          vocabulary_(vocabulary),
          number_(number),
          json_(std::move(json)),
          arrivals_(arrivals(options)) {}

    Times times() {
        const int64_t full = std::min(engine_.max_sequences(), options_.requests);
        bool was_full = false;
        for (double last = 0; next_ < arrivals_.size() || !engine_.is_idle(); last = now()) {
            add_texts();
            const std::vector<EngineToken> tokens = engine_.step();
            const bool is_full = std::ssize(tokens) == full;
            // A step after a full one: both passes had all texts.
            if (is_full && was_full) {
                ++times_.full_steps;
                times_.full_seconds += now() - last;
            }
            was_full = is_full;
            for (const EngineToken& token : tokens) take(token);
        }
        times_.seconds = now();
        return std::move(times_);
    }

  private:
    double now() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }
    // Those that have come; waits for the next one if there is none to compute.
    void add_texts() {
        if (engine_.is_idle() && next_ < arrivals_.size() && arrivals_[next_] > now())
            std::this_thread::sleep_for(std::chrono::duration<double>(arrivals_[next_] - now()));
        for (; next_ < arrivals_.size() && arrivals_[next_] <= now(); ++next_) {
            const auto i = static_cast<int64_t>(next_);
            TextRequest request;
            request.prompt = prompt_of(options_, number_ * options_.requests + i, vocabulary_);
            request.sampler.temperature = 0;
            request.max_tokens = options_.work.tokens;
            if (i < options_.constrained) request.sampler.constraint = json_;
            latest_[engine_.add(std::move(request))] = arrivals_[next_];
        }
    }
    void take(const EngineToken& token) {
        require(token.error.empty(), token.error);
        double& latest = latest_[token.id];
        (token.is_first ? times_.first : times_.between).push_back(now() - latest);
        latest = now();
    }

    Engine& engine_;
    const Options& options_;
    int64_t vocabulary_, number_;
    std::shared_ptr<TokenMasks> json_;
    std::vector<double> arrivals_;
    size_t next_ = 0;                    // of the arrivals
    std::map<uint64_t, double> latest_;  // per text: when it came, or its newest token
    Times times_;
    Clock::time_point begin_ = Clock::now();
};

// The value that a share of the values does not exceed, in ms.
double quantile(std::vector<double>& values, double share) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    const auto last = static_cast<double>(values.size() - 1);
    return 1000 * values[static_cast<size_t>(std::llround(share * last))];
}

void time_engine(const Options& options, Context& ctx, Communicator& ranks) {
    const Model model = bench_model(options.work, ctx, ranks);
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
    std::printf(
        "what\tdtype\ttokens/s\tseconds\tfirst token ms\tp99\tbetween tokens ms\tp99\tfull "
        "steps\tms\ttokens/s\n");
    for (int64_t i = 0; i <= options.work.runs; ++i) {
        Times times = Run(engine, options, vocabulary, i, json).times();
        if (i == 0) continue;  // warms up, records graphs
        const double tokens = static_cast<double>(options.requests * options.work.tokens);
        const double step =
            times.full_seconds / static_cast<double>(std::max<int64_t>(times.full_steps, 1));
        const auto full = static_cast<double>(std::min(engine.max_sequences(), options.requests));
        const auto whole = [](int64_t n) { return static_cast<long long>(n); };
        std::printf(
            "%s, %lld of %lld / %lld, %lld at once\t%s\t%.0f\t%.3f\t%.1f\t%.1f\t%.2f\t%.2f"
            "\t%lld\t%.3f\t%.0f\n",
            options.work.model.c_str(), whole(options.requests), whole(options.work.prompt),
            whole(options.work.tokens), whole(engine.max_sequences()),
            type_label(options.work).c_str(), tokens / times.seconds, times.seconds,
            quantile(times.first, 0.5), quantile(times.first, 0.99), quantile(times.between, 0.5),
            quantile(times.between, 0.99), whole(times.full_steps), step * 1000,
            step > 0 ? full / step : 0.0);
        std::fflush(stdout);
    }
}

void run(const Options& options, Console& console) {
    require_usage(options.rate == 0 || options.work.gpus == 1, "--rate: is for one GPU");
    if (options.device == "cuda")
        return on_gpus(options.work, console, [&](Context& ctx, Communicator& ranks) {
            time_engine(options, ctx, ranks);
        });
    require_usage(options.work.gpus == 1, "--gpus: is for --device cuda");
    Context ctx = make_cpu_context(options.threads);
    ctx.few_row_products = options.work.batch_invariant;
    time_engine(options, ctx, no_other_ranks());
}

}  // namespace

int bench_gpt_batch(int argc, char** argv) {
    return tool_main<Options>(
        {.name = "bench gpt-batch", .summary = "Times many texts of a language model at once."},
        argc, argv, run);
}

}  // namespace hark::bench
