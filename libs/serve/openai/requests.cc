#include "serve/openai/requests.h"

#include <algorithm>

#include "serve/openai/fields.h"
#include "serve/openai/tool_choice.h"

namespace hark::serve {
namespace {

using nlohmann::ordered_json;

constexpr int64_t kMostChoices = 128, kMostTexts = 2048;  // of a prompt; of a request
constexpr int64_t kCompletionTokens = 16;  // OpenAI's default

// They change nothing of an answer.
constexpr auto kIgnored = {"user",
                           "metadata",
                           "store",
                           "service_tier",
                           "safety_identifier",
                           "prompt_cache_key",
                           "prompt_cache_retention"};
// Read by gpt::LineSettings.
constexpr auto kSettings = {"temperature",
                            "top_p",
                            "top_k",
                            "min_p",
                            "typical_p",
                            "repetition_penalty",
                            "presence_penalty",
                            "frequency_penalty",
                            "dry_multiplier",
                            "dry_base",
                            "dry_allowed_length",
                            "xtc_probability",
                            "xtc_threshold",
                            "mirostat",
                            "mirostat_tau",
                            "mirostat_eta",
                            "logit_bias",
                            "max_tokens",
                            "seed",
                            "stop",
                            "ignore_eos",
                            "n",
                            "response_format",
                            "regex",
                            "grammar"};

void read_settings(const ordered_json& object, gpt::Prompt& prompt) {
    const std::string wrong = prompt.settings.read(object);
    if (!wrong.empty()) throw WebError(400, wrong, wrong.substr(0, wrong.find_first_of(": ")));
}

// model, stream, stream_options, n.
void read_common(Fields& fields, TextQuery& query) {
    query.model = fields.text("model");
    query.streams = fields.flag("stream", false);
    query.samples = fields.whole("n", 1, kMostChoices).value_or(1);
    fields.know(kSettings);
    fields.know(kIgnored);
    const ordered_json* const options = fields.find("stream_options");
    if (!options) return;
    if (!query.streams) refuse_field("stream_options", "is for stream: true");
    if (!options->is_object()) refuse_field("stream_options", "expected an object");
    for (const auto& [name, value] : options->items()) {
        if (name == "include_obfuscation") continue;
        if (name != "include_usage" || !(value.is_boolean() || value.is_null()))
            refuse_field("stream_options", "expected include_usage, true or false");
        query.streams_usage = value.is_boolean() && value.get<bool>();
    }
}

// Only text can be read.
void check_content(const ordered_json& messages) {
    for (const ordered_json& message : messages) {
        const ordered_json content = message.value("content", ordered_json());
        if (content.is_null() || content.is_string()) continue;
        if (!content.is_array()) refuse_field("messages", "content: expected a text or a list");
        for (const ordered_json& part : content) {
            const bool has_type =
                part.is_object() && part.contains("type") && part["type"].is_string();
            const std::string type = has_type ? part["type"].get<std::string>() : "no type";
            if (type != "text" || !part.contains("text") || !part["text"].is_string())
                refuse_field("messages", concat("content: expected parts of text, found ", type));
        }
    }
}

// The settings of a chat, with the form of its answer if that must be a call of a tool.
ordered_json with_tool_choice(Fields& fields, TextQuery& query) {
    ordered_json settings = fields.object();
    query.one_call = !fields.flag("parallel_tool_calls", true);
    const ordered_json* const choice = fields.find("tool_choice");
    if (!choice || *choice == "auto") return settings;
    if (*choice == "none") {
        query.prompt.tools = ordered_json();
        return settings;
    }
    const ordered_json schema = call_schema(query.prompt.tools, *choice);
    for (const char* const name : {"response_format", "regex", "grammar"})
        if (fields.find(name))
            refuse_field(name, "is not supported with a tool_choice that asks for a call");
    settings["response_format"] = {{"type", "json_schema"}, {"json_schema", {{"schema", schema}}}};
    return settings;
}

void read_template_arguments(Fields& fields, gpt::Prompt& prompt) {
    const ordered_json* const arguments = fields.find("chat_template_kwargs");
    if (arguments && !arguments->is_object())
        refuse_field("chat_template_kwargs", "expected an object");
    prompt.arguments = arguments ? *arguments : ordered_json::object();
    if (fields.find("reasoning_effort"))
        prompt.arguments["reasoning_effort"] = fields.text("reasoning_effort");
}

bool is_token(const ordered_json& value) {
    return value.is_number_integer() && value >= 0 && value <= INT32_MAX;
}

bool is_token_list(const ordered_json& value) {
    return value.is_array() && !value.empty() && std::all_of(value.begin(), value.end(), is_token);
}

// A text, a list of texts, tokens, or a list of tokens' lists.
std::vector<TextOrIds> read_texts(Fields& fields, const char* name) {
    const ordered_json* const value = fields.find(name);
    if (!value) refuse_field(name, "is required");
    const bool is_one = value->is_string() || is_token_list(*value);
    const ordered_json list = is_one ? ordered_json::array({*value}) : *value;
    if (!list.is_array() || list.empty())
        refuse_field(name, "expected a text, tokens, or a list of either");
    if (std::ssize(list) > kMostTexts)
        refuse_field(name, concat("expected at most ", kMostTexts, " texts, found ", list.size()));
    std::vector<TextOrIds> texts;
    for (const ordered_json& one : list) {
        TextOrIds& text = texts.emplace_back();
        if (one.is_string())
            text.text = one.get<std::string>();
        else if (is_token_list(one))
            text.ids = one.get<std::vector<int32_t>>();
        else
            refuse_field(name, "expected a text, tokens, or a list of either");
    }
    return texts;
}

// The number of a completion's `logprobs` under the names that chats have.
ordered_json with_chat_logprobs(Fields& fields) {
    ordered_json object = fields.object();
    const auto likeliest = fields.whole("logprobs", 0, 20);
    object.erase("logprobs");
    if (likeliest) {
        object["logprobs"] = true;
        object["top_logprobs"] = *likeliest;
    }
    return object;
}

}  // namespace

TextQuery read_chat(const std::string& body) {
    Fields fields(body);
    TextQuery query;
    query.is_chat = true;
    read_common(fields, query);
    fields.know({"logprobs", "top_logprobs", "max_completion_tokens"});
    const ordered_json* const messages = fields.find("messages");
    if (!messages) refuse_field("messages", "is required");
    fields.know({"tools", "documents"});
    const std::string wrong = gpt::wrong_messages(fields.object());
    if (!wrong.empty()) throw WebError(400, wrong, "messages");
    check_content(*messages);
    query.prompt.messages = *messages;
    // The name that OpenAI's reasoning models have for it; templates know the other.
    for (ordered_json& message : query.prompt.messages)
        if (message["role"].get_ref<const std::string&>() == "developer")
            message["role"] = "system";
    if (const ordered_json* const tools = fields.find("tools")) query.prompt.tools = *tools;
    if (const ordered_json* const documents = fields.find("documents"))
        query.prompt.documents = *documents;
    const ordered_json settings = with_tool_choice(fields, query);
    read_template_arguments(fields, query.prompt);
    fields.check_known();
    read_settings(settings, query.prompt);
    return query;
}

TextQuery read_completion(const std::string& body) {
    Fields fields(body);
    TextQuery query;
    read_common(fields, query);
    query.max_tokens = kCompletionTokens;
    query.texts = read_texts(fields, "prompt");
    if (std::ssize(query.texts) * query.samples > kMostTexts)
        refuse_field("n", concat("more than ", kMostTexts, " answers are asked for"));
    query.echoes = fields.flag("echo", false);
    if (fields.whole("best_of", 1, 1 << 20).value_or(1) > 1)
        refuse_field("best_of", "is not supported; use n");
    if (!fields.text("suffix", "").empty()) refuse_field("suffix", "is not supported");
    const ordered_json object = with_chat_logprobs(fields);
    if (query.echoes && query.streams && object.contains("logprobs"))
        refuse_field("stream", "is not supported with echo and logprobs");
    fields.check_known();
    read_settings(object, query.prompt);
    return query;
}

EmbeddingQuery read_embedding(const std::string& body) {
    Fields fields(body);
    EmbeddingQuery query;
    query.model = fields.text("model");
    query.texts = read_texts(fields, "input");
    const std::string format = fields.text("encoding_format", "float");
    if (format != "float" && format != "base64")
        refuse_field("encoding_format", "expected float or base64");
    query.is_base64 = format == "base64";
    query.dimensions = fields.whole("dimensions", 1, 1 << 20).value_or(0);
    fields.know(kIgnored);
    fields.check_known();
    return query;
}

TokenizeQuery read_tokenize(const std::string& body) {
    Fields fields(body);
    TokenizeQuery query;
    query.model = fields.text("model");
    query.text = fields.text("prompt");
    query.add_specials = fields.flag("add_special_tokens", true);
    fields.check_known();
    return query;
}

DetokenizeQuery read_detokenize(const std::string& body) {
    Fields fields(body);
    DetokenizeQuery query;
    query.model = fields.text("model");
    const ordered_json* const tokens = fields.find("tokens");
    if (!tokens || !tokens->is_array() || !std::all_of(tokens->begin(), tokens->end(), is_token))
        refuse_field("tokens", "expected a list of tokens");
    query.ids = tokens->get<std::vector<int32_t>>();
    fields.check_known();
    return query;
}

}  // namespace hark::serve
