// Chats: a model's own template makes its prompt of messages.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/cli/cli.h"
#include "gpt/answers/answer_parts.h"
#include "gpt/chat/conversation.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace hark::gpt {

class ModelFile;

struct ChatOptions {
    bool chat = false;
    std::string system;                  // the first message; empty: none
    std::string template_file;           // instead of the model's own template
    std::vector<std::string> arguments;  // NAME=VALUE, variables of the template
    std::string conversation;            // FILE of messages so far; empty: none
    bool keeps_turns = false;            // each prompt and its answer are part of the next one
    std::string reasoning;               // show, hide, or separate, which is also the default

    void flags(Flags& flags);
    void check() const;  // throws UsageError
    Reasoning where_reasoning() const;
};

class Chat {
  public:
    // Throws Error if the model has no template and none is given, or if the template is wrong.
    Chat(const ModelFile& file, const ChatOptions& options);

    // The prompt of a chat: its messages, or the conversation so far and a message of the user with
    // its text. Throws Error with the template's line if it raises one.
    std::vector<PromptPiece> render(const Prompt& prompt) const;
    // Adds a turn to the conversation, if there is one.
    void append(const Prompt& prompt, const std::string& answer);
    const ChatTemplate& chat_template() const { return *template_; }

  private:
    std::string system_;
    nlohmann::ordered_json arguments_;
    std::optional<ChatTemplate> template_;
    std::optional<Conversation> conversation_;
};

// From a prompt to the model's tokens, with a chat template or without.
class PromptEncoder {
  public:
    // Keeps the reference to the tokenizer. Throws Error as Chat does.
    PromptEncoder(const ModelFile& file, const Tokenizer& tokenizer, const ChatOptions& options);

    // The prompt's tokens if it has some, else its text's: none for an empty prompt and for one
    // with an error. What a chat template says against the messages becomes the prompt's error.
    std::vector<int32_t> ids(Prompt& prompt) const;
    // What the model reads, as text; the same for errors.
    std::string text(Prompt& prompt) const;
    // Adds the prompt and its answer to a chat's conversation, if there is one.
    void append(const Prompt& prompt, const std::string& answer);
    // Those of a chat's model; nullptr if there are none.
    const ReasoningMarkers* markers() const { return markers_; }
    const Tokenizer& tokenizer() const { return tokenizer_; }
    // Whether there is a chat template that reads a list of tools.
    bool takes_tools() const;

  private:
    std::vector<PromptPiece> pieces(Prompt& prompt) const;
    // Whether the reasoning of a model with markers begins where what it reads ends.
    bool opens_reasoning(std::string read) const;

    const Tokenizer& tokenizer_;
    std::optional<Chat> chat_;
    const ReasoningMarkers* markers_ = nullptr;
};

}  // namespace hark::gpt
