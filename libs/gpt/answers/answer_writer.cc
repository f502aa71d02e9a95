#include "gpt/answers/answer_writer.h"

#include <algorithm>
#include <string>
#include <utility>

#include "gpt/answers/answer_line.h"

namespace hark::gpt {
namespace {

std::vector<std::string> stats_columns(bool drafts) {
    std::vector<std::string> columns = {"answer", "prompt tokens", "generated tokens",
                                        "seconds to first token", "tokens per second"};
    if (drafts) columns.insert(columns.end(), {"proposed tokens", "accepted tokens"});
    return columns;
}

}  // namespace

AnswerWriter::AnswerWriter(const AnswerOptions& options, const Tokenizer& tokenizer,
                           Console& console, ByteWriter& out)
    : options_(options),
      tokenizer_(tokenizer),
      console_(console),
      out_(out),
      stats_(console, stats_columns(options.drafts)) {}

void AnswerWriter::begin(const Prompt& prompt) {
    const bool splits = options_.parts.reasoning != Reasoning::show;
    splitter_ =
        ReasoningSplitter(splits ? options_.parts.markers : nullptr, prompt.opens_reasoning);
    if (options_.echo) write_text(prompt.text);
}

void AnswerWriter::text(std::string_view piece) {
    if (!options_.jsonl) write(splitter_.push(piece));
}

void AnswerWriter::write(const ReasoningSplitter::Parts& parts) {
    if (options_.parts.reasoning == Reasoning::separate) write_reasoning(parts.reasoning);
    // Only the whole answer shows what is extracted of it.
    if (options_.parts.extract == Extract::nothing) write_text(parts.answer);
}

void AnswerWriter::write_reasoning(std::string_view piece) {
    if (piece.empty() || console_.quiet) return;
    console_.text(piece);
    in_reasoning_ = true;
}

void AnswerWriter::end_reasoning() {
    if (std::exchange(in_reasoning_, false)) console_.text("\n");
}

void AnswerWriter::write_text(std::string_view piece) {
    if (piece.empty()) return;
    end_reasoning();
    std::string line(piece);
    if (options_.one_line)
        std::replace_if(
            line.begin(), line.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
    out_.write(line);
    out_.flush();
    at_line_start_ = line.ends_with('\n');
    has_text_ = true;
}

void AnswerWriter::end_text(const Prompt& prompt) {
    end_reasoning();
    if (options_.one_line || (!prompt.empty() && !at_line_start_)) out_.write("\n");
    at_line_start_ = has_text_ = false;
}

void AnswerWriter::end(const Prompt& prompt, int64_t sample, const Completion& answer,
                       const AnswerParts& parts, const GenerateOptions& options) {
    if (options_.jsonl) {
        out_.write(answer_line(prompt, sample, answer, parts, options, tokenizer_));
    } else {
        write(splitter_.finish());
        if (options_.parts.extract != Extract::nothing) write_text(parts.text);
        end_text(prompt);
    }
    out_.flush();
    if (answer.finish == Finish::context_full)
        console_.warning("the context is full: the text ends here");
    if (!console_.stats) return;
    const std::string id = nlohmann::json::parse(prompt.metadata)["id"].dump();
    std::vector<std::string> cells = {options.samples > 1 ? concat(id, ".", sample) : id,
                                      concat(answer.prompt_tokens), concat(answer.tokens.size()),
                                      stats_number(answer.seconds_to_first_token),
                                      stats_number(answer.tokens_per_second)};
    if (options_.drafts)
        cells.insert(cells.end(), {concat(answer.drafts), concat(answer.accepted)});
    stats_.row(cells);
}

void AnswerWriter::fail(const Prompt& prompt) {
    if (options_.jsonl)
        out_.write(error_line(prompt));
    else if (options_.one_line || has_text_)
        end_text(prompt);
    else
        end_reasoning();
    out_.flush();
    say(prompt);
}

void AnswerWriter::say(const Prompt& prompt) {
    console_.error(prompt.where.empty() ? prompt.error : concat(prompt.where, ": ", prompt.error));
}

void AnswerWriter::show(const Prompt& prompt, const std::string& read) {
    if (!prompt.error.empty()) return say(prompt);
    out_.write(read);
    if (!read.ends_with('\n')) out_.write("\n");
    out_.flush();
}

}  // namespace hark::gpt
