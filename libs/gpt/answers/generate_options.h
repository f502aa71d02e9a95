// The command line of gpt-generate.
#pragma once

#include <functional>
#include <string>

#include "gpt/answers/answer_writer.h"
#include "gpt/answers/batch_options.h"
#include "gpt/answers/chat.h"
#include "gpt/answers/prompts.h"
#include "gpt/answers/request.h"
#include "gpt/families/model_choice.h"
#include "kernels/runtime/backend.h"

namespace hark::gpt {

struct DecoderConfig;

struct GenerateToolOptions {
    ModelChoice choice;
    std::string prompt;
    std::string input_format = "text";
    std::string format;   // empty: jsonl if the input is, else text
    std::string extract;  // empty: all of an answer is written
    bool echo = false, show_prompt = false;
    bool prefill_only = false;
    std::string from_cache;  // file of a prompt that was computed, -: stdin; empty: none
    ChatOptions chat;
    GenerateSettings generate;
    BatchOptions batch;
    ComputeOptions compute;
    int64_t gpus = 1;

    void flags(Flags& flags);
    void check() const;  // throws UsageError
    // Throws UsageError for what several processes that share a model do not do.
    void check_processes(int64_t count) const;
    // What these must have alike, as text.
    std::string facts(const DecoderConfig& config, const GenerateOptions& defaults,
                      const Context& ctx) const;
    bool input_is_file() const;  // stdin is
    PromptFormat prompt_format() const;
    // With the markers of the model, or nullptr.
    AnswerOptions answers(const ReasoningMarkers* markers) const;
    // Whether --prompt is the prompt itself: it has no {} for the input, and none follows it.
    bool prompt_is_whole() const;
    // Calls use(prompt) for each prompt: --prompt alone, those of the stream, or those that a
    // person types.
    using UsePrompt = std::function<void(Prompt)>;
    void for_each_prompt(PromptReader& prompts, const UsePrompt& use) const;
    // Whether a person talks to the model on a terminal.
    bool is_interactive() const;
    // Whether a prompt is answered before the next one is read: there is one, or it follows the
    // answer.
    bool is_one_by_one() const { return input_format == "text" || is_conversation(); }
    // Whether answers are computed by the engine: `sequences` of them at once, or with guessed
    // tokens.
    bool answers_at_once(int64_t sequences, const DecoderConfig& config) const;
    // Whether each prompt follows the earlier ones and their answers.
    bool is_conversation() const { return is_interactive() || !chat.conversation.empty(); }
    ChatOptions chat_options() const;
    // The prompt with {} for the input; empty: the input alone.
    std::string prompt_template() const;

  private:
    void check_conversation() const;
    void check_halves() const;
    Prompt given_prompt(const std::string& text, int64_t id) const;
    void converse(const UsePrompt& use) const;
    bool writes_jsonl() const {
        return format == "jsonl" || (format.empty() && input_format == "jsonl");
    }
};

}  // namespace hark::gpt
