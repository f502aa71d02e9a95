#include "whisper/transcribe/decoding.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/profile/profile.h"
#include "kernels/runtime/transfer.h"
#include "kernels/sampling/distribution.h"
#include "whisper/model/config.h"
#include "whisper/output/strings.h"
#include "whisper/transcribe/draft.h"
#include "whisper/transcribe/gpu_step.h"

namespace hark::whisper {
namespace {

LogitConstraints make_constraints(const Tokenizer& tokenizer, const DecodingOptions& options) {
    const SpecialTokens& special = tokenizer.special();
    LogitConstraints constraints;
    constraints.eot = special.eot;
    constraints.no_timestamps = special.no_timestamps;
    constraints.timestamp_begin = special.timestamp_begin;
    constraints.timestamps = options.timestamps;
    const double latest = options.max_initial_timestamp.value_or(0);
    constraints.max_initial_timestamp =
        latest > 0 ? static_cast<int32_t>(std::nearbyint(latest / kTimestampStep)) : -1;
    constraints.blank = tokenizer.encode(" ");
    constraints.blank.push_back(special.eot);
    constraints.suppressed = options.suppressed;
    for (int32_t id : {special.transcribe, special.translate, special.sot, special.sot_prev,
                       special.sot_lm, special.no_speech})
        if (id >= 0 && options.suppress_special) constraints.suppressed.push_back(id);
    std::sort(constraints.suppressed.begin(), constraints.suppressed.end());
    constraints.suppressed.erase(
        std::unique(constraints.suppressed.begin(), constraints.suppressed.end()),
        constraints.suppressed.end());
    constraints.repetition_penalty = options.repetition_penalty;
    constraints.no_repeat_ngram = options.no_repeat_ngram;
    return constraints;
}

// Sets the default sample_len, and cuts the prefix to its last `room` = n_text_ctx / 2 - sample_len
// tokens. If room <= 0, cuts off the first -room tokens instead.
// Source: openai/whisper decoding.py, _get_initial_tokens.
DecodingOptions for_context(DecodingOptions options, int64_t n_text_ctx) {
    if (options.sample_len == 0) options.sample_len = n_text_ctx / 2;
    const int64_t room = n_text_ctx / 2 - options.sample_len, size = std::ssize(options.prefix);
    const int64_t cut = room > 0 ? std::max<int64_t>(size - room, 0) : std::min(-room, size);
    options.prefix.erase(options.prefix.begin(), options.prefix.begin() + cut);
    return options;
}

}  // namespace

WindowDecoder::WindowDecoder(Context& ctx, const Model& model, const Tokenizer& tokenizer,
                             const DecodingOptions& options, int64_t windows, const Model* draft)
    : ctx_(ctx),
      model_(model),
      tokenizer_(tokenizer),
      options_(for_context(options, model.config.n_text_ctx)),
      constraints_(make_constraints(tokenizer, options)),
      beams_{static_cast<size_t>(options.beam_size),
             static_cast<size_t>(
                 std::nearbyint(static_cast<double>(options.beam_size) * options.patience)),
             constraints_.eot},
      rows_per_window_(std::max(options.best_of, options.beam_size)),
      caches_(model, windows * rows_per_window_ + (ctx.on_cuda() ? 1 : 0), windows,
              cross_kv_mode(windows, options.beam_size), ctx.arena.source()),
      states_(static_cast<size_t>(windows)) {
    require(beams_.max_finished > 0, "a patience of ", options.patience, " is too low for ",
            options.beam_size, " beams");
    // 6 = <|startofprev|>, <|startoftranscript|>, language, task, <|notimestamps|>, and one sampled
    // token.
    const int64_t room = model.config.n_text_ctx - static_cast<int64_t>(max_prompt()) - 6;
    require(std::ssize(options_.prefix) <= room, "--prefix: too long (got ", options_.prefix.size(),
            " tokens, expected ", room, " at most)");
    const int32_t largest = constraints_.suppressed.empty() ? 0 : constraints_.suppressed.back();
    require(largest < model.config.n_vocab, "--suppress-tokens: expected ids below ",
            model.config.n_vocab, ", got ", largest);
    // The host samples with constraints that depend on all of a row's text.
    if (ctx.on_cuda() && constraints_.repetition_penalty == 1 && constraints_.no_repeat_ngram == 0)
        gpu_ = std::make_unique<GpuStep>(ctx, model, caches_, constraints_,
                                         windows * rows_per_window_);
    if (ctx.on_cuda() && windows > windows_at_once())
        uploads_ = std::make_unique<UploadAhead>(
            ctx, windows_at_once() * kWindowFrames * model.config.n_mels * int64_t{sizeof(float)});
    if (draft)
        drafter_ =
            std::make_unique<Drafter>(*draft, model.config.n_vocab, windows, ctx.arena.source());
}

WindowDecoder::~WindowDecoder() = default;

void WindowDecoder::encode(std::span<const int64_t> slots, Tensor mel, EncodePurpose purpose) {
    const ProfileSpan span("encode");
    encode_windows(ctx_, model_, caches_, slots, mel, uploads_.get());
    if (drafter_ && purpose == EncodePurpose::decode) drafter_->encode(ctx_, slots, mel);
}

std::map<std::string, double> WindowDecoder::language_probabilities(int64_t slot) {
    const ProfileSpan span("language");
    const Scratch scratch(ctx_);
    const int32_t sot[] = {tokenizer_.special().sot};
    Pass pass;
    pass.add(sot, 0, slot * rows_per_window_, slot, model_.config.n_audio_ctx);
    pass.want(0);
    const Tensor row = pass.logits(ctx_, model_, caches_);
    const float* logits = row.as<float>();
    std::vector<float> of_languages;
    for (const auto& [code, id] : tokenizer_.special().languages)
        of_languages.push_back(logits[id]);
    const double total = log_sum_exp(of_languages);
    std::map<std::string, double> probabilities;
    for (const auto& [code, id] : tokenizer_.special().languages)
        probabilities[code] = std::exp(logits[id] - total);
    return probabilities;
}

std::string WindowDecoder::likeliest_language(int64_t slot, double* probability) {
    const std::map<std::string, double> all = language_probabilities(slot);
    const auto best = std::max_element(
        all.begin(), all.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    if (probability) *probability = best->second;
    return best->first;
}

// A longer row is finished. The last sampled token may be one past the context: it is never fed to
// the decoder.
int32_t WindowDecoder::max_length(const Row& row) const {
    const int32_t context = static_cast<int32_t>(model_.config.n_text_ctx);
    return std::min(context, row.sample_begin + static_cast<int32_t>(options_.sample_len) - 1);
}

int64_t WindowDecoder::cache_row(int64_t slot, size_t row) const {
    return slot * rows_per_window_ + static_cast<int64_t>(row);
}

void WindowDecoder::filter(const Row& row, std::span<float> logits) const {
    apply_constraints(constraints_, row.sampled(), logits);
    const bool any =
        std::any_of(logits.begin(), logits.end(), [](float logit) { return logit > kMasked; });
    if (!any) fail_without_token(row);
}

void WindowDecoder::fail_without_token(const Row& row) {
    fail("token ", row.sampled().size() + 1,
         " of a window: all tokens are suppressed; relax --suppress-tokens or --suppress-regex");
}

void WindowDecoder::advance(WindowState& state) {
    const int32_t length = state.rows.front().length + 1, longest = max_length(state.rows.front());
    const bool over = advance_beams(state.rows, state.candidates, state.finished, beams_);
    if (!over && length <= longest) return follow_parents(state);
    state.rows = beam_results(state.rows, state.finished, beams_);
    for (Row& row : state.rows) row.finished = true;
}

void WindowDecoder::follow_parents(const WindowState& state) {
    std::vector<int32_t> from, to;
    for (size_t i = 0; i < state.rows.size(); ++i) {
        const size_t parent = static_cast<size_t>(state.rows[i].parent);
        if (parent == i) continue;
        from.push_back(static_cast<int32_t>(cache_row(state.task.slot, parent)));
        to.push_back(static_cast<int32_t>(cache_row(state.task.slot, i)));
    }
    if (to.empty()) return;
    const int64_t length = state.rows.front().length - 1;  // the newest token is not cached yet
    const auto ids = [&](std::vector<int32_t>& values) {
        return to_device(ctx_, Tensor(values.data(), Dtype::i32, {std::ssize(values)}));
    };
    const Scratch scratch(ctx_);
    const Tensor from_rows = ids(from), to_rows = ids(to);
    for (std::vector<Tensor>* caches : {&caches_.self.keys, &caches_.self.values})
        for (Tensor& cache : *caches) copy_cache(ctx_, cache, from_rows, to_rows, length);
}

std::vector<WindowDecoder::Finished> WindowDecoder::step() {
    const ProfileSpan span("step");
    Pass pass;
    std::vector<ActiveRow> active;
    const int64_t most = ctx_.on_cuda() ? kManyRowsOnGpu - 1 : kFewRowsOnCpu;
    for (WindowState& state : states_) {
        if (!state.decoding) continue;
        if (state.beams) state.candidates.assign(state.rows.size(), {});
        for (size_t i = 0; i < state.rows.size(); ++i) {
            const Row& row = state.rows[i];
            if (row.finished) continue;
            ActiveRow one{&state, i, 0, {}};
            if (drafter_ && state.task.temperature == 0 && !state.beams)
                one.drafts = drafter_->propose(
                    ctx_, row, constraints_,
                    std::min<int64_t>(options_.draft_tokens, max_length(row) - row.length));
            const int64_t rows = 1 + std::ssize(one.drafts);
            if (pass.rows() + rows > most) run(pass, active);
            one.packed = pass.rows();
            std::vector<int32_t> tokens(row.tokens.begin(), row.tokens.begin() + row.length);
            tokens.insert(tokens.end(), one.drafts.begin(), one.drafts.end());
            pass.add(tokens, row.length - 1, cache_row(state.task.slot, i), row.window,
                     model_.config.n_audio_ctx);
            for (int64_t k = 0; k < rows; ++k) pass.want(one.packed + k);
            active.push_back(std::move(one));
        }
    }
    if (!active.empty()) run(pass, active);

    std::vector<Finished> done;
    for (WindowState& state : states_) {
        if (!state.decoding) continue;
        if (state.beams && !is_done(state)) advance(state);
        if (!is_done(state)) continue;
        done.push_back({state.task.slot, result(state)});
        state.decoding = false;
    }
    return done;
}

// Runs the pass and gives each row its logits. Empties both arguments.
void WindowDecoder::run(Pass& pass, std::vector<ActiveRow>& active) {
    if (gpu_) {
        run_on_gpu(pass, active);
    } else {
        const Scratch scratch(ctx_);
        float* logits = pass.logits(ctx_, model_, caches_).as<float>();
        for (const ActiveRow& one : active)
            take_logits(one, logits + one.packed * model_.config.n_vocab);
    }
    pass = Pass{};
    active.clear();
}

// The request of a row with these sampled tokens.
SampleRequest WindowDecoder::request_of(std::span<const int32_t> sampled, const WindowState& state,
                                        Random& random) const {
    SampleRequest request =
        sample_request(constraints_, sampled, static_cast<int32_t>(model_.config.n_vocab));
    request.temperature = static_cast<float>(state.task.temperature);
    if (request.temperature > 0) request.u = random.uniform();
    return request;
}

void WindowDecoder::run_on_gpu(Pass& pass, const std::vector<ActiveRow>& active) {
    std::vector<SampleRequest> requests;
    bool beams = false;
    for (const ActiveRow& one : active) {
        const Row& row = one.state->rows[one.row];
        std::vector<int32_t> sampled(row.sampled().begin(), row.sampled().end());
        for (size_t k = 0; k <= one.drafts.size(); ++k) {
            requests.push_back(request_of(sampled, *one.state, one.state->random[one.row]));
            if (k < one.drafts.size()) sampled.push_back(one.drafts[k]);
        }
        beams = beams || one.state->beams;
    }
    const size_t each = beams ? beams_.size + 1 : 1;
    const std::vector<Candidate> best = (*gpu_)(pass, requests, static_cast<int64_t>(each));
    for (const ActiveRow& one : active)
        take_candidates(one, std::span(best).subspan(static_cast<size_t>(one.packed) * each,
                                                     (one.drafts.size() + 1) * each));
}

// `logits` (1 + drafts, n_vocab): after the row's newest token and after each draft. Logits after a
// draft count only if the row itself chose that draft and all before it.
void WindowDecoder::take_logits(const ActiveRow& active, float* logits) {
    WindowState& state = *active.state;
    Row& row = state.rows[active.row];
    const size_t n_vocab = static_cast<size_t>(model_.config.n_vocab);
    for (size_t k = 0; k <= active.drafts.size() && !row.finished; ++k) {
        const std::span<float> own(logits + k * n_vocab, n_vocab);
        filter(row, own);
        if (state.beams) {
            state.candidates[active.row] = best_candidates(own, beams_.size + 1);
            return;
        }
        const int32_t token = choose_token(own, state.task.temperature, state.random[active.row]);
        append_token(row, own, token, constraints_.eot, max_length(row));
        if (k < active.drafts.size() && token != active.drafts[k]) return;
    }
}

// take_logits() for constrained candidates, equally many per token.
void WindowDecoder::take_candidates(const ActiveRow& active, std::span<const Candidate> best) {
    WindowState& state = *active.state;
    Row& row = state.rows[active.row];
    const size_t each = best.size() / (active.drafts.size() + 1);
    for (size_t k = 0; k <= active.drafts.size() && !row.finished; ++k) {
        const Candidate* own = best.data() + k * each;
        if (own->token < 0) fail_without_token(row);
        if (state.beams) {
            const Candidate* end = std::find_if(
                own, own + each, [](const Candidate& candidate) { return candidate.token < 0; });
            state.candidates[active.row].assign(own, end);
            return;
        }
        append_token(row, own->token, own->logprob, constraints_.eot, max_length(row));
        if (k < active.drafts.size() && own->token != active.drafts[k]) return;
    }
}

bool WindowDecoder::is_done(const WindowState& state) const {
    return std::all_of(state.rows.begin(), state.rows.end(),
                       [](const Row& row) { return row.finished; });
}

DecodingResult WindowDecoder::result(const WindowState& state) const {
    const Row& row = state.rows[best_row(state.rows, constraints_.eot, options_.length_penalty)];
    const std::span<const int32_t> tokens = text_tokens(row, constraints_.eot);
    DecodingResult result;
    result.tokens.assign(tokens.begin(), tokens.end());
    result.text = strip(tokenizer_.decode(tokens));
    result.temperature = state.task.temperature;
    result.avg_logprob = row.sum_logprob / static_cast<double>(tokens.size() + 1);
    result.no_speech_prob = row.no_speech_prob;
    result.compression_ratio = compression_ratio(result.text);
    std::vector<int32_t> text;
    for (int32_t id : tokens)
        if (id < constraints_.eot) text.push_back(id);
    result.repeats = repeats(text);
    return result;
}

}  // namespace hark::whisper
