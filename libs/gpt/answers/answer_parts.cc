#include "gpt/answers/answer_parts.h"

#include "gpt/chat/tool_calls.h"

namespace hark::gpt {

AnswerParts answer_parts(Prompt& prompt, const Completion& answer,
                         const AnswerPartsOptions& options) {
    SplitAnswer split = split_reasoning(options.markers, prompt.opens_reasoning, answer.text);
    AnswerParts parts;
    parts.said = split.answer;
    const bool shows = options.reasoning == Reasoning::show && options.markers;
    parts.text = shows ? answer.text : std::move(split.answer);
    if (options.reasoning == Reasoning::separate) parts.reasoning = std::move(split.reasoning);
    if (!prompt.tools.empty())
        parts.tool_calls =
            split.tool_texts.empty() ? take_tool_calls(parts.text) : openai_calls(split.tool_texts);
    if (options.extract == Extract::nothing) return parts;
    const bool is_code = options.extract == Extract::code;
    const auto found = is_code ? first_code_block(parts.said) : first_json(parts.said);
    if (found)
        parts.text = *found;
    else
        prompt.fail("nothing_extracted",
                    is_code ? "--extract code: the answer has no whole fenced code block"
                            : "--extract json: the answer has no valid JSON value");
    return parts;
}

}  // namespace hark::gpt
