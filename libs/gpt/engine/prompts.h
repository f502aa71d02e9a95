// Prompts as they come on a stream, and answers as lines of JSON.
#pragma once

#include <optional>
#include <string>

#include "core/io.h"
#include "gpt/engine/generate.h"

namespace hark::gpt {

enum class PromptFormat { whole, lines, jsonl };

struct Prompt {
    std::string text;              // empty: nothing is to be generated
    std::string error;             // where the line holds no prompt: what is wrong with it
    std::string passed_on = "{}";  // of a JSON line: its id, source, start and end, as JSON
};

// Reads prompts one at a time, each as soon as its line has come.
//   whole: all of the stream is one prompt, without the line ends at its end
//   lines: every line is one, an empty line an empty one
//   jsonl: every line is an object with a string "prompt" or "text" (whisper-transcribe's), or an
//          "error" of the stage before
class PromptReader {
  public:
    // A template that is not empty holds "{}", which the input replaces wherever it stands.
    PromptReader(ByteReader& in, PromptFormat format, std::string prompt_template);

    // Returns nullopt at the end of the stream. Invalid UTF-8 becomes U+FFFD. Throws Error if a
    // line, or the whole prompt, is longer than kMaxLineBytes (text/lines.h).
    std::optional<Prompt> next();

  private:
    std::optional<std::string> line();
    Prompt parse(const std::string& line) const;

    ByteReader& in_;
    PromptFormat format_;
    std::string template_;
    std::string ahead_;  // what has been read
    size_t taken_ = 0;   // bytes of it that next() has returned
    int64_t count_ = 0;  // lines returned
    bool ended_ = false;
};

// One line: what was passed on, then prompt, text, tokens, finish_reason and, where asked for,
// logprobs; or the prompt's error alone.
std::string json_line(const Prompt& prompt, const Generated& answer, bool logprobs);

}  // namespace hark::gpt
