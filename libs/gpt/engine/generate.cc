#include "gpt/engine/generate.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/ending_signal.h"
#include "core/error.h"
#include "core/random.h"
#include "gpt/engine/prompt_cache.h"
#include "kernels/runtime/gpu_limits.h"

namespace hark::gpt {
namespace {

constexpr int64_t kMaxTokens = 200;  // if the options do not say

}  // namespace

Precision GenerateOptions::with_cache(Precision precision) const {
    if (kv_dtype != "auto") precision.cache = dtype_named(kv_dtype);
    return precision;
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
    return finish == Finish::end_of_text || finish == Finish::stop ? "stop" : "length";
}

uint64_t sample_seed(uint64_t seed, int64_t sample) {
    return sample == 0 ? seed : split_mix(~seed, static_cast<uint64_t>(sample));
}

// The times of an answer's tokens.
class Generator::Times {
  public:
    void add_token() {
        last_ = Clock::now();
        if (tokens_++ == 0) first_ = last_;
    }
    void write(Completion& result) const {
        const auto seconds = [](Clock::duration time) {
            return std::chrono::duration<double>(time).count();
        };
        if (tokens_ > 0) result.seconds_to_first_token = seconds(first_ - begin_);
        if (tokens_ > 1)
            result.tokens_per_second =
                static_cast<double>(tokens_ - 1) / std::max(seconds(last_ - first_), 1e-9);
    }

  private:
    using Clock = std::chrono::steady_clock;

    Clock::time_point begin_ = Clock::now(), first_, last_;
    int64_t tokens_ = 0;
};

Generator::Generator(Context& ctx, const Model& model, const Tokenizer& tokenizer,
                     GenerateOptions options)
    : ctx_(ctx),
      model_(model),
      tokenizer_(tokenizer),
      options_(std::move(options)),
      context_(options_.context > 0 ? options_.context : model.config.n_positions),
      eos_(model.config.eos_token_ids) {
    check_head(ctx, model.config.head_dim, kMostHeadChannels);
    require(tokenizer.vocab_size() <= model.config.n_vocab, "the tokenizer has ",
            tokenizer.vocab_size(), " tokens, the model only ", model.config.n_vocab);
    require(options_.max_tokens <= context_, "--max-tokens ", options_.max_tokens,
            " leaves no room for a prompt in the context of ", context_);
    const std::vector<int32_t>& ends = tokenizer.special_ids().ends;
    eos_.insert(eos_.end(), ends.begin(), ends.end());
    if (const auto end = tokenizer.end_of_text(); end && eos_.empty()) eos_.push_back(*end);
    if (const std::string& cache = options_.prompt_cache; !cache.empty()) {
        cache_is_read_ = std::filesystem::exists(cache);
        if (!cache_is_read_) new_cache_ = std::make_unique<AtomicFile>(cache);
    }
    prepare(options_);
    if (!cache_is_read_) return;
    read_prompt_cache(ctx_, stream_->sequence(), options_.prompt_cache);
    cached_ = stream_->sequence().tokens();
}

void Generator::take_from_cache(std::span<const int32_t> prompt) {
    Sequence& sequence = stream_->sequence();
    const auto shared = [&](const std::vector<int32_t>& tokens) {
        return std::mismatch(tokens.begin(), tokens.end(), prompt.begin(), prompt.end()).first -
               tokens.begin();
    };
    if (shared(cached_) > shared(sequence.tokens()))
        read_prompt_cache(ctx_, sequence, options_.prompt_cache);
}

void Generator::save_prompt() {
    if (!new_cache_) return;
    ByteWriter out(new_cache_->fd(), new_cache_->name());
    write_prompt_cache(ctx_, stream_->sequence(), out);
    new_cache_->commit();
    new_cache_.reset();
}

void Generator::prepare(const GenerateOptions& options) {
    SamplerOptions sampler = options.sampler;
    const int64_t likeliest = options.logprobs.value_or(0);
    for (const auto& [id, value] : sampler.logit_bias)
        require(id < tokenizer_.vocab_size(), "logit bias: expected tokens below ",
                tokenizer_.vocab_size(), ", found ", id);
    if (sampler.dry.multiplier > 0) sampler.dry.breakers = loop_breakers();
    if (stream_ && stream_sampler_ == sampler && stream_likeliest_ == likeliest) return;
    stream_.reset();  // the memory of its cache
    // Ids from vocab_size() on are padding of the model's table.
    stream_ =
        make_decode_stream(ctx_, model_, tokenizer_.vocab_size(), sampler, context_, likeliest);
    stream_sampler_ = std::move(sampler);
    stream_likeliest_ = likeliest;
}

const std::vector<int32_t>& Generator::loop_breakers() {
    if (breakers_) return *breakers_;
    breakers_.emplace();
    for (int32_t id = 0; id < tokenizer_.vocab_size(); ++id)
        if (tokenizer_.has(id) &&
            (tokenizer_.is_special(id) ||
             tokenizer_.bytes_of(id).find_first_of("\n:\"*") != std::string::npos))
            breakers_->push_back(id);
    return *breakers_;
}

bool Generator::ends_text(int32_t token) const {
    return std::find(eos_.begin(), eos_.end(), token) != eos_.end();
}

std::string Generator::why_too_long(size_t tokens, int64_t max_tokens) const {
    const auto n = static_cast<int64_t>(tokens);
    // The last token needs no place: the model does not read it.
    const int64_t needed = n + std::max<int64_t>(max_tokens, 1) - 1;
    if (needed <= context_) return "";
    const bool asked = max_tokens > 0;
    const std::string answer = asked ? concat(" and an answer of ", max_tokens) : "";
    return concat("the prompt's ", n, " tokens", answer, " do not fit the context (got ", needed,
                  asked ? " without the last one" : "", ", expected at most ", context_,
                  "); shorten the prompt", asked ? " or --max-tokens" : "");
}

Completion Generator::operator()(std::string_view prompt, uint64_t index, const OnText& on_text) {
    GenerateOptions options = options_;
    options.seed = static_cast<int64_t>(static_cast<uint64_t>(options.seed) + index);
    Completion result =
        (*this)(tokenizer_.encode(prompt, {.add_specials = true}), options, on_text);
    require(result.error.empty(), result.error);
    return result;
}

Completion Generator::operator()(const std::vector<int32_t>& ids, const GenerateOptions& options,
                                 const OnText& on_text) {
    Completion result;
    Times times;
    require(!ids.empty(), "the prompt has no tokens");
    if (const std::string why = why_too_long(ids.size(), options.max_tokens); !why.empty())
        fail(why);
    result.prompt_tokens = std::ssize(ids);
    Utf8Stream utf8;
    const std::vector<int32_t>& shown = options.shown;
    const std::unique_ptr<Tokenizer::Decoder> decoder = tokenizer_.decoder(!shown.empty());
    const auto text_of = [&](int32_t token) {
        const bool hidden = !shown.empty() && tokenizer_.is_special(token) &&
                            std::find(shown.begin(), shown.end(), token) == shown.end();
        const bool has_text = tokenizer_.has(token) && !hidden;
        return has_text ? decoder->push(std::span(&token, 1)) : std::string();
    };
    StopFilter stops(options.stop);
    const auto say = [&](const std::string& text) {
        if (text.empty()) return;
        result.text += text;
        if (on_text) on_text(text);
    };
    // One more than the free positions: the last position's logits give a token too.
    const int64_t room = context_ - std::ssize(ids) + 1;
    const int64_t wanted = options.max_tokens > 0 ? options.max_tokens : kMaxTokens;
    const int64_t most = std::min(wanted, room);
    result.finish = wanted <= room ? Finish::length : Finish::context_full;
    // What the model throws is the answer's error; what a callback throws passes.
    const auto runs = [&](const auto& step) {
        try {
            step();
        } catch (const Error& why) {
            result.error = why.what();
        }
        return result.error.empty();
    };
    SampledToken sampled;
    bool goes_on = runs([&] {
        prepare(options);
        take_from_cache(ids);
        result.cached_tokens = stream_->begin(ids, static_cast<uint64_t>(options.seed), most, true);
    });
    while (goes_on && std::ssize(result.tokens) < most) {
        goes_on = runs([&] { sampled = stream_->next(); });
        if (!goes_on) break;
        times.add_token();
        if (result.tokens.empty()) save_prompt();
        if (!options.ignore_eos && ends_text(sampled.token)) {
            result.finish = Finish::end_of_text;
            break;
        }
        result.tokens.push_back(sampled.token);
        result.logprobs.push_back(sampled.logprob);
        if (!sampled.likeliest.empty()) result.likeliest.push_back(std::move(sampled.likeliest));
        say(stops.push(utf8.push(text_of(sampled.token))));
        if (stops.stopped() || interrupted()) {
            result.finish = Finish::stop;
            break;
        }
    }
    if (!stops.stopped()) {
        say(stops.push(utf8.push(decoder->finish()) + utf8.finish()));
        say(stops.finish());
    }
    times.write(result);
    return result;
}

}  // namespace hark::gpt
