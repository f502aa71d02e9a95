// Writes the answers to prompts: as text while it is generated, or as JSON lines.
#pragma once

#include <string_view>

#include "core/cli/cli.h"
#include "core/cli/stats_table.h"
#include "core/files/io.h"
#include "gpt/answers/answer_parts.h"

namespace hark::gpt {

struct AnswerOptions {
    bool jsonl = false;     // an object per answer, else its text
    bool one_line = false;  // text: an answer is one line, line ends inside it are spaces
    bool echo = false;      // text: the prompt before its answer
    bool drafts = false;    // --stats shows guessed tokens too
    AnswerPartsOptions parts;
};

class AnswerWriter {
  public:
    // The references must outlive it.
    AnswerWriter(const AnswerOptions& options, const Tokenizer& tokenizer, Console& console,
                 ByteWriter& out);

    // Per answer: begin(), text() per piece of what the model generates, then end().
    void begin(const Prompt& prompt);
    void text(std::string_view piece);
    void end(const Prompt& prompt, int64_t sample, const Completion& answer,
             const AnswerParts& parts, const GenerateOptions& options);
    // Instead of answers: what is wrong with the prompt, or with the answer that has begun.
    void fail(const Prompt& prompt);
    // Instead of an answer: what the model would read.
    void show(const Prompt& prompt, const std::string& read);
    const AnswerOptions& options() const { return options_; }

  private:
    void write(const ReasoningSplitter::Parts& parts);
    void write_reasoning(std::string_view piece);
    void write_text(std::string_view piece);
    void end_reasoning();
    void end_text(const Prompt& prompt);
    void say(const Prompt& prompt);

    AnswerOptions options_;
    const Tokenizer& tokenizer_;
    Console& console_;
    ByteWriter& out_;
    StatsTable stats_;
    // Of the answer that is written:
    ReasoningSplitter splitter_{nullptr, false};
    bool at_line_start_ = false;
    bool has_text_ = false;
    bool in_reasoning_ = false;  // stderr is within a line of it
};

}  // namespace hark::gpt
