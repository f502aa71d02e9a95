#include "gpt/generate.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "kernels/ragged.h"
#include "kernels/transfer.h"

namespace hark::gpt {

void GenerateOptions::flags(Flags& flags) {
    flags.add("max-tokens", max_tokens, "N tokens to write at most for each prompt", 1, 1 << 30);
    sampler.flags(flags);
    flags.add(
        "seed", seed,
        "N seed of the random draws: the same seed, the same text; of several prompts the I-th, "
        "counted from 0, draws with N + I",
        0, INT64_MAX);
    flags.add_repeated("stop", stop,
                       "STRING that ends the text, not part of it; may be given several times");
}

void GenerateOptions::check() const {
    for (const std::string& text : stop)
        require_usage(!text.empty(), "--stop: expected a string, found an empty one");
}

std::string StopFilter::push(std::string_view text) {
    held_ += text;
    // Of several, the one that was whole first ends the text, and of two that end together the
    // longer: so it makes no difference how the text was cut into pieces.
    std::pair<size_t, size_t> first{held_.npos, held_.npos};  // end, begin
    for (const std::string& stop : stops_)
        if (const size_t begin = held_.find(stop); begin != held_.npos)
            first = std::min(first, {begin + stop.size(), begin});
    stopped_ = first.first != held_.npos;
    if (stopped_) return std::exchange(held_, {}).substr(0, first.second);
    // Keep the longest end that begins a stop string.
    size_t certain = held_.size();
    for (const std::string& stop : stops_) {
        const size_t longest = std::min(stop.size() - 1, held_.size());
        for (size_t begin = held_.size() - longest; begin < certain; ++begin)
            if (stop.starts_with(std::string_view(held_).substr(begin))) certain = begin;
    }
    const std::string out = held_.substr(0, certain);
    held_.erase(0, certain);
    return out;
}

std::string StopFilter::finish() { return std::exchange(held_, {}); }

const char* name_of(Finish finish) {
    if (finish == Finish::end_of_text) return "end_of_text";
    return finish == Finish::stop ? "stop" : "length";
}

Session::Session(const Context& ctx, const Model& model)
    : model_(model),
      cache_(make_cache(model.config, 1, model.precision.cache, ctx.arena.source())),
      logits_(static_cast<size_t>(model.config.n_vocab)) {}

std::span<float> Session::feed(Context& ctx, std::span<const int32_t> tokens) {
    const auto n = static_cast<int64_t>(tokens.size());
    require(n > 0 && n <= room(), "the model's context has room for ", room(), " tokens, found ",
            n);
    std::vector<int32_t> position(tokens.size());
    std::iota(position.begin(), position.end(), static_cast<int32_t>(length_));
    int32_t last = static_cast<int32_t>(n - 1);
    length_ += n;
    HostRagged rows;
    rows.add(0, n, length_);
    const Scratch scratch(ctx);
    const auto ids = [&](const int32_t* data, int64_t count) {
        return to_device(ctx, Tensor(const_cast<int32_t*>(data), Dtype::i32, {count}));
    };
    const Tensor logits = to_host(ctx, model_(ctx, ids(tokens.data(), n), ids(position.data(), n),
                                              to_device(ctx, rows.view()), ids(&last, 1), cache_));
    std::copy_n(logits.as<float>(), logits_.size(), logits_.begin());
    return logits_;
}

Generator::Generator(const Context& ctx, const Model& model, const Bpe& bpe,
                     GenerateOptions options)
    : bpe_(bpe),
      options_(std::move(options)),
      session_(ctx, model),
      n_positions_(model.config.n_positions),
      eos_(model.config.eos_token_ids) {
    require(bpe.vocab_size() <= model.config.n_vocab, "the tokenizer has ", bpe.vocab_size(),
            " tokens, the model only ", model.config.n_vocab);
    if (const auto end = bpe.special("<|endoftext|>"); end && eos_.empty()) eos_.push_back(*end);
}

bool Generator::ends_text(int32_t token) const {
    return std::find(eos_.begin(), eos_.end(), token) != eos_.end();
}

std::vector<int32_t> Generator::fitted(std::vector<int32_t> ids, Generated& result) const {
    if (static_cast<int64_t>(ids.size()) <= n_positions_) return ids;
    const int64_t kept = n_positions_ - std::min(options_.max_tokens, n_positions_ / 2);
    result.dropped = static_cast<int64_t>(ids.size()) - kept;
    ids.erase(ids.begin(), ids.end() - kept);
    return ids;
}

Generated Generator::operator()(Context& ctx, std::string_view prompt, uint64_t index,
                                const Listener& listener) {
    Generated result;
    std::vector<int32_t> history = fitted(bpe_.encode(prompt), result);
    if (listener.begin) listener.begin(result.dropped);
    Random random(static_cast<uint64_t>(options_.seed) + index);
    Utf8Stream utf8;
    StopFilter stops(options_.stop);
    const auto say = [&](const std::string& text) {
        if (text.empty()) return;
        result.text += text;
        if (listener.text) listener.text(text);
    };
    session_.clear();
    std::span<const int32_t> fresh = history;
    std::vector<float> filtered;
    while (true) {
        // Ids from the tokenizer's end on are padding of the model's table.
        const std::span<const float> logits =
            session_.feed(ctx, fresh).first(static_cast<size_t>(bpe_.vocab_size()));
        filtered.assign(logits.begin(), logits.end());
        const int32_t token = sample(filtered, history, options_.sampler, random);
        if (ends_text(token)) {
            result.finish = Finish::end_of_text;
            break;
        }
        result.tokens.push_back(token);
        result.logprobs.push_back(log_probability(logits, token));
        history.push_back(token);
        fresh = std::span<const int32_t>(history).last(1);
        say(stops.push(utf8.push(bpe_.decode(fresh))));
        if (stops.stopped()) {
            result.finish = Finish::stop;
            return result;
        }
        if (static_cast<int64_t>(result.tokens.size()) >= options_.max_tokens) break;
        if (session_.room() == 0) {
            result.finish = Finish::context_full;
            break;
        }
    }
    say(stops.push(utf8.finish()));
    say(stops.finish());
    return result;
}

}  // namespace hark::gpt
