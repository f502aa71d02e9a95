#include "gpt/answers/chat.h"

#include "core/error.h"
#include "core/files/files.h"
#include "gpt/families/model_file.h"
#include "text/chat_request.h"

namespace hark::gpt {
namespace {

using nlohmann::ordered_json;

std::string joined_pieces(const std::vector<PromptPiece>& pieces) {
    std::string text;
    for (const PromptPiece& piece : pieces) text += piece.text;
    return text;
}

constexpr size_t kMostTemplateBytes = size_t{1} << 20;

// NAME=VALUE: the value is JSON where it can be read as that, else a string.
ordered_json arguments_of(const std::vector<std::string>& given) {
    ordered_json arguments = ordered_json::object();
    for (const std::string& one : given) {
        const size_t equals = one.find('=');
        const ordered_json value = ordered_json::parse(one.substr(equals + 1), nullptr, false);
        arguments[one.substr(0, equals)] =
            value.is_discarded() ? ordered_json(one.substr(equals + 1)) : value;
    }
    return arguments;
}

}  // namespace

void ChatOptions::flags(Flags& flags) {
    flags.section("Chat");
    flags.add_switch("chat", chat, "make the prompt by the model's chat template")
        .essential()
        .own_variable()
        .details(
            "Each prompt is a message of the user. jsonl lines may have `messages` and `tools` "
            "instead, as OpenAI's API has them, and `documents`.");
    flags.add("system", system, "TEXT message of the system, before the first one of the user")
        .essential()
        .own_variable();
    flags.add_name("chat-template", template_file, "FILE template instead of the model's own")
        .own_variable()
        .completes(Completes::file)
        .details("In Jinja, as a model's chat_template.jinja.");
    flags.add_repeated("template-arg", arguments, "NAME=VALUE variable of the template")
        .details(
            "Such as enable_thinking=false. The value is JSON (false, 3, \"x\") if it can be read "
            "as "
            "that, else text. May be given several times.");
    flags.add_name("conversation", conversation, "FILE messages so far; the answer is added")
        .essential()
        .own_variable()
        .completes(Completes::file)
        .details(
            "JSON lines, a message each, with `role` and `content`. A file that does not exist is "
            "begun. The user's message and its answer are added together, once the answer has "
            "ended. With --input-format lines each line is a turn.");
    flags
        .add("reasoning", reasoning, {"show", "hide", "separate"},
             "WHERE the reasoning before an answer is written")
        .own_variable()
        .shows_default("separate")
        .details(
            "separate: on stderr, unless --quiet, and in jsonl as the field `reasoning`; hide: "
            "nowhere; show: in the text, with the model's markers.");
}

void ChatOptions::check() const {
    require_usage(chat || (system.empty() && template_file.empty() && arguments.empty()),
                  "--system, --chat-template and --template-arg need --chat");
    require_usage(chat || (reasoning.empty() && conversation.empty()),
                  "--reasoning and --conversation need --chat");
    for (const std::string& one : arguments)
        require_usage(one.find('=') != one.npos && one.find('=') > 0,
                      "--template-arg: expected NAME=VALUE, got '", one, "'");
}

Reasoning ChatOptions::where_reasoning() const {
    return reasoning == "show"   ? Reasoning::show
           : reasoning == "hide" ? Reasoning::hide
                                 : Reasoning::separate;
}

Chat::Chat(const ModelFile& file, const ChatOptions& options)
    : system_(options.system), arguments_(arguments_of(options.arguments)) {
    template_ = file.chat_template();
    if (!options.template_file.empty()) {
        const auto specials =
            template_ ? template_->special_tokens() : std::map<std::string, std::string>{};
        template_ = ChatTemplate::parse(read_file(options.template_file, kMostTemplateBytes),
                                        options.template_file, specials);
    }
    require(template_.has_value(),
            "--chat: the model has no chat template; give one with "
            "--chat-template FILE, or leave out --chat");
    if (options.keeps_turns || !options.conversation.empty())
        conversation_.emplace(options.conversation, options.system);
}

std::vector<PromptPiece> Chat::render(const Prompt& prompt) const {
    ChatRequest request;
    request.arguments = arguments_;
    if (prompt.arguments.is_object()) request.arguments.update(prompt.arguments);
    request.tools = prompt.tools;
    request.documents = prompt.documents;
    request.messages = prompt.messages;
    if (request.messages.is_null()) {
        request.messages = conversation_ ? conversation_->messages() : ordered_json::array();
        request.messages.push_back({{"role", "user"}, {"content", prompt.text}});
    }
    const bool has_system = !request.messages.empty() && request.messages[0].is_object() &&
                            request.messages[0].value("role", ordered_json()) == "system";
    if (!system_.empty() && !has_system)
        request.messages.insert(request.messages.begin(),
                                ordered_json{{"role", "system"}, {"content", system_}});
    std::vector<PromptPiece> pieces;
    for (const jinja::Piece& piece : template_->render(request))
        pieces.push_back({piece.text, !piece.from_input});
    return pieces;
}

void Chat::append(const Prompt& prompt, const std::string& answer) {
    if (conversation_) conversation_->append(prompt.text, answer);
}

PromptEncoder::PromptEncoder(const ModelFile& file, const Tokenizer& tokenizer,
                             const ChatOptions& options)
    : tokenizer_(tokenizer) {
    if (!options.chat) return;
    chat_.emplace(file, options);
    markers_ = reasoning_markers(chat_->chat_template(), tokenizer);
}

std::vector<PromptPiece> PromptEncoder::pieces(Prompt& prompt) const {
    try {
        return chat_->render(prompt);
    } catch (const Error& why) {
        prompt.fail("template_error", why.what());
        return {};
    }
}

bool PromptEncoder::opens_reasoning(std::string read) const {
    read.erase(read.find_last_not_of(" \n") + 1);
    return read.ends_with(markers_->begin);
}

std::vector<int32_t> PromptEncoder::ids(Prompt& prompt) const {
    if (prompt.empty() || !prompt.error.empty()) return {};
    if (!prompt.tokens.empty()) {
        prompt.opens_reasoning =
            markers_ && opens_reasoning(tokenizer_.decode(prompt.tokens, true));
        return prompt.tokens;
    }
    if (!chat_) return tokenizer_.encode(prompt.text, {.add_specials = true});
    const std::vector<PromptPiece> read = pieces(prompt);
    prompt.opens_reasoning = markers_ && opens_reasoning(joined_pieces(read));
    return tokenizer_.encode(read, false);
}

std::string PromptEncoder::text(Prompt& prompt) const {
    if (prompt.empty() || !prompt.error.empty() || !chat_) return prompt.text;
    return joined_pieces(pieces(prompt));
}

bool PromptEncoder::takes_tools() const { return chat_ && chat_->chat_template().uses("tools"); }

void PromptEncoder::append(const Prompt& prompt, const std::string& answer) {
    if (chat_) chat_->append(prompt, answer);
}

}  // namespace hark::gpt
