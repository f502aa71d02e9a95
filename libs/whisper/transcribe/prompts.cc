// Starts the decoding of windows: their prompts, and the first token of each row.
#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/profile/profile.h"
#include "kernels/runtime/transfer.h"
#include "kernels/sampling/distribution.h"
#include "whisper/transcribe/decoding.h"
#include "whisper/transcribe/gpu_step.h"
#include "whisper/transcribe/token_sampler.h"

namespace hark::whisper {

Row WindowDecoder::first_row(const WindowTask& task) const {
    const SpecialTokens& special = tokenizer_.special();
    std::vector<int32_t> tokens;
    if (!task.prompt.empty()) {
        tokens.push_back(special.sot_prev);
        const size_t skipped =
            task.prompt.size() > max_prompt() ? task.prompt.size() - max_prompt() : 0;
        tokens.insert(tokens.end(), task.prompt.begin() + static_cast<ptrdiff_t>(skipped),
                      task.prompt.end());
    }
    Row row;
    row.window = static_cast<int32_t>(task.slot);
    row.sot_index = static_cast<int32_t>(tokens.size());
    const std::vector<int32_t> sot = tokenizer_.sot_sequence(task.language, task.task);
    tokens.insert(tokens.end(), sot.begin(), sot.end());
    if (!options_.timestamps) tokens.push_back(special.no_timestamps);
    tokens.insert(tokens.end(), options_.prefix.begin(), options_.prefix.end());
    std::copy(tokens.begin(), tokens.end(), row.tokens.begin());
    row.length = row.sample_begin = static_cast<int32_t>(tokens.size());
    return row;
}

int64_t WindowDecoder::rows_of(const WindowTask& task) const {
    return task.temperature > 0 ? options_.best_of : 1;
}

// On the CPU each prompt has its own pass: products of many rows round by their number. On a GPU a
// pass takes as many as fit in kManyRowsOnGpu rows and logits, and short prompts apart from long
// ones (ops.h, attention), whose cross-attention keys and values are materialized.
void WindowDecoder::start(std::span<const WindowTask> tasks) {
    if (tasks.empty()) return;
    const ProfileSpan span("prefill");
    struct Prompt {
        int64_t length, wanted;
        const WindowTask* task;
        bool few() const { return length <= kFewQueries; }
    };
    std::vector<Prompt> prompts;
    for (const WindowTask& task : tasks)
        prompts.push_back({first_row(task).length, 1 + rows_of(task), &task});
    std::stable_partition(prompts.begin(), prompts.end(), [](const Prompt& p) { return p.few(); });
    std::vector<WindowTask> together;
    int64_t rows = 0, wanted = 0;
    const auto has_room = [&](const Prompt& next) {
        const int64_t windows = std::ssize(together);
        return ctx_.on_cuda() && rows + next.length < kManyRowsOnGpu &&
               wanted + next.wanted < kManyRowsOnGpu && (next.few() || windows < windows_at_once());
    };
    for (size_t i = 0; i < prompts.size(); ++i) {
        together.push_back(*prompts[i].task);
        rows += prompts[i].length;
        wanted += prompts[i].wanted;
        const bool last = i + 1 == prompts.size();
        if (!last && prompts[i].few() == prompts[i + 1].few() && has_room(prompts[i + 1])) continue;
        read_prompts(together);
        together.clear();
        rows = wanted = 0;
    }
}

// Creates a window's rows. Beams start as one row.
void WindowDecoder::begin(const WindowTask& task) {
    WindowState& state = states_[static_cast<size_t>(task.slot)];
    require(!state.decoding, "the window in slot ", task.slot, " is being decoded");
    state = WindowState{};
    state.task = task;
    state.decoding = true;
    state.beams = task.temperature == 0 && options_.beam_size > 1;
    state.rows.assign(static_cast<size_t>(rows_of(task)), first_row(task));
    Random seeds(task.seed);
    for (size_t i = 0; i < state.rows.size(); ++i) state.random.emplace_back(seeds.next());
}

void WindowDecoder::read_prompts(std::span<const WindowTask> tasks) {
    Pass pass;
    for (const WindowTask& task : tasks) {
        begin(task);
        const Row& row = states_[static_cast<size_t>(task.slot)].rows.front();
        pass.add({row.tokens.data(), static_cast<size_t>(row.length)}, 0, cache_row(task.slot, 0),
                 task.slot, model_.config.n_audio_ctx);
    }
    if (gpu_)
        begin_on_gpu(pass, tasks);
    else
        begin_on_host(pass, tasks);
    for (const WindowTask& task : tasks) {
        WindowState& state = states_[static_cast<size_t>(task.slot)];
        if (state.beams)
            advance(state);
        else
            follow_parents(state);
    }
}

void WindowDecoder::begin_on_host(Pass& pass, std::span<const WindowTask> tasks) {
    int64_t end = 0;
    for (const WindowTask& task : tasks) {
        const Row& row = states_[static_cast<size_t>(task.slot)].rows.front();
        pass.want(end + row.sot_index);
        end += row.length;
        pass.want(end - 1);
    }
    const Scratch scratch(ctx_);
    const size_t n_vocab = static_cast<size_t>(model_.config.n_vocab);
    float* logits = pass.logits(ctx_, model_, caches_).as<float>();
    const int32_t no_speech = tokenizer_.special().no_speech;
    for (const WindowTask& task : tasks) {
        WindowState& state = states_[static_cast<size_t>(task.slot)];
        const std::span<float> at_sot(logits, n_vocab), last(logits + n_vocab, n_vocab);
        logits += 2 * n_vocab;
        const float no_speech_prob =
            no_speech < 0 ? 0
                          : static_cast<float>(std::exp(at_sot[no_speech] - log_sum_exp(at_sot)));
        filter(state.rows.front(), last);
        if (state.beams) state.candidates = {best_candidates(last, beams_.size + 1)};
        for (size_t i = 0; i < state.rows.size(); ++i) {
            Row& row = state.rows[i];
            row.no_speech_prob = no_speech_prob;
            if (state.beams) continue;
            const int32_t token = choose_token(last, task.temperature, state.random[i]);
            append_token(row, last, token, constraints_.eot, max_length(row));
        }
    }
}

// Requests the no-speech probability of each window and a token for each of its rows.
void WindowDecoder::begin_on_gpu(Pass& pass, std::span<const WindowTask> tasks) {
    const int32_t no_speech = tokenizer_.special().no_speech;
    std::vector<SampleRequest> requests;
    bool beams = false;
    int64_t end = 0;
    for (const WindowTask& task : tasks) {
        WindowState& state = states_[static_cast<size_t>(task.slot)];
        const Row& first = state.rows.front();
        if (no_speech >= 0) {
            pass.want(end + first.sot_index);
            requests.push_back(SampleRequest{.only = no_speech});
        }
        end += first.length;
        for (Random& random : state.random) {
            pass.want(end - 1);
            requests.push_back(request_of(first.sampled(), state, random));
        }
        beams = beams || state.beams;
    }
    const size_t each = beams ? beams_.size + 1 : 1;
    const std::vector<Candidate> best = (*gpu_)(pass, requests, static_cast<int64_t>(each));
    std::span<const Candidate> left(best);
    const auto next = [&] {
        const std::span<const Candidate> candidates = left.first(each);
        left = left.subspan(each);
        return candidates;
    };
    for (const WindowTask& task : tasks) {
        WindowState& state = states_[static_cast<size_t>(task.slot)];
        const float no_speech_prob = no_speech < 0 ? 0 : std::exp(next().front().logprob);
        if (state.beams) state.candidates.assign(1, {});
        for (size_t i = 0; i < state.rows.size(); ++i) {
            state.rows[i].no_speech_prob = no_speech_prob;
            take_candidates({&state, i, 0, {}}, next());
        }
    }
}

}  // namespace hark::whisper
