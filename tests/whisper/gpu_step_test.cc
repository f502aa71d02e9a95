// Steps on a GPU of a small random model: small models start a row's next step before the host asks
// for it. Skipped without a GPU.
#include "whisper/transcribe/gpu_step.h"

#include <map>
#include <memory>

#include "kernels/runtime/cuda_library.h"
#include "support/on_gpu.h"
#include "support/ops.h"

namespace hark::test {
namespace {

using namespace hark::whisper;

constexpr size_t kPromptOfFour = 4;
constexpr int kStepsInTurn = 140;  // more keys than the first recording has

// The vocabulary of official models that know several languages: the last 1501 ids are timestamps.
LogitConstraints multilingual_constraints(const Config& config, bool timestamps) {
    LogitConstraints constraints;
    constraints.timestamp_begin = static_cast<int32_t>(config.n_vocab) - 1501;
    constraints.no_timestamps = constraints.timestamp_begin - 1;
    constraints.eot = 50257;
    constraints.timestamps = timestamps;
    return constraints;
}

// Two windows with noise.
class TwoWindows {
  public:
    TwoWindows(Context& ctx, const Model& model)
        : ctx_(ctx), model_(model), caches_(model, 3, 2, CrossKvMode::store, ctx.arena.source()) {
        const int64_t n_mels = model.config.n_mels;
        std::vector<float> mel = random_values(2 * kWindowFrames * n_mels, 3);
        encode_windows(ctx, model, caches_, std::vector<int64_t>{0, 1},
                       Tensor(mel.data(), Dtype::f32, {2, kWindowFrames, n_mels}));
    }

    // What the steps of both windows give, one step of each in turn from `both` on, before that of
    // the first one alone. Token i is what was sampled, or what `forced` has for it. The steps are
    // each of a GpuStep of its own, or all of one.
    std::vector<Candidate> decode(const LogitConstraints& constraints, int both,
                                  const std::map<int, int32_t>& forced, bool own) {
        const auto n_vocab = static_cast<int32_t>(model_.config.n_vocab);
        std::vector<int32_t> tokens[2];
        std::unique_ptr<GpuStep> step;
        std::vector<Candidate> found;
        for (int i = 0; i < kStepsInTurn; ++i) {
            const int window = i < both ? 0 : i % 2;
            std::vector<int32_t>& text = tokens[window];
            const bool begins = text.empty();
            if (begins) text = {1000 + window, 1001, 1002, 1003};
            if (!step || own)
                step = std::make_unique<GpuStep>(ctx_, model_, caches_, constraints, 2);
            Pass pass;
            pass.add(text, begins ? 0 : std::ssize(text) - 1, window, window,
                     model_.config.n_audio_ctx);
            pass.want(pass.rows() - 1);
            const std::vector<SampleRequest> requests = {
                sample_request(constraints, std::span(text).subspan(kPromptOfFour), n_vocab)};
            found.push_back((*step)(pass, requests, 1).at(0));
            const auto other = forced.find(i);
            text.push_back(other == forced.end() ? found.back().token : other->second);
        }
        return found;
    }

  private:
    Context& ctx_;
    const Model& model_;
    Caches caches_;
};

// A step that has started early counts only if the host then asks for it: not after another token
// than the sampled one, nor for another window.
TEST_F(OnGpu, StepsThatStartEarlyChangeNothing) {
    Context ctx = make_cuda_context(0);
    const Model model = random_model(official_config("tiny"), precision_of("f16", Device::cuda), 1,
                                     ctx.arena.source());
    ASSERT_EQ(model.config.n_text_layer, 4);
    TwoWindows windows(ctx, model);
    const std::map<int, int32_t> forced = {{3, 5}, {4, 50300}, {9, 7}, {10, 8}, {30, 50364}};
    for (const bool timestamps : {false, true})
        for (const int both : {kStepsInTurn, 60})
            for (const auto& tokens : {std::map<int, int32_t>{}, forced}) {
                SCOPED_TRACE(concat(timestamps, " ", both, " ", tokens.size()));
                const LogitConstraints constraints =
                    multilingual_constraints(model.config, timestamps);
                const std::vector<Candidate> alone =
                    windows.decode(constraints, both, tokens, true);
                const std::vector<Candidate> early =
                    windows.decode(constraints, both, tokens, false);
                for (size_t i = 0; i < alone.size(); ++i) {
                    ASSERT_EQ(alone[i].token, early[i].token) << i;
                    EXPECT_EQ(alone[i].logprob, early[i].logprob) << i;
                }
            }
}

}  // namespace
}  // namespace hark::test
