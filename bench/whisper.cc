// bench whisper: a Whisper model of an official size with random weights: encoder, and tokens alone
// and in a batch, for each dtype of the weights.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "commands.h"
#include "core/cli/cli.h"
#include "harness.h"
#include "kernels/batch_layout.h"
#include "speech/detector.h"
#include "whisper/model/work.h"
#include "whisper/transcribe/alignment.h"
#include "whisper/transcribe/pass.h"
#include "whisper_work.h"

namespace hark::bench {
namespace {

using namespace hark::whisper;

constexpr int64_t kBatch = 8, kBeams = 5;
constexpr int32_t kDrafts = 4;
constexpr int32_t kWordTokens = 60;  // of a window's text
constexpr int32_t kPosition = 100;   // of the token that is timed: the number of those before it

struct Options {
    std::string size = "tiny", device = "cpu", dtype = "all";
    int64_t threads = 0, batch = 0;

    void flags(Flags& flags) {
        flags.add("size", size, "SIZE official size: tiny, base.en, small, large-v3, turbo, ...");
        flags.add("device", device, {"cpu", "cuda"}, "DEVICE to compute on");
        flags.add("dtype", dtype, {"all", "f32", "auto", "f16", "bf16", "int8", "fp8"},
                  "TYPE of the weights; auto is float32 arithmetic and caches on f16 weights");
        flags.add("threads", threads, "N CPU threads; 0 takes all cores", 0, 4096);
        flags.add("batch", batch, "N windows side by side on a GPU; 0: 1 and 16 of them", 0, 4096);
    }
    void check() const {
        require_usage(batch == 0 || device == "cuda", "--batch: is for --device cuda");
        require_usage(threads == 0 || device == "cpu", "--threads: is for --device cpu");
    }
};

double peak_megabytes() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_maxrss) * 1024 / 1e6;
}

// Tensors of indices that the caller keeps.
Tensor ints(std::vector<int32_t>& values) {
    return Tensor(values.data(), Dtype::i32, {static_cast<int64_t>(values.size())});
}

// A model with the caches of some sequences, each with its own window and kPosition tokens.
class Session {
  public:
    Session(Context& ctx, const Model& model, int64_t slots)
        : ctx_(ctx),
          model_(model),
          slots_(slots),
          caches_(model, slots, slots, CrossKvMode::store, ctx.arena.source()),
          mel_(normal_values(kWindowFrames * model.config.n_mels, 1)) {
        Arena::Scope scope(ctx_.arena);
        const Tensor encoder_out = model_.encoder(ctx_, window());
        for (int64_t slot = 0; slot < slots; ++slot) {
            cache_cross_kv(encoder_out, slot);
            read_prompt(slot);
        }
    }

    double encoder_ms() {
        return median_ms([&] {
            Arena::Scope scope(ctx_.arena);
            model_.encoder(ctx_, window());
        });
    }
    double cache_cross_kv_ms() {
        Arena::Scope scope(ctx_.arena);
        const Tensor encoder_out = model_.encoder(ctx_, window());
        return median_ms([&] { cache_cross_kv(encoder_out, 0); });
    }
    // `queries` more tokens for every sequence, each with its own window or all with the first.
    double step_ms(int32_t queries = 1, bool one_window = false) {
        std::vector<int32_t> tokens, position, wanted;
        HostBatchLayout self, cross;
        for (int32_t i = 0; i < slots_; ++i) {
            for (int32_t k = 0; k < queries; ++k) {
                wanted.push_back(static_cast<int32_t>(tokens.size()));
                tokens.push_back(1000 + 17 * i + k);
                position.push_back(kPosition + k);
            }
            self.add(i, queries, kPosition + queries);
            cross.add(one_window ? 0 : i, queries, model_.config.n_audio_ctx);
        }
        return median_ms([&] {
            Arena::Scope scope(ctx_.arena);
            model_.decoder(ctx_, ints(tokens), ints(position), self.view(), cross_input(cross),
                           ints(wanted), caches_.self);
        });
    }
    // Every beam continues its neighbour: all of their caches move.
    double reorder_ms() {
        std::vector<int32_t> from, to;
        for (int32_t i = 0; i < slots_; ++i) {
            from.push_back((i + 1) % static_cast<int32_t>(slots_));
            to.push_back(i);
        }
        return median_ms([&] {
            for (std::vector<Tensor>* caches : {&caches_.self.keys, &caches_.self.values})
                for (Tensor& cache : *caches)
                    copy_cache(ctx_, cache, ints(from), ints(to), kPosition);
        });
    }
    // What the times of words add to a window: the pass over a text of kWordTokens tokens with the
    // alignment heads' scores, and the way through them.
    double words_ms() {
        const Config& config = model_.config;
        std::vector<int32_t> tokens, position, wanted;
        for (int32_t i = 0; i < kWordTokens; ++i) {
            tokens.push_back(1000 + 17 * i);
            position.push_back(i);
            wanted.push_back(i);
        }
        HostBatchLayout self, cross;
        self.add(0, kWordTokens, kWordTokens);
        cross.add(0, kWordTokens, config.n_audio_ctx);
        return median_ms([&] {
            Arena::Scope scope(ctx_.arena);
            const int64_t heads = std::ssize(config.alignment_heads);
            Tensor scores = ctx_.arena.tensor(Dtype::f32, {heads, kWordTokens, config.n_audio_ctx});
            const std::vector<ScoresRequest> requests = requests_for(config, scores);
            model_.decoder(ctx_, ints(tokens), ints(position), self.view(), cross_input(cross),
                           ints(wanted), caches_.self, &requests);
            const std::vector<float> fit =
                attention_map({scores.as<float>(), static_cast<size_t>(scores.size())}, heads,
                              kWordTokens, config.n_audio_ctx, ctx_.threads);
            first_frames(fit, kWordTokens, config.n_audio_ctx);
        });
    }

  private:
    CrossAttentionInput cross_input(const HostBatchLayout& rows) const {
        return {caches_.cross, rows.view(), {}, {}};
    }
    Tensor window() {
        return Tensor(mel_.data(), Dtype::f32, {1, kWindowFrames, model_.config.n_mels});
    }
    void cache_cross_kv(const Tensor& encoder_out, int64_t slot) {
        model_.decoder.cache_cross_kv(ctx_, encoder_out, caches_.cross, {&slot, 1});
    }
    // Real values in every place that a step reads.
    void read_prompt(int64_t slot) {
        std::vector<int32_t> tokens(kPosition, static_cast<int32_t>(slot)), position(kPosition),
            wanted = {0};
        for (int32_t i = 0; i < kPosition; ++i) position[static_cast<size_t>(i)] = i;
        HostBatchLayout self, cross;
        self.add(slot, kPosition, kPosition);
        cross.add(slot, kPosition, model_.config.n_audio_ctx);
        Arena::Scope scope(ctx_.arena);
        model_.decoder(ctx_, ints(tokens), ints(position), self.view(), cross_input(cross),
                       ints(wanted), caches_.self);
    }

    Context& ctx_;
    const Model& model_;
    int64_t slots_;
    Caches caches_;
    std::vector<float> mel_;
};

// The built-in detector over a window of log-mel, levels between -10 and 2.
double speech_ms(int64_t n_mels) {
    std::vector<float> frames = normal_values(kWindowFrames * n_mels, 2);
    for (float& x : frames) x = -4 + 6 * x;
    return median_ms([&] {
        speech_in_log_mel(frames, static_cast<int>(n_mels), kWindowFrames * TimeMap::kFrame, {});
    });
}

void run_dtype(const Options& options, const std::string& dtype, bool heading) {
    Context ctx = make_cpu_context(options.threads);
    const Config config = official_config(options.size);
    const Model model = random_model(config, precision_of(dtype), 1);
    const double weights = static_cast<double>(model.weights.bytes()) / 1e6;
    Session alone(ctx, model, 1);
    const double encoder = alone.encoder_ms(), cache_cross_kv = alone.cache_cross_kv_ms();
    const double token = alone.step_ms();
    const double peak = peak_megabytes();  // of what a recording alone needs
    const double words = alone.words_ms();
    const double checked = alone.step_ms(kDrafts + 1);
    const double tokens = Session(ctx, model, kBatch).step_ms();
    Session beams(ctx, model, kBeams);
    const double beam_step = beams.step_ms(1, true), reorder = beams.reorder_ms();
    Limits limits(ctx.threads);  // only now: its buffers would count as the model's memory
    Report report(limits, heading);
    const Dtype product = dtype == "bf16" ? Dtype::bf16 : dtype == "int8" ? Dtype::i8 : Dtype::f32;
    const std::string name = "whisper " + options.size + " ";
    report.flops(name + "encoder", dtype, encoder, encoder_flops(config).total(), product);
    report.flops(name + "cross-attention cache", dtype, cache_cross_kv,
                 static_cast<double>(4 * config.n_text_layer * config.n_audio_ctx *
                                     config.n_text_state * config.n_text_state),
                 product);
    report.bytes(name + "token", dtype, token,
                 token_bytes(model, 1, CrossKvMode::store, Device::cpu));
    report.bytes(name + "token in a batch of 8", dtype, tokens / kBatch,
                 token_bytes(model, kBatch, CrossKvMode::store, Device::cpu) / kBatch);
    report.figure(name + "times of a window's words", dtype, words, kWordTokens / words * 1000,
                  "tokens/s");
    report.figure(name + "step of 5 beams", dtype, beam_step, beam_step / token, "tokens alone");
    report.figure(name + "caches of 5 beams moved", dtype, reorder, reorder / token,
                  "tokens alone");
    report.figure(name + "check of 4 guessed tokens", dtype, checked, checked / token,
                  "tokens alone");
    if (heading) {  // no weights, the same for every dtype
        const double speech = speech_ms(config.n_mels);
        report.figure(name + "speech in 30 s", "f32", speech, 30'000 / speech, "times real time");
    }
    report.figure(name + "weights", dtype, 0, weights, "MB");
    report.figure(name + "peak memory", dtype, 0, peak, "MB");
    std::fflush(stdout);
}

void run(const Options& options, Console& console) {
    options.check();
    official_config(options.size);
    if (options.device == "cuda") {
        std::vector<std::string> dtypes = {options.dtype};
        if (options.dtype == "all") dtypes = {"f16", "bf16", "int8", "fp8", "f32"};
        std::vector<int64_t> batches = {1, 16};
        if (options.batch > 0) batches = {options.batch};
        for (const std::string& dtype : dtypes) whisper_on_gpu(options.size, dtype, batches);
        return;
    }
    std::vector<std::string> dtypes = {options.dtype};
    if (options.dtype == "all") dtypes = {"f32", "auto", "f16", "bf16", "int8"};
    for (const std::string& dtype : dtypes) {
        // A process each, so that each one's peak memory is its own.
        std::fflush(stdout);
        const pid_t child = ::fork();
        require(child >= 0, "cannot fork");
        if (child == 0) {
            int status = 0;
            try {
                run_dtype(options, dtype, dtype == dtypes.front());
            } catch (const std::exception& failure) {
                console.error(failure.what());
                status = 1;
            }
            ::_exit(status);
        }
        int status = 0;
        ::waitpid(child, &status, 0);
        require(status == 0, "the measurement of ", dtype, " failed");
    }
}

}  // namespace

int bench_whisper(int argc, char** argv) {
    return tool_main<Options>(
        {.name = "bench whisper",
         .summary = "Times a Whisper model of an official size with random weights."},
        argc, argv, run);
}

}  // namespace hark::bench
