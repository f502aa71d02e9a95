#include "gpt/answers/answer_text.h"

#include <algorithm>
#include <utility>

#include "text/partial_marker.h"

namespace hark::gpt {

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
    const size_t certain = partial_marker(held_, stops_);
    const std::string out = held_.substr(0, certain);
    held_.erase(0, certain);
    return out;
}

std::string StopFilter::finish() { return std::exchange(held_, {}); }

const char* name_of(Finish finish) {
    return finish == Finish::end_of_text || finish == Finish::stop ? "stop" : "length";
}

AnswerText::AnswerText(const Tokenizer& tokenizer, AnswerRules rules)
    : tokenizer_(tokenizer),
      rules_(std::move(rules)),
      decoder_(tokenizer.decoder(!rules_.shown.empty())),
      stops_(rules_.stop) {}

std::string AnswerText::text_of(int32_t token) {
    const std::vector<int32_t>& shown = rules_.shown;
    const bool hidden = !shown.empty() && tokenizer_.is_special(token) &&
                        std::find(shown.begin(), shown.end(), token) == shown.end();
    const bool has_text = tokenizer_.has(token) && !hidden;
    return has_text ? decoder_->push(std::span(&token, 1)) : std::string();
}

void AnswerText::add_time() {
    const auto seconds = [](Clock::duration time) {
        return std::chrono::duration<double>(time).count();
    };
    last_ = Clock::now();
    if (times_++ == 0) {
        first_ = last_;
        completion_.seconds_to_first_token = seconds(first_ - begin_);
    } else {
        completion_.tokens_per_second =
            static_cast<double>(times_ - 1) / std::max(seconds(last_ - first_), 1e-9);
    }
}

std::string AnswerText::push(SampledToken sampled) {
    add_time();
    if (std::find(rules_.ends.begin(), rules_.ends.end(), sampled.token) != rules_.ends.end()) {
        end(Finish::end_of_text);
        return "";
    }
    completion_.tokens.push_back(sampled.token);
    completion_.logprobs.push_back(sampled.logprob);
    if (!sampled.likeliest.empty()) completion_.likeliest.push_back(std::move(sampled.likeliest));
    std::string text = stops_.push(utf8_.push(text_of(sampled.token)));
    if (stops_.stopped()) end(Finish::stop);
    completion_.text += text;
    return text;
}

void AnswerText::end(Finish finish) {
    completion_.finish = finish;
    ended_ = true;
}

std::string AnswerText::finish() {
    if (stops_.stopped()) return "";
    std::string text = stops_.push(utf8_.push(decoder_->finish()) + utf8_.finish());
    text += stops_.finish();
    completion_.text += text;
    return text;
}

}  // namespace hark::gpt
