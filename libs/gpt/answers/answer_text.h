// An answer, from its tokens: its text, where it ends, and why.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpt/sampling/sampled_token.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace hark::gpt {

// Holds text back while it may be the beginning of a stop string.
class StopFilter {
  public:
    explicit StopFilter(std::vector<std::string> stops) : stops_(std::move(stops)) {}

    // Adds text; returns what is certain by now. After a complete stop string stopped() is true,
    // and the returned text ends before that string.
    std::string push(std::string_view text);
    // Returns the text that is still held back.
    std::string finish();
    bool stopped() const { return stopped_; }

  private:
    std::vector<std::string> stops_;
    std::string held_;
    bool stopped_ = false;
};

// Why a text ended.
enum class Finish {
    end_of_text,   // the model's end-of-text token
    stop,          // a stop string, or Ctrl-C (core/cli/ending_signal.h)
    length,        // max_tokens
    context_full,  // the context is full
};
// OpenAI's name: "stop" for the first two, "length" for the others.
const char* name_of(Finish finish);

struct Completion {
    std::string text;              // valid UTF-8
    std::vector<int32_t> tokens;   // all that were generated, those of a stop string included
    std::vector<double> logprobs;  // per token: natural, under the model, before any filter
    std::vector<std::vector<TokenLogprob>> likeliest;  // per token, if they are wanted
    Finish finish = Finish::length;
    std::string error;  // what ended it; empty: nothing did
    int64_t prompt_tokens = 0;
    int64_t cached_tokens = 0;  // of them, those that were not computed for this text
    int64_t drafts = 0, accepted = 0;  // tokens that were guessed; those that were right
    std::chrono::steady_clock::time_point begun;  // in the engine, when it had waited
    double seconds_to_first_token = 0;
    double tokens_per_second = 0;  // after the first one; 0 if there is no second one
};

// What ends an answer, and what is shown of it.
struct AnswerRules {
    std::vector<std::string> stop;  // strings that end the text and are not part of it
    std::vector<int32_t> ends;      // tokens that end it; none: it has its longest length
    std::vector<int32_t> shown;     // special tokens that are in the text; the others are not
};

class AnswerText {
  public:
    // Its time begins now. Keeps the reference.
    AnswerText(const Tokenizer& tokenizer, AnswerRules rules);

    // Adds the next token. Returns the text that is certain by now: whole code points.
    std::string push(SampledToken sampled);
    // Whether the answer has ended by its tokens.
    bool has_ended() const { return ended_; }
    // Ends it for another reason.
    void end(Finish finish);
    // The text that was still held back; once, at the end.
    std::string finish();
    // The answer so far.
    Completion& completion() { return completion_; }

  private:
    using Clock = std::chrono::steady_clock;

    std::string text_of(int32_t token);
    void add_time();

    const Tokenizer& tokenizer_;
    AnswerRules rules_;
    std::unique_ptr<Tokenizer::Decoder> decoder_;
    Utf8Stream utf8_;
    StopFilter stops_;
    Completion completion_;
    bool ended_ = false;
    Clock::time_point begin_ = Clock::now(), first_, last_;
    int64_t times_ = 0;  // tokens so far, one that ends the text included
};

}  // namespace hark::gpt
