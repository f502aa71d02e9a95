// Chat templates: the text up to the first zero byte is the template, what follows the messages.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/error.h"
#include "fuzz/seeds.h"
#include "text/chat_request.h"
#include "text/chat_template.h"
#include "text/utf8.h"

using namespace hark;
using Json = nlohmann::ordered_json;

namespace {

const char* const kMessages =
    R"([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi <|x|>"},)"
    R"({"role": "assistant", "content": "", "tool_calls": [{"id": "call00001", "type": "function",)"
    R"("function": {"name": "f", "arguments": {"a": [1, 2.5, null, "é"]}}}]},)"
    R"({"role": "tool", "tool_call_id": "call00001", "content": "42"}])";

std::string content(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

std::vector<std::string> fuzz::fuzz_seeds() {
    const std::filesystem::path folder = std::filesystem::path(HARK_SOURCE_DIR) / "tests/golden";
    const Json golden = Json::parse(content(folder / "jinja.json"));
    std::vector<std::string> seeds;
    for (const char* kind : {"edges", "random"})
        for (const Json& example : golden[kind])
            seeds.push_back(example[0].get<std::string>() + '\0' + kMessages);
    for (const auto& entry : std::filesystem::directory_iterator(folder / "chat_templates"))
        seeds.push_back(content(entry.path()) + '\0' + kMessages);
    return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view input(reinterpret_cast<const char*>(data), size);
    const size_t end = std::min(input.find('\0'), size);
    ChatRequest request;
    request.messages = Json::parse(end < size ? input.substr(end + 1) : "", nullptr, false);
    if (!request.messages.is_array()) request.messages = Json::parse(kMessages);
    request.tools = Json::parse(R"([{"type": "function", "function": {"name": "f"}}])");
    request.arguments = Json::parse(R"({"l": [3, 1], "d": {"k": "v"}, "s": "text", "n": 3})");
    try {
        const auto made = ChatTemplate::parse(input.substr(0, end), "T", {{"bos_token", "<s>"}});
        if (!is_valid_utf8(joined(made.render(request)))) std::abort();
    } catch (const Error&) {
    }
    return 0;
}
