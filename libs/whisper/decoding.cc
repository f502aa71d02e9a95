#include "whisper/decoding.h"

#include <zlib.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "kernels/distribution.h"
#include "kernels/ragged.h"
#include "text/utf8.h"

namespace hark::whisper {
namespace {

constexpr double kMaxInitialTimestamp = 1.0;  // seconds
constexpr double kTimestampStep = 0.02;       // seconds

Rules make_rules(const Tokenizer& tokenizer, const DecodingOptions& options) {
    const SpecialTokens& special = tokenizer.special();
    Rules rules;
    rules.eot = special.eot;
    rules.no_timestamps = special.no_timestamps;
    rules.timestamp_begin = special.timestamp_begin;
    rules.timestamps = options.timestamps;
    rules.max_initial_timestamp =
        static_cast<int32_t>(std::lround(kMaxInitialTimestamp / kTimestampStep));
    rules.blank = tokenizer.encode(" ");
    rules.blank.push_back(special.eot);
    rules.suppressed = tokenizer.non_speech_tokens();
    for (int32_t id : {special.transcribe, special.translate, special.sot, special.sot_prev,
                       special.sot_lm, special.no_speech})
        if (id >= 0) rules.suppressed.push_back(id);
    std::sort(rules.suppressed.begin(), rules.suppressed.end());
    return rules;
}

std::unique_ptr<KeyValues> key_values(const Model& model, int64_t slots, int64_t capacity) {
    const Config& c = model.config;
    return std::make_unique<KeyValues>(c.n_text_layer, slots, c.n_text_head, capacity,
                                       c.n_text_state / c.n_text_head, model.precision.cache);
}

Tensor ints(std::vector<int32_t>& values) {
    return Tensor(values.data(), Dtype::i32, {static_cast<int64_t>(values.size())});
}

}  // namespace

// Rows are packed in the order they are added.
struct WindowDecoder::Step {
    std::vector<int32_t> tokens, position, wanted;
    HostRagged rows, listens;

    // The tokens [begin, length) of a row whose cache slot holds the first `begin`.
    void add(const Row& row, int64_t slot, int32_t begin, int64_t n_audio_ctx) {
        for (int32_t i = begin; i < row.length; ++i) {
            tokens.push_back(row.tokens[i]);
            position.push_back(i);
        }
        rows.add(slot, row.length - begin, row.length);
        listens.add(row.window, row.length - begin, n_audio_ctx);
    }
    void want(int64_t packed_row) { wanted.push_back(static_cast<int32_t>(packed_row)); }
};

WindowDecoder::WindowDecoder(Context& ctx, const Model& model, const Tokenizer& tokenizer,
                             const DecodingOptions& options, int64_t windows)
    : ctx_(ctx),
      model_(model),
      tokenizer_(tokenizer),
      options_(options),
      rules_(make_rules(tokenizer, options)),
      cross_(key_values(model, windows, model.config.n_audio_ctx)) {}

void WindowDecoder::encode(Tensor mel) {
    Arena::Scope scope(ctx_.arena);
    require(mel.dim(0) <= cross_->slots, "encode: ", mel.dim(0), " windows, ", cross_->slots,
            " slots");
    const HostRagged windows = HostRagged::equal(mel.dim(0), model_.config.n_audio_ctx);
    Tensor encoded = model_.encoder(ctx_, mel);  // (B * n_audio_ctx, C)
    model_.decoder.remember(ctx_, encoded, *cross_, windows.view());
}

Tensor WindowDecoder::forward(const Step& step) {
    std::vector<int32_t> tokens = step.tokens, position = step.position, wanted = step.wanted;
    return model_.decoder(ctx_, ints(tokens), ints(position), step.rows.view(), step.listens.view(),
                          ints(wanted), *self_, *cross_);
}

Row WindowDecoder::first_row(const WindowTask& task) const {
    const SpecialTokens& special = tokenizer_.special();
    const size_t longest = static_cast<size_t>(model_.config.n_text_ctx / 2 - 1);
    std::vector<int32_t> tokens;
    if (!task.prompt.empty()) {
        tokens.push_back(special.sot_prev);
        const size_t skipped = task.prompt.size() > longest ? task.prompt.size() - longest : 0;
        tokens.insert(tokens.end(), task.prompt.begin() + static_cast<ptrdiff_t>(skipped),
                      task.prompt.end());
    }
    Row row;
    row.window = static_cast<int32_t>(task.slot);
    row.sot_index = static_cast<int32_t>(tokens.size());
    const std::vector<int32_t> sot = tokenizer_.sot_sequence(task.language, options_.task);
    tokens.insert(tokens.end(), sot.begin(), sot.end());
    if (!options_.timestamps) tokens.push_back(special.no_timestamps);
    std::copy(tokens.begin(), tokens.end(), row.tokens.begin());
    row.length = row.sample_begin = static_cast<int32_t>(tokens.size());
    return row;
}

std::map<std::string, double> WindowDecoder::language_probabilities(int64_t slot) {
    Arena::Scope scope(ctx_.arena);
    if (!self_) self_ = key_values(model_, 1, model_.config.n_text_ctx);
    Row row;
    row.window = static_cast<int32_t>(slot);
    row.tokens[row.length++] = tokenizer_.special().sot;
    Step step;
    step.add(row, 0, 0, model_.config.n_audio_ctx);
    step.want(0);
    const float* logits = forward(step).as<float>();
    std::vector<float> of_languages;
    for (const auto& [code, id] : tokenizer_.special().languages)
        of_languages.push_back(logits[id]);
    const double total = log_sum_exp(of_languages);
    std::map<std::string, double> probabilities;
    for (const auto& [code, id] : tokenizer_.special().languages)
        probabilities[code] = std::exp(logits[id] - total);
    return probabilities;
}

// The rows of one window stand side by side; `first` is where each window's begin, and their end.
struct WindowDecoder::Batch {
    std::vector<Row> rows;
    std::vector<Random> random;
    std::vector<double> temperature;
    std::vector<size_t> first{0};

    size_t windows() const { return first.size() - 1; }
    std::span<const Row> group(size_t window) const {
        return {rows.data() + first[window], first[window + 1] - first[window]};
    }
};

WindowDecoder::Batch WindowDecoder::make_batch(std::span<const WindowTask> tasks) const {
    Batch batch;
    for (const WindowTask& task : tasks) {
        const size_t n = task.temperature > 0 ? static_cast<size_t>(options_.best_of) : 1;
        Row row = first_row(task);
        row.parent = static_cast<int32_t>(batch.first.back());
        Random seeds(task.seed);
        for (size_t i = 0; i < n; ++i) {
            batch.rows.push_back(row);
            batch.random.emplace_back(seeds.next());
            batch.temperature.push_back(task.temperature);
        }
        batch.first.push_back(batch.rows.size());
    }
    return batch;
}

void WindowDecoder::read_prompts(Batch& batch) {
    Arena::Scope scope(ctx_.arena);
    const size_t n_vocab = static_cast<size_t>(model_.config.n_vocab);
    Step step;
    for (size_t window = 0; window < batch.windows(); ++window) {
        const Row& row = batch.rows[batch.first[window]];
        const int64_t begin = step.rows.rows();
        step.add(row, static_cast<int64_t>(batch.first[window]), 0, model_.config.n_audio_ctx);
        step.want(begin + row.sot_index);
        step.want(step.rows.rows() - 1);
    }
    const float* logits = forward(step).as<float>();
    copy_to_siblings(batch);
    std::vector<float> own(n_vocab);
    for (size_t window = 0; window < batch.windows(); ++window) {
        const std::span<const float> at_sot(logits + 2 * window * n_vocab, n_vocab);
        const std::span<const float> at_end(logits + (2 * window + 1) * n_vocab, n_vocab);
        const int32_t id = tokenizer_.special().no_speech;
        const float no_speech_prob =
            id < 0 ? 0.0f : static_cast<float>(std::exp(at_sot[id] - log_sum_exp(at_sot)));
        for (size_t i = batch.first[window]; i < batch.first[window + 1]; ++i) {
            batch.rows[i].no_speech_prob = no_speech_prob;
            std::copy(at_end.begin(), at_end.end(), own.begin());
            sample(batch, i, own);
        }
    }
}

void WindowDecoder::copy_to_siblings(const Batch& batch) {
    std::vector<int32_t> from, to;
    int64_t length = 0;
    for (size_t i = 0; i < batch.rows.size(); ++i) {
        if (batch.rows[i].parent == static_cast<int32_t>(i)) continue;
        from.push_back(batch.rows[i].parent);
        to.push_back(static_cast<int32_t>(i));
        length = std::max<int64_t>(length, batch.rows[i].sample_begin);
    }
    if (to.empty()) return;
    for (std::vector<Tensor>* caches : {&self_->keys, &self_->values})
        for (Tensor& cache : *caches) copy_cache(ctx_, cache, ints(from), ints(to), length);
}

bool WindowDecoder::advance(Batch& batch) {
    Arena::Scope scope(ctx_.arena);
    const size_t n_vocab = static_cast<size_t>(model_.config.n_vocab);
    Step step;
    std::vector<size_t> going;
    for (size_t i = 0; i < batch.rows.size(); ++i) {
        const Row& row = batch.rows[i];
        if (row.finished) continue;
        step.add(row, static_cast<int64_t>(i), row.length - 1, model_.config.n_audio_ctx);
        step.want(static_cast<int64_t>(going.size()));
        going.push_back(i);
    }
    if (going.empty()) return false;
    float* logits = forward(step).as<float>();
    for (size_t k = 0; k < going.size(); ++k)
        sample(batch, going[k], {logits + k * n_vocab, n_vocab});
    return true;
}

void WindowDecoder::sample(Batch& batch, size_t i, std::span<float> logits) const {
    constexpr int32_t kSampleLength = kMaxTextContext / 2;
    Row& row = batch.rows[i];
    apply_rules(rules_, row.sampled(), logits);
    const int32_t token = choose_token(logits, batch.temperature[i], batch.random[i]);
    const int32_t context = static_cast<int32_t>(model_.config.n_text_ctx);
    append_token(row, logits, token, rules_.eot,
                 std::min(context, row.sample_begin + kSampleLength - 1));
}

std::vector<DecodingResult> WindowDecoder::decode(std::span<const WindowTask> tasks) {
    Batch batch = make_batch(tasks);
    const int64_t rows = static_cast<int64_t>(batch.rows.size());
    if (!self_ || self_->slots < rows) self_ = key_values(model_, rows, model_.config.n_text_ctx);
    read_prompts(batch);
    while (advance(batch)) {
    }
    std::vector<DecodingResult> results;
    for (size_t window = 0; window < batch.windows(); ++window)
        results.push_back(result(batch.group(window), tasks[window].temperature));
    return results;
}

DecodingResult WindowDecoder::result(std::span<const Row> group, double temperature) const {
    const Row& row = group[best_row(group, rules_.eot)];
    const std::span<const int32_t> tokens = text_tokens(row, rules_.eot);
    DecodingResult result;
    result.tokens.assign(tokens.begin(), tokens.end());
    result.text = strip(tokenizer_.decode(tokens));
    result.temperature = temperature;
    result.avg_logprob = row.sum_logprob / static_cast<double>(tokens.size() + 1);
    result.no_speech_prob = row.no_speech_prob;
    result.compression_ratio = compression_ratio(result.text);
    return result;
}

double compression_ratio(const std::string& text) {
    uLongf bytes = compressBound(text.size());
    std::vector<Bytef> packed(bytes);
    const int status = compress2(packed.data(), &bytes, reinterpret_cast<const Bytef*>(text.data()),
                                 text.size(), Z_DEFAULT_COMPRESSION);
    require(status == Z_OK, "zlib: compression failed with status ", status);
    return static_cast<double>(text.size()) / static_cast<double>(bytes);
}

std::string strip(const std::string& text) {
    // Python's white space: str.isspace()
    const auto is_space = [](char32_t c) {
        return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 ||
               c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 ||
               c == 0x202f || c == 0x205f || c == 0x3000;
    };
    size_t begin = text.size(), end = 0;
    for (size_t at = 0; at < text.size();) {
        const size_t start = at;
        if (is_space(next_code_point(text, at))) continue;
        begin = std::min(begin, start);
        end = at;
    }
    return begin < end ? text.substr(begin, end - begin) : "";
}

}  // namespace hark::whisper
