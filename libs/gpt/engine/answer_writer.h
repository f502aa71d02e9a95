// Writes the answers to prompts: as text while it is generated, or as JSON lines.
#pragma once

#include <string_view>

#include "core/cli.h"
#include "core/io.h"
#include "gpt/engine/prompts.h"

namespace hark::gpt {

struct AnswerOptions {
    bool jsonl = false;     // an object per answer, else its text
    bool one_line = false;  // text: an answer is one line, line ends inside it are spaces
    bool echo = false;      // text: the prompt before its answer
    bool logprobs = false;  // jsonl: the log probability of each token
};

class AnswerWriter {
  public:
    // `console` and `out` must outlive it.
    AnswerWriter(const AnswerOptions& options, Console& console, ByteWriter& out)
        : options_(options), console_(console), out_(out) {}

    // Per prompt: begin() with the number of dropped prompt tokens, text() per piece of the answer,
    // then end().
    void begin(const Prompt& prompt, int64_t dropped);
    void text(std::string_view piece);
    void end(const Prompt& prompt, const Completion& answer);
    // Instead of an answer: what the model would read.
    void show(const Prompt& prompt, const std::string& read);

  private:
    AnswerOptions options_;
    Console& console_;
    ByteWriter& out_;
    bool at_line_start_ = false;
};

}  // namespace hark::gpt
