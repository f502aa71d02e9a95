// Reads prompts from a stream; formats answers as lines of JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "core/io.h"
#include "gpt/engine/generate.h"

namespace hark::gpt {

enum class PromptFormat {
    whole,  // all of the stream is one prompt, without the line ends at its end
    lines,  // each line is a prompt, an empty line an empty one
    jsonl,  // each line has a string "prompt" or "text", or a list "messages", or the "error" of
            // the stage before
};

struct Prompt {
    std::string text;                 // empty: the answer is empty
    std::string error;                // what is wrong with a line that has no prompt
    std::string metadata = "{}";      // of a JSON line: its id, source, start and end, as JSON
    nlohmann::ordered_json messages;  // of a chat, instead of the text; or null
    nlohmann::ordered_json tools;     // that a chat may call; or null

    bool empty() const { return text.empty() && messages.is_null(); }
};

// Reads prompts one at a time, each as soon as its line is complete.
class PromptReader {
  public:
    // A non-empty template has "{}"; the input replaces each of them. takes_messages: "messages"
    // and "tools" of a JSON line are read.
    PromptReader(ByteReader& in, PromptFormat format, std::string prompt_template,
                 bool takes_messages = false);

    // Returns nullopt at the end of the stream. Invalid UTF-8 becomes U+FFFD. Throws Error if a
    // line, or the whole prompt, is longer than kMaxLineBytes (text/lines.h).
    std::optional<Prompt> next();

  private:
    std::optional<std::string> line();
    Prompt parse(const std::string& line) const;

    ByteReader& in_;
    PromptFormat format_;
    std::string template_;
    bool takes_messages_;
    std::string ahead_;  // what has been read
    size_t taken_ = 0;   // bytes of it that next() has returned
    int64_t count_ = 0;  // lines returned
    bool ended_ = false;
};

// One line: the metadata, then prompt, text, tokens, finish_reason and, if asked for, logprobs; or
// the metadata and the prompt's error.
std::string json_line(const Prompt& prompt, const Completion& answer, bool logprobs);

}  // namespace hark::gpt
