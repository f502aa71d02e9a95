// Reads prompts from a stream.
#pragma once

#include <optional>
#include <string>

#include "core/files/io.h"
#include "core/json/json.h"
#include "gpt/answers/request.h"
#include "text/line_reader.h"

namespace hark::gpt {

enum class PromptFormat {
    whole,  // all of the stream is one prompt, without the line ends at its end
    lines,  // each line is a prompt, an empty line an empty one
    jsonl,  // each line has a string "prompt" or "text", or a list "messages", or the "error" of
            // the stage before
};

struct Prompt {
    std::string text;                 // empty: the answer is empty
    std::vector<int32_t> tokens;      // what the model has read instead; empty: the text's
    std::string where;                // the line, for messages; empty: there is one prompt
    std::string error, error_code;    // why there is no answer (docs/formats.md has the codes)
    std::string metadata;             // JSON: its id, and a line's source, start and end
    nlohmann::ordered_json messages;  // of a chat, instead of the text; or null
    nlohmann::ordered_json tools, documents;  // of a chat: for its template; or null
    nlohmann::ordered_json arguments;         // of a chat: variables of its template; or null
    bool opens_reasoning = false;  // what the model reads ends where its reasoning begins
    LineSettings settings;

    bool empty() const { return text.empty() && tokens.empty() && messages.is_null(); }
    void fail(const char* code, std::string message) {
        error_code = code;
        error = std::move(message);
    }
};

// What is wrong with the messages, tools and documents of an object; empty: nothing.
std::string wrong_messages(const nlohmann::ordered_json& root);

// Reads prompts one at a time, each as soon as its line is complete.
class PromptReader {
  public:
    // A non-empty template has "{}"; the input replaces each of them. takes_messages: "messages",
    // "tools" and "documents" of a JSON line are read. `warn`: of a text that is not UTF-8, once.
    PromptReader(ByteReader& in, PromptFormat format, std::string prompt_template,
                 bool takes_messages = false, Utf8Check::Warn warn = {});

    // Returns nullopt at the end of the stream. Invalid UTF-8 becomes U+FFFD; in a line of JSON it
    // is that line's error. Throws Error if a line, or the whole prompt, is longer than
    // kMaxLineBytes (text/lines.h).
    std::optional<Prompt> next();

  private:
    void parse(const std::string& line, Prompt& prompt) const;

    LineReader lines_;
    PromptFormat format_;
    std::string template_;
    bool takes_messages_;
};

}  // namespace hark::gpt
