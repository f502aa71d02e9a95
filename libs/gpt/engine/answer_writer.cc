#include "gpt/engine/answer_writer.h"

#include <algorithm>
#include <string>

namespace hark::gpt {

void AnswerWriter::begin(const Prompt& prompt, int64_t dropped) {
    if (dropped > 0)
        console_.warning(concat("the prompt is longer than the model's context: its first ",
                                dropped, " tokens are left out"));
    if (options_.echo) text(prompt.text);
}

void AnswerWriter::text(std::string_view piece) {
    if (options_.jsonl) return;
    std::string line(piece);
    if (options_.one_line)
        std::replace_if(
            line.begin(), line.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
    out_.write(line);
    out_.flush();
    at_line_start_ = line.ends_with('\n');
}

void AnswerWriter::end(const Prompt& prompt, const Completion& answer) {
    if (options_.jsonl)
        out_.write(json_line(prompt, answer, options_.logprobs));
    else if (options_.one_line || (!prompt.empty() && !at_line_start_))
        out_.write("\n");
    out_.flush();
    if (!prompt.error.empty()) console_.error(prompt.error);
    if (answer.finish == Finish::context_full)
        console_.warning("the model's context is full: the text ends here");
}

void AnswerWriter::show(const Prompt& prompt, const std::string& read) {
    if (!prompt.error.empty()) return console_.error(prompt.error);
    out_.write(read);
    if (!read.ends_with('\n')) out_.write("\n");
    out_.flush();
}

}  // namespace hark::gpt
