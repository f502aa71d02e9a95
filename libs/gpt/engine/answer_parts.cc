#include "gpt/engine/answer_parts.h"

#include "gpt/engine/tool_calls.h"

namespace hark::gpt {

AnswerParts answer_parts(Prompt& prompt, const Completion& answer,
                         const AnswerPartsOptions& options) {
    auto [reasoning, said] = split_reasoning(options.markers, prompt.opens_reasoning, answer.text);
    AnswerParts parts;
    parts.said = said;
    const bool shows = options.reasoning == Reasoning::show && options.markers;
    parts.text = shows ? answer.text : std::move(said);
    if (options.reasoning == Reasoning::separate) parts.reasoning = std::move(reasoning);
    if (!prompt.tools.empty()) parts.tool_calls = take_tool_calls(parts.text);
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
