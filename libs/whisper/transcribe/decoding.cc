#include "whisper/transcribe/decoding.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "kernels/runtime/transfer.h"
#include "kernels/sampling/distribution.h"
#include "whisper/model/config.h"
#include "whisper/output/strings.h"

namespace hark::whisper {
namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

Rules make_rules(const Tokenizer& tokenizer, const DecodingOptions& options) {
    const SpecialTokens& special = tokenizer.special();
    Rules rules;
    rules.eot = special.eot;
    rules.no_timestamps = special.no_timestamps;
    rules.timestamp_begin = special.timestamp_begin;
    rules.timestamps = options.timestamps;
    const double latest = options.max_initial_timestamp.value_or(0);
    rules.max_initial_timestamp =
        latest > 0 ? static_cast<int32_t>(std::nearbyint(latest / kTimestampStep)) : -1;
    rules.blank = tokenizer.encode(" ");
    rules.blank.push_back(special.eot);
    rules.suppressed = options.suppressed;
    for (int32_t id : {special.transcribe, special.translate, special.sot, special.sot_prev,
                       special.sot_lm, special.no_speech})
        if (id >= 0 && options.suppress_special) rules.suppressed.push_back(id);
    std::sort(rules.suppressed.begin(), rules.suppressed.end());
    rules.suppressed.erase(std::unique(rules.suppressed.begin(), rules.suppressed.end()),
                           rules.suppressed.end());
    rules.repetition_penalty = options.repetition_penalty;
    rules.no_repeat_ngram = options.no_repeat_ngram;
    return rules;
}

// `options` with the model's own sample_len if they have none, and the prefix cut to the room that
// sample_len leaves in half of the context: its end is kept; of a sample_len above half of the
// context, the excess is cut off the start. Source: openai/whisper decoding.py,
// _get_initial_tokens.
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
      rules_(make_rules(tokenizer, options)),
      beams_{static_cast<size_t>(options.beam_size),
             static_cast<size_t>(
                 std::nearbyint(static_cast<double>(options.beam_size) * options.patience)),
             rules_.eot},
      rows_a_window_(std::max(options.best_of, options.beam_size)),
      caches_(model, windows * rows_a_window_ + (ctx.on_cuda() ? 1 : 0), windows,
              keep_of(windows, options.beam_size), ctx.arena.source()),
      groups_(static_cast<size_t>(windows)) {
    require(beams_.max_finished > 0, "a patience of ", options.patience, " is too low for ",
            options.beam_size, " beams");
    // <|startofprev|>, the longest prompt, then <|startoftranscript|>, language, task, and
    // <|notimestamps|>: what is left is for the prefix, and a token to sample.
    const int64_t room = model.config.n_text_ctx - static_cast<int64_t>(max_prompt()) - 6;
    require(std::ssize(options_.prefix) <= room, "--prefix: too long (got ", options_.prefix.size(),
            " tokens, expected ", room, " at most)");
    require(rules_.suppressed.empty() || rules_.suppressed.back() < model.config.n_vocab,
            "--suppress-tokens: expected ids below ", model.config.n_vocab, ", got ",
            rules_.suppressed.back());
    // What depends on all of a row's text is left to the host.
    if (ctx.on_cuda() && rules_.repetition_penalty == 1 && rules_.no_repeat_ngram == 0)
        gpu_ = std::make_unique<GpuStep>(ctx, model, caches_, rules_, windows * rows_a_window_);
    if (draft)
        drafter_ =
            std::make_unique<Drafter>(*draft, model.config.n_vocab, windows, ctx.arena.source());
}

void WindowDecoder::encode(std::span<const int64_t> slots, Tensor mel, Purpose purpose) {
    encode_windows(ctx_, model_, caches_, slots, mel);
    if (drafter_ && purpose == Purpose::decode) drafter_->encode(ctx_, slots, mel);
}

std::map<std::string, double> WindowDecoder::language_probabilities(int64_t slot) {
    const Scratch scratch(ctx_);
    const int32_t sot[] = {tokenizer_.special().sot};
    Pass pass;
    pass.add(sot, 0, slot * rows_a_window_, slot, model_.config.n_audio_ctx);
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

// A row longer than this is finished. The last token sampled may be one past the context's end: it
// is never decoded.
int32_t WindowDecoder::max_length(const Row& row) const {
    const int32_t context = static_cast<int32_t>(model_.config.n_text_ctx);
    return std::min(context, row.sample_begin + static_cast<int32_t>(options_.sample_len) - 1);
}

int64_t WindowDecoder::cache_row(int64_t slot, size_t row) const {
    return slot * rows_a_window_ + static_cast<int64_t>(row);
}

void WindowDecoder::filter(const Row& row, std::span<float> logits) const {
    apply_rules(rules_, row.sampled(), logits);
    const bool any =
        std::any_of(logits.begin(), logits.end(), [](float logit) { return logit > kForbidden; });
    if (!any) fail_without_token(row);
}

void WindowDecoder::fail_without_token(const Row& row) {
    fail("token ", row.sampled().size() + 1,
         " of a window: all tokens are suppressed; relax --suppress-tokens or --suppress-regex");
}

void WindowDecoder::advance(Group& group) {
    const int32_t length = group.rows.front().length + 1, longest = max_length(group.rows.front());
    const bool over = advance_beams(group.rows, group.candidates, group.finished, beams_);
    if (!over && length <= longest) return follow_parents(group);
    group.rows = beam_results(group.rows, group.finished, beams_);
    for (Row& row : group.rows) row.finished = true;
}

void WindowDecoder::follow_parents(const Group& group) {
    std::vector<int32_t> from, to;
    for (size_t i = 0; i < group.rows.size(); ++i) {
        const size_t parent = static_cast<size_t>(group.rows[i].parent);
        if (parent == i) continue;
        from.push_back(static_cast<int32_t>(cache_row(group.task.slot, parent)));
        to.push_back(static_cast<int32_t>(cache_row(group.task.slot, i)));
    }
    if (to.empty()) return;
    const int64_t length = group.rows.front().length - 1;  // the newest token is not there yet
    const auto ids = [&](std::vector<int32_t>& values) {
        return to_device(ctx_, Tensor(values.data(), Dtype::i32, {std::ssize(values)}));
    };
    const Scratch scratch(ctx_);
    const Tensor from_rows = ids(from), to_rows = ids(to);
    for (std::vector<Tensor>* caches : {&caches_.self.keys, &caches_.self.values})
        for (Tensor& cache : *caches) copy_cache(ctx_, cache, from_rows, to_rows, length);
}

std::vector<WindowDecoder::Done> WindowDecoder::step() {
    Pass pass;
    std::vector<Going> going;
    const int64_t most = ctx_.on_cuda() ? kManyRowsOnGpu - 1 : kFewRowsOnCpu;
    for (Group& group : groups_) {
        if (!group.decoding) continue;
        if (group.beams) group.candidates.assign(group.rows.size(), {});
        for (size_t i = 0; i < group.rows.size(); ++i) {
            const Row& row = group.rows[i];
            if (row.finished) continue;
            Going one{&group, i, 0, {}};
            if (drafter_ && group.task.temperature == 0 && !group.beams)
                one.drafts = drafter_->propose(
                    ctx_, row, rules_,
                    std::min<int64_t>(options_.draft_tokens, max_length(row) - row.length));
            const int64_t rows = 1 + std::ssize(one.drafts);
            if (pass.rows() + rows > most) run(pass, going);
            one.packed = pass.rows();
            std::vector<int32_t> tokens(row.tokens.begin(), row.tokens.begin() + row.length);
            tokens.insert(tokens.end(), one.drafts.begin(), one.drafts.end());
            pass.add(tokens, row.length - 1, cache_row(group.task.slot, i), row.window,
                     model_.config.n_audio_ctx);
            for (int64_t k = 0; k < rows; ++k) pass.want(one.packed + k);
            going.push_back(std::move(one));
        }
    }
    if (!going.empty()) run(pass, going);

    std::vector<Done> done;
    for (Group& group : groups_) {
        if (!group.decoding) continue;
        if (group.beams && !is_done(group)) advance(group);
        if (!is_done(group)) continue;
        done.push_back({group.task.slot, result(group)});
        group.decoding = false;
    }
    return done;
}

// Runs the pass and gives every row its logits; both are empty afterwards.
void WindowDecoder::run(Pass& pass, std::vector<Going>& going) {
    if (gpu_) {
        run_on_gpu(pass, going);
    } else {
        const Scratch scratch(ctx_);
        float* logits = pass.logits(ctx_, model_, caches_).as<float>();
        for (const Going& one : going)
            take_logits(one, logits + one.packed * model_.config.n_vocab);
    }
    pass = Pass{};
    going.clear();
}

// What a row with these tokens sampled asks the GPU for.
RowChoice WindowDecoder::choice_of(std::span<const int32_t> sampled, const Group& group,
                                   Random& random) const {
    RowChoice choice = row_choice(rules_, sampled, static_cast<int32_t>(model_.config.n_vocab));
    choice.temperature = static_cast<float>(group.task.temperature);
    if (choice.temperature > 0) choice.u = random.uniform();
    return choice;
}

void WindowDecoder::run_on_gpu(Pass& pass, const std::vector<Going>& going) {
    std::vector<RowChoice> choices;
    bool beams = false;
    for (const Going& one : going) {
        const Row& row = one.group->rows[one.row];
        std::vector<int32_t> sampled(row.sampled().begin(), row.sampled().end());
        for (size_t k = 0; k <= one.drafts.size(); ++k) {
            choices.push_back(choice_of(sampled, *one.group, one.group->random[one.row]));
            if (k < one.drafts.size()) sampled.push_back(one.drafts[k]);
        }
        beams = beams || one.group->beams;
    }
    const size_t each = beams ? beams_.size + 1 : 1;
    const std::vector<Candidate> best = (*gpu_)(pass, choices, static_cast<int64_t>(each));
    for (const Going& one : going)
        take_candidates(one, std::span(best).subspan(static_cast<size_t>(one.packed) * each,
                                                     (one.drafts.size() + 1) * each));
}

// `logits` (1 + drafts, n_vocab): behind the row's newest token, then behind each draft, which
// count as long as the drafts before were what the row takes itself.
void WindowDecoder::take_logits(const Going& going, float* logits) {
    Group& group = *going.group;
    Row& row = group.rows[going.row];
    const size_t n_vocab = static_cast<size_t>(model_.config.n_vocab);
    for (size_t k = 0; k <= going.drafts.size() && !row.finished; ++k) {
        const std::span<float> own(logits + k * n_vocab, n_vocab);
        filter(row, own);
        if (group.beams) {
            group.candidates[going.row] = best_candidates(own, beams_.size + 1);
            return;
        }
        const int32_t token = choose_token(own, group.task.temperature, group.random[going.row]);
        append_token(row, own, token, rules_.eot, max_length(row));
        if (k < going.drafts.size() && token != going.drafts[k]) return;
    }
}

// The same for candidates that have been through the rules already, as many for each token.
void WindowDecoder::take_candidates(const Going& going, std::span<const Candidate> best) {
    Group& group = *going.group;
    Row& row = group.rows[going.row];
    const size_t each = best.size() / (going.drafts.size() + 1);
    for (size_t k = 0; k <= going.drafts.size() && !row.finished; ++k) {
        const Candidate* own = best.data() + k * each;
        if (own->token < 0) fail_without_token(row);
        if (group.beams) {
            const Candidate* end = std::find_if(
                own, own + each, [](const Candidate& candidate) { return candidate.token < 0; });
            group.candidates[going.row].assign(own, end);
            return;
        }
        append_token(row, own->token, own->logprob, rules_.eot, max_length(row));
        if (k < going.drafts.size() && own->token != going.drafts[k]) return;
    }
}

bool WindowDecoder::is_done(const Group& group) const {
    return std::all_of(group.rows.begin(), group.rows.end(),
                       [](const Row& row) { return row.finished; });
}

DecodingResult WindowDecoder::result(const Group& group) const {
    const Row& row = group.rows[best_row(group.rows, rules_.eot, options_.length_penalty)];
    const std::span<const int32_t> tokens = text_tokens(row, rules_.eot);
    DecodingResult result;
    result.tokens.assign(tokens.begin(), tokens.end());
    result.text = strip(tokenizer_.decode(tokens));
    result.temperature = group.task.temperature;
    result.avg_logprob = row.sum_logprob / static_cast<double>(tokens.size() + 1);
    result.no_speech_prob = row.no_speech_prob;
    result.compression_ratio = compression_ratio(result.text);
    std::vector<int32_t> text;
    for (int32_t id : tokens)
        if (id < rules_.eot) text.push_back(id);
    result.repeats = repeats(text);
    return result;
}

}  // namespace hark::whisper
