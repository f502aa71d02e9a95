#include "text/chat_template.h"

#include "core/error.h"
#include "core/ranges.h"
#include "text/chat_messages.h"
#include "text/chat_request.h"
#include "text/jinja/template.h"

namespace hark {
namespace {

using Json = nlohmann::ordered_json;

std::vector<jinja::Variable> variables_of(const ChatRequest& request, const Json& messages,
                                          const std::map<std::string, std::string>& tokens) {
    std::vector<jinja::Variable> variables;
    for (const auto& [name, token] : tokens) variables.push_back({name, token, false});
    variables.push_back({"messages", messages});
    variables.push_back({"tools", request.tools});
    variables.push_back({"documents", request.documents});
    variables.push_back({"add_generation_prompt", request.add_generation_prompt});
    if (request.arguments.is_null()) return variables;
    require(request.arguments.is_object(), "the template's arguments must be an object");
    for (const auto& [name, value] : request.arguments.items()) variables.push_back({name, value});
    return variables;
}

}  // namespace

ChatTemplate ChatTemplate::parse(std::string_view source, const std::string& where,
                                 std::map<std::string, std::string> special_tokens) {
    ChatTemplate made;
    made.where_ = where;
    made.special_tokens_ = std::move(special_tokens);
    made.add("default", source, where);
    return made;
}

void ChatTemplate::add(const std::string& name, std::string_view source, const std::string& where) {
    templates_[name] = std::make_shared<const jinja::Template>(source, where);
    sources_ += source;
    sources_ += '\n';
}

const jinja::Template& ChatTemplate::choose(const ChatRequest& request) const {
    const auto find = [&](const std::string& name) {
        const auto found = templates_.find(name);
        return found == templates_.end() ? nullptr : found->second.get();
    };
    const jinja::Template* chosen = nullptr;
    if (!request.name.empty())
        chosen = find(request.name);
    else if (!request.tools.is_null() && find("tool_use"))
        chosen = find("tool_use");
    else
        chosen = find("default");
    if (chosen) return *chosen;
    fail(where_, ": no chat template '", request.name.empty() ? "default" : request.name,
         "' (it has ", joined(names()), ")");
}

std::vector<jinja::Piece> ChatTemplate::render(const ChatRequest& request) const {
    const jinja::Template& chosen = choose(request);
    require(request.messages.is_array(), where_, ": the messages must be a list");
    for (const Json& message : request.messages)
        require(message.is_object(), where_, ": each message must be an object");
    const std::tm now = template_time();
    Json messages = normalized_messages(request.messages);
    if (!chosen.mentions("text")) join_text_parts(messages);
    const auto render_with = [&](const Json& chat) {
        return chosen.render(variables_of(request, chat, special_tokens_), now);
    };
    Json with_objects = messages;
    if (!parse_call_arguments(with_objects)) return render_with(messages);
    try {
        return render_with(with_objects);
    } catch (const Error&) {
        return render_with(messages);
    }
}

std::vector<std::string> ChatTemplate::names() const {
    std::vector<std::string> names;
    for (const auto& [name, made] : templates_)
        names.insert(name == "default" ? names.begin() : names.end(), name);
    return names;
}

bool ChatTemplate::uses(std::string_view variable) const {
    for (const auto& [name, made] : templates_)
        if (made->uses(variable)) return true;
    return false;
}

std::string joined(const std::vector<jinja::Piece>& pieces) {
    std::string text;
    for (const jinja::Piece& piece : pieces) text += piece.text;
    return text;
}

}  // namespace hark
