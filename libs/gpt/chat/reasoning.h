// Reasoning: the text that some models write before their answer, between markers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace hark::gpt {

// How a family marks its reasoning (docs/formats.md has the table).
struct ReasoningMarkers {
    // tags: BEGIN reasoning END answer. channels: texts <|channel|>NAME<|message|>...<|end|>, where
    // `analysis` is reasoning (OpenAI's harmony format).
    enum class Form { tags, channels } form = Form::tags;
    std::string_view begin, end;
};

// Those that are in the template's text, or else among the tokenizer's tokens; nullptr if no known
// ones are.
const ReasoningMarkers* reasoning_markers(const ChatTemplate& chat, const Tokenizer& tokenizer);

// The special tokens that are part of the markers. They must be in a text that is to be split.
std::vector<int32_t> marker_tokens(const ReasoningMarkers& markers, const Tokenizer& tokenizer);

// A text for a tool, in channels alone.
struct ToolText {
    std::string name;  // functions.NAME without `functions.`, or another recipient
    std::string arguments;
};

// Splits an answer while it is generated. The result does not depend on how the text is cut into
// pieces. Line ends next to a marker belong to it.
class ReasoningSplitter {
  public:
    struct Parts {
        std::string reasoning, answer;  // what has been added to each
    };

    // `opened`: the prompt ends with the marker that begins the reasoning. Without markers all text
    // is the answer.
    ReasoningSplitter(const ReasoningMarkers* markers, bool opened);

    // What is certain once `text` has come.
    Parts push(std::string_view text);
    // The rest; the text has ended.
    Parts finish();
    // The texts for tools so far.
    const std::vector<ToolText>& tool_texts() const { return tool_texts_; }

  private:
    // header: between two texts of channels; call: a text for a tool.
    enum class State { before, reasoning, answer, header, call };

    // Each returns whether the state has changed.
    bool step(bool ended, Parts& parts);
    bool begin_text(bool ended);
    bool read_header(bool ended);
    bool read_text(bool ended, Parts& parts);
    void add(std::string_view text, Parts& parts);

    const ReasoningMarkers* markers_;
    State state_;
    std::string held_;        // not certain yet
    bool at_start_ = true;    // of a text
    bool has_texts_ = false;  // a header has been read
    bool has_reasoning_ = false, has_answer_ = false;
    std::vector<ToolText> tool_texts_;
};

// The whole text at once.
struct SplitAnswer : ReasoningSplitter::Parts {
    std::vector<ToolText> tool_texts;
};
SplitAnswer split_reasoning(const ReasoningMarkers* markers, bool opened, std::string_view text);

}  // namespace hark::gpt
