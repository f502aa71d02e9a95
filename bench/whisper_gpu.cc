// A Whisper model of an official size with random weights on a GPU: windows side by side, encoded,
// prompted and decoded for 100 tokens as whisper-transcribe does.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include "harness.h"
#include "kernels/runtime/transfer.h"
#include "operations/speed/gpu_speed.h"
#include "whisper/model/work.h"
#include "whisper/transcribe/decoding.h"
#include "whisper/transcribe/gpu_step.h"
#include "whisper_work.h"

namespace hark::bench {

using namespace hark::whisper;

namespace {

constexpr int64_t kWindowsAtOnce = 16, kTokens = 100;
constexpr int32_t kPrompt = 4;  // <|startoftranscript|>, language, task, <|notimestamps|>
constexpr double kWindowSeconds = 30;

class Windows {
  public:
    Windows(Context& ctx, const Model& model, int64_t count)
        : ctx_(ctx),
          model_(model),
          count_(count),
          caches_(model, count + 1, count, cross_kv_mode(count, 1), ctx.arena.source()),
          memory_(ctx.host_arena.source()),
          mel_(memory_.tensor(
              Dtype::f32, {std::min(count, kWindowsAtOnce), kWindowFrames, model.config.n_mels})),
          uploads_(ctx, static_cast<int64_t>(mel_.bytes())),
          step_(ctx, model, caches_, constraints(model.config), count),
          tokens_(static_cast<size_t>(count)) {
        const std::vector<float> values = normal_values(mel_.size(), 1);
        std::copy(values.begin(), values.end(), mel_.as<float>());
    }

    void encode() {
        for (int64_t i = 0; i < count_; i += kWindowsAtOnce) {
            std::vector<int64_t> slots;
            for (int64_t slot = i; slot < std::min(i + kWindowsAtOnce, count_); ++slot)
                slots.push_back(slot);
            encode_windows(ctx_, model_, caches_, slots, mel_.slice(0, std::ssize(slots)),
                           count_ > kWindowsAtOnce ? &uploads_ : nullptr);
        }
    }
    void read_prompts() {
        constexpr int64_t kAtOnce = (kManyRowsOnGpu - 1) / kPrompt;
        const int32_t n_vocab = static_cast<int32_t>(model_.config.n_vocab);
        for (int64_t i = 0; i < count_; i += kAtOnce) {
            Pass pass;
            std::vector<SampleRequest> requests;
            for (int64_t slot = i; slot < std::min(i + kAtOnce, count_); ++slot) {
                std::vector<int32_t>& tokens = tokens_[static_cast<size_t>(slot)];
                tokens.clear();
                for (int32_t t = 0; t < kPrompt; ++t)
                    tokens.push_back(static_cast<int32_t>(1000 + 17 * slot + t));
                pass.add(tokens, 0, slot, slot, model_.config.n_audio_ctx);
                pass.want(pass.rows() - kPrompt);
                requests.push_back(SampleRequest{.only = 3});  // of silence
                pass.want(pass.rows() - 1);
                requests.push_back(sample_request(constraints(model_.config), {}, n_vocab));
            }
            const std::vector<Candidate> best = step_(pass, requests, 1);
            for (size_t k = 1; k < best.size(); k += 2)
                tokens_[static_cast<size_t>(i) + k / 2].push_back(best[k].token);
        }
    }
    void decode(int64_t steps) {
        const int32_t n_vocab = static_cast<int32_t>(model_.config.n_vocab);
        for (int64_t i = 0; i < steps; ++i) {
            Pass pass;
            std::vector<SampleRequest> requests;
            for (int64_t slot = 0; slot < count_; ++slot) {
                const std::vector<int32_t>& tokens = tokens_[static_cast<size_t>(slot)];
                pass.add(tokens, std::ssize(tokens) - 1, slot, slot, model_.config.n_audio_ctx);
                pass.want(slot);
                requests.push_back(sample_request(constraints(model_.config), tokens, n_vocab));
            }
            const std::vector<Candidate> best = step_(pass, requests, 1);
            for (size_t slot = 0; slot < best.size(); ++slot)
                tokens_[slot].push_back(best[slot].token);
        }
    }

  private:
    static LogitConstraints constraints(const Config& config) {
        LogitConstraints constraints;
        constraints.timestamps = false;
        constraints.timestamp_begin = static_cast<int32_t>(config.n_vocab);
        return constraints;
    }

    Context& ctx_;
    const Model& model_;
    int64_t count_;
    Caches caches_;
    Arena memory_;
    Tensor mel_;  // pinned, as whisper-transcribe has it
    UploadAhead uploads_;
    GpuStep step_;
    std::vector<std::vector<int32_t>> tokens_;  // by window
};

}  // namespace

void whisper_on_gpu(const std::string& size, const std::string& dtype,
                    const std::vector<int64_t>& batches) {
    Context ctx = make_cuda_context(0);
    const Config config = official_config(size);
    const Precision precision = precision_of(dtype, Device::cuda);
    const Model model = random_model(config, precision, 1, ctx.arena.source());
    const double product = gpu_product_speed(ctx, precision.activations),
                 copy = gpu_copy_speed(ctx);
    std::printf("what\tdtype\twindows\tms\trate\tunit\tlimit\tfraction\n");
    const auto row = [&](const char* what, int64_t windows, double ms, double rate,
                         const char* unit, double limit) {
        std::printf("whisper %s %s\t%s\t%lld\t%.4f\t%.1f\t%s\t", size.c_str(), what, dtype.c_str(),
                    static_cast<long long>(windows), ms, rate, unit);
        if (limit > 0)
            std::printf("%.1f\t%.2f\n", limit, rate / limit);
        else
            std::printf("\t\n");
        std::fflush(stdout);
    };
    for (const int64_t batch : batches) {
        const CrossKvMode mode =
            CrossKvCache::resolved_mode(config, precision, cross_kv_mode(batch, 1), Device::cuda);
        const bool recomputes = mode == CrossKvMode::recompute;
        const double flops =
            encoder_flops(config).total() + (recomputes ? 0 : cross_kv_flops(config));
        Windows windows(ctx, model, batch);
        const double n = static_cast<double>(batch);
        const double encoder = gpu_ms(ctx, 3, [&] { windows.encode(); });
        windows.read_prompts();
        windows.decode(kTokens / 2);
        const double step = gpu_ms(ctx, 3, [&] { windows.decode(10); }) / 10;
        const double whole = gpu_ms(ctx, 1, [&] {
            windows.encode();
            windows.read_prompts();
            windows.decode(kTokens);
        });
        row(recomputes ? "encoder, a window" : "encoder and cross-attention cache, a window", batch,
            encoder / n, flops * n / encoder * 1e-6, "GFLOP/s", product);
        row("step of one token each", batch, step,
            token_bytes(model, n, mode, Device::cuda) / step * 1e-6, "GB/s", copy);
        row("window with 100 tokens", batch, whole / n, kWindowSeconds * 1000 * n / whole,
            "x real time", 0);
    }
}

}  // namespace hark::bench
