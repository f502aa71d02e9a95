#include "gpt/engine/generate.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "kernels/runtime/gpu_limits.h"

namespace hark::gpt {

void GenerateOptions::flags(Flags& flags) {
    flags.section("Sampling");
    flags.add("max-tokens", max_tokens, "N most tokens per answer", 1, 1 << 30).essential();
    sampler.flags(flags);
    flags.add("seed", seed, "N seed of the random draws", 0, INT64_MAX)
        .essential()
        .details("The same seed gives the same text. Prompt I, counted from 0, draws with N + I.");
    flags.add_repeated("stop", stop, "STRING text that ends an answer, and is not part of it")
        .details("May be given several times.");
}

void GenerateOptions::check() const {
    for (const std::string& text : stop)
        require_usage(!text.empty(), "--stop: expected a string, got an empty text");
}

std::string StopFilter::push(std::string_view text) {
    held_ += text;
    // The stop string that ends first wins; of two that end together, the longer. So the result
    // does not depend on how the text is cut into pieces.
    std::pair<size_t, size_t> first{held_.npos, held_.npos};  // end, begin
    for (const std::string& stop : stops_)
        if (const size_t begin = held_.find(stop); begin != held_.npos)
            first = std::min(first, {begin + stop.size(), begin});
    stopped_ = first.first != held_.npos;
    if (stopped_) return std::exchange(held_, {}).substr(0, first.second);
    // Hold back the longest end that begins a stop string.
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

Generator::Generator(Context& ctx, const Model& model, const Tokenizer& tokenizer,
                     GenerateOptions options)
    : tokenizer_(tokenizer),
      options_(std::move(options)),
      n_positions_(model.config.n_positions),
      eos_(model.config.eos_token_ids) {
    check_head(ctx, model.config.head_dim, kMostHeadChannels);
    require(tokenizer.vocab_size() <= model.config.n_vocab, "the tokenizer has ",
            tokenizer.vocab_size(), " tokens, the model only ", model.config.n_vocab);
    const std::vector<int32_t>& ends = tokenizer.special_ids().ends;
    eos_.insert(eos_.end(), ends.begin(), ends.end());
    if (const auto end = tokenizer.end_of_text(); end && eos_.empty()) eos_.push_back(*end);
    // Ids from vocab_size() on are padding of the model's table.
    stream_ = make_decode_stream(ctx, model, tokenizer.vocab_size(), options_.sampler);
}

bool Generator::ends_text(int32_t token) const {
    return std::find(eos_.begin(), eos_.end(), token) != eos_.end();
}

std::vector<int32_t> Generator::truncate_prompt(std::vector<int32_t> ids,
                                                Completion& result) const {
    if (static_cast<int64_t>(ids.size()) <= n_positions_) return ids;
    const int64_t kept = n_positions_ - std::min(options_.max_tokens, n_positions_ / 2);
    result.dropped = static_cast<int64_t>(ids.size()) - kept;
    const auto bos = tokenizer_.special_ids().bos;
    const bool keeps_bos = tokenizer_.special_ids().add_bos && bos && ids.front() == *bos;
    ids.erase(ids.begin(), ids.end() - kept);
    if (keeps_bos) {
        ids.front() = *bos;
        ++result.dropped;
    }
    return ids;
}

Completion Generator::operator()(std::string_view prompt, uint64_t index,
                                 const Callbacks& callbacks) {
    return (*this)(tokenizer_.encode(prompt, {.add_specials = true}), index, callbacks);
}

Completion Generator::operator()(std::vector<int32_t> prompt, uint64_t index,
                                 const Callbacks& callbacks) {
    Completion result;
    require(!prompt.empty(), "the prompt has no tokens");
    const std::vector<int32_t> ids = truncate_prompt(std::move(prompt), result);
    if (callbacks.begin) callbacks.begin(result.dropped);
    Utf8Stream utf8;
    const std::unique_ptr<Tokenizer::Decoder> decoder = tokenizer_.decoder(false);
    const auto text_of = [&](int32_t token) {
        return tokenizer_.has(token) ? decoder->push(std::span(&token, 1)) : std::string();
    };
    StopFilter stops(options_.stop);
    const auto say = [&](const std::string& text) {
        if (text.empty()) return;
        result.text += text;
        if (callbacks.text) callbacks.text(text);
    };
    // One more than the free positions: the last position's logits give a token too.
    const int64_t room = n_positions_ - std::ssize(ids) + 1;
    const int64_t most = std::min(options_.max_tokens, room);
    result.finish = options_.max_tokens <= room ? Finish::length : Finish::context_full;
    stream_->begin(ids, Random(static_cast<uint64_t>(options_.seed) + index), most);
    while (std::ssize(result.tokens) < most) {
        const auto [token, logprob] = stream_->next();
        if (ends_text(token)) {
            result.finish = Finish::end_of_text;
            break;
        }
        result.tokens.push_back(token);
        result.logprobs.push_back(logprob);
        say(stops.push(utf8.push(text_of(token))));
        if (stops.stopped()) {
            result.finish = Finish::stop;
            return result;
        }
    }
    say(stops.push(utf8.push(decoder->finish()) + utf8.finish()));
    say(stops.finish());
    return result;
}

}  // namespace hark::gpt
