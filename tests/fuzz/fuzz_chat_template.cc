// Chat templates: the text up to the first zero byte is the template, what follows the messages.
#include <cstdint>
#include <cstdlib>

#include "core/error.h"
#include "fuzz/golden.h"
#include "fuzz/target.h"
#include "text/chat_request.h"
#include "text/chat_template.h"
#include "text/utf8.h"

using namespace hark;
using namespace hark::fuzz;
using Json = nlohmann::ordered_json;

namespace {

const char* const kMessages =
    R"([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi <|x|>"},)"
    R"({"role": "assistant", "content": "", "tool_calls": [{"id": "call00001", "type": "function",)"
    R"("function": {"name": "f", "arguments": {"a": [1, 2.5, null, "é"]}}}]},)"
    R"({"role": "tool", "tool_call_id": "call00001", "content": "42"}])";

const char* const kOtherMessages =
    R"([{"role": "user", "content": [{"type": "text", "text": "a"}, )"
    R"({"type": "text", "text": "b"}]},)"
    R"({"role": "assistant", "reasoning": "r", "content": [{"type": "image"}], "tool_calls": [)"
    R"({"function": {"name": "f", "arguments": "{\"a\": 1}"}}]}])";

}  // namespace

static std::vector<std::string> chat_template_seeds() {
    const Json references = golden("jinja.json");
    std::vector<std::string> seeds;
    for (const char* kind : {"edges", "random"})
        for (const Json& example : references[kind])
            seeds.push_back(example[0].get<std::string>() + '\0' + kMessages);
    // What those do not have.
    for (const char* source :
         {"{{ 1 is even }}{{ 4 is divisibleby 2 }}{{ l is sameas l }}{{ 1 is lt 2 }}{{ 1 is le 2 "
          "}}",
          "{{ 1 is gt 2 }}{{ 1 is ge 2 }}{{ 1 is ne 2 }}{{ 1 is eq 2 }}{{ 'e' is filter }}",
          "{{ 'odd' is test }}{{ s is escaped }}{{ 1 is boolean }}{{ 1 is true }}{{ 1 is false }}",
          "{{ 1 is integer }}{{ 1 is float }}{{ 1 is number }}{{ s.isascii() }}{{ l.count(3) }}",
          "{{ 'a-b'.rpartition('-') }}{{ '%c%*d' % (65, 3, 4) }}{{ '%.1s' % 'ab' }}",
          "{{ '%.3d' % 4 }}{% macro m(a) %}{% endmacro %}{{ m }}{{ m.name }}{{ m.arguments }}",
          "{% for x in l recursive %}{{ loop }}{{ loop.changed(x) }}{% endfor %}"})
        seeds.push_back(std::string(source) + '\0' + kMessages);
    seeds.push_back(std::string("{{ messages }}") + '\0' + kOtherMessages);
    for (const auto& file : golden_files("chat_templates", ".jinja"))
        seeds.push_back(content(file) + '\0' + kMessages);
    return seeds;
}

static int chat_template_input(const uint8_t* data, size_t size) {
    const std::string_view input(reinterpret_cast<const char*>(data), size);
    const size_t end = std::min(input.find('\0'), size);
    ::setenv("SOURCE_DATE_EPOCH", "1700000000", 1);  // the same input gives the same text
    ChatRequest request;
    request.messages = Json::parse(end < size ? input.substr(end + 1) : "", nullptr, false);
    if (!request.messages.is_array()) request.messages = Json::parse(kMessages);
    request.tools = Json::parse(R"([{"type": "function", "function": {"name": "f"}}])");
    request.arguments = Json::parse(R"({"l": [3, 1], "d": {"k": "v"}, "s": "text", "n": 3})");
    try {
        const auto made = ChatTemplate::parse(input.substr(0, end), "T", {{"bos_token", "<s>"}});
        made.uses("tools");
        if (made.names() != std::vector<std::string>{"default"} || made.has_text("\n\n\n\n\n\xff"))
            std::abort();
        if (!is_valid_utf8(joined(made.render(request)))) std::abort();
        request.name = "none";
        made.render(request);
    } catch (const Error&) {
    }
    return 0;
}

// A template may make texts of 64 MiB (kMaxLiveBytes), which are copied.
static const hark::fuzz::Target kChatTemplate{"chat_template", chat_template_seeds,
                                              chat_template_input, int64_t{128} << 20};
