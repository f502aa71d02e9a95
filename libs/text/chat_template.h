// Chat templates of models: messages, tools and options to the text that a model reads.
#pragma once

#include <filesystem>
#include <ctime>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/piece.h"

namespace hark {

namespace jinja {
class Template;
}

struct ChatRequest;  // chat_request.h

class ChatTemplate {
  public:
    // A template's text, such as GGUF's tokenizer.chat_template. Special tokens are variables of
    // the template: bos_token and others. Throws Error "where: line N: ..." if it is no template.
    static ChatTemplate parse(std::string_view source, const std::string& where,
                              std::map<std::string, std::string> special_tokens = {});
    // That of a Hugging Face folder: chat_template.jinja and additional_chat_templates/, else
    // tokenizer_config.json, else chat_template.json. nullopt if it has none.
    static std::optional<ChatTemplate> from_directory(const std::filesystem::path& directory);

    // The text in pieces, each of the template or of the request: special tokens are to be read in
    // the template's pieces alone. As transformers' apply_chat_template, and in addition:
    //   - tool calls' arguments, a string in OpenAI's form, are an object, unless that fails;
    //   - text parts become one string if the template reads no parts.
    // Throws Error "where: line N: ...".
    std::vector<jinja::Piece> render(const ChatRequest& request) const;

    // The templates' names; the one that is taken first is "default".
    std::vector<std::string> names() const;
    const std::map<std::string, std::string>& special_tokens() const { return special_tokens_; }
    // Whether a template reads the variable, such as enable_thinking or tools.
    bool uses(std::string_view variable) const;
    // Whether a template has the text anywhere, as it is written: a marker such as </think>.
    bool has_text(std::string_view text) const { return sources_.find(text) != sources_.npos; }

  private:
    const jinja::Template& choose(const ChatRequest& request) const;
    void add(const std::string& name, std::string_view source, const std::string& where);

    std::string where_;
    std::map<std::string, std::shared_ptr<const jinja::Template>> templates_;
    std::map<std::string, std::string> special_tokens_;
    std::string sources_;  // of all templates
};

// The pieces as one text.
std::string joined(const std::vector<jinja::Piece>& pieces);

// What strftime_now shows: the local time, or UTC's of SOURCE_DATE_EPOCH where that variable is
// set.
std::tm template_time();

}  // namespace hark
