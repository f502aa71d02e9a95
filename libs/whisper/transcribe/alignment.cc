#include "whisper/transcribe/alignment.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "kernels/batch_layout.h"
#include "kernels/runtime/parallel.h"
#include "kernels/runtime/transfer.h"
#include "kernels/sampling/distribution.h"
#include "whisper/transcribe/decoding.h"
#include "whisper/transcribe/dtw.h"

namespace hark::whisper {
namespace {

constexpr int64_t kMedianWidth = 7;

void softmax(std::span<float> row) {
    const float top = *std::max_element(row.begin(), row.end());
    double total = 0;
    for (float& x : row) total += x = std::exp(x - top);
    for (float& x : row) x = static_cast<float>(x / total);
}

// Normalises each column of (rows, columns) to mean 0 and deviation 1; constant columns become 0.
void normalise_columns(float* values, int64_t rows, int64_t columns) {
    std::vector<double> mean(static_cast<size_t>(columns)), variance(mean.size());
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) mean[j] += values[i * columns + j];
    for (double& m : mean) m /= static_cast<double>(rows);
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) {
            const double difference = values[i * columns + j] - mean[j];
            variance[j] += difference * difference / static_cast<double>(rows);
        }
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) {
            const float deviation = static_cast<float>(std::sqrt(variance[j]));
            float& x = values[i * columns + j];
            x = deviation > 0 ? (x - static_cast<float>(mean[j])) / deviation : 0;
        }
}

// The probability of each token among the ids below eot, from the logits of the token before it.
std::vector<double> token_probabilities(const Tensor& logits, std::span<const int32_t> tokens,
                                        int32_t eot) {
    std::vector<double> probabilities;
    const float* row = logits.as<float>();
    for (const int32_t token : tokens) {
        const double total = log_sum_exp({row, static_cast<size_t>(eot)});
        probabilities.push_back(std::exp(row[token] - total));
        row += logits.dim(1);
    }
    return probabilities;
}

}  // namespace

std::vector<ScoresRequest> requests_for(const Config& config, const Tensor& scores) {
    std::vector<ScoresRequest> requests(static_cast<size_t>(config.n_text_layer));
    int64_t end = 0;
    for (const AlignmentHead& head : config.alignment_heads) {
        ScoresRequest& request = requests[static_cast<size_t>(head.layer)];
        request.heads.push_back(head.head);
        ++end;
        request.scores = scores.slice(end - std::ssize(request.heads), end);
    }
    return requests;
}

std::vector<float> attention_map(std::span<float> scores, int64_t heads, int64_t rows,
                                 int64_t frames, int threads) {
    require(static_cast<int64_t>(scores.size()) == heads * rows * frames,
            "attention_map: expected ", heads, " heads of ", rows, " rows of ", frames,
            " scores, found ", scores.size(), " scores");
    std::vector<float> fit(static_cast<size_t>(rows * frames));
    if (fit.empty()) return fit;
    const size_t n = static_cast<size_t>(frames);
    parallel_for(threads, heads, [&](int64_t head) {
        float* first = scores.data() + head * rows * frames;
        for (int64_t i = 0; i < rows; ++i) softmax({first + i * frames, n});
        normalise_columns(first, rows, frames);
        for (int64_t i = 0; i < rows; ++i) median_filter({first + i * frames, n}, kMedianWidth);
    });
    for (int64_t head = 0; head < heads; ++head)
        for (size_t i = 0; i < fit.size(); ++i) fit[i] += scores[head * fit.size() + i];
    for (float& x : fit) x /= static_cast<float>(heads);
    return fit;
}

std::vector<int32_t> first_frames(std::span<const float> fit, int64_t rows, int64_t frames) {
    std::vector<float> cost(fit.begin(), fit.end());
    for (float& x : cost) x = -x;
    std::vector<int32_t> first(static_cast<size_t>(rows), -1);
    for (const auto& [row, frame] : dtw(cost, rows, frames))
        if (row >= 0 && first[row] < 0) first[row] = std::max(frame, 0);
    return first;
}

TokenAlignment WindowDecoder::align(int64_t slot, const std::string& language,
                                    std::span<const int32_t> text, int64_t frames) {
    if (text.empty()) return {};
    const Scratch scratch(ctx_);
    const Config& config = model_.config;
    const SpecialTokens& special = tokenizer_.special();
    std::vector<int32_t> tokens =
        tokenizer_.sot_sequence(language, states_[static_cast<size_t>(slot)].task.task);
    const int64_t before = std::ssize(tokens);  // the first row's index
    tokens.push_back(special.no_timestamps);
    tokens.insert(tokens.end(), text.begin(), text.end());
    tokens.push_back(special.eot);
    const int64_t count = std::ssize(tokens), rows = std::ssize(text) + 1;
    require(count <= config.n_text_ctx, "times of words: a window's text has ", text.size(),
            " tokens, the model has room for ", config.n_text_ctx - (count - rows) - 1);

    const int64_t steps = frames / kFramesPerStep, heads = std::ssize(config.alignment_heads);
    Tensor scores = ctx_.arena.tensor(Dtype::f32, {heads, count, steps});
    const std::vector<ScoresRequest> requests = requests_for(config, scores);
    Pass pass;
    pass.add(tokens, 0, slot * rows_per_window_, slot, config.n_audio_ctx);
    for (int64_t i = 0; i + 1 < rows; ++i) pass.want(before + i);
    const Tensor logits = pass.logits(ctx_, model_, caches_, &requests);

    const Stage stage(ctx_, "times of words", scores);
    const Tensor on_host = to_host(ctx_, scores);
    const std::vector<float> fit =
        attention_map({on_host.as<float>(), static_cast<size_t>(on_host.size())}, heads, count,
                      steps, ctx_.threads);
    const std::span<const float> of_text = std::span(fit).subspan(
        static_cast<size_t>(before * steps), static_cast<size_t>(rows * steps));
    return {token_probabilities(logits, text, special.eot), first_frames(of_text, rows, steps)};
}

}  // namespace hark::whisper
