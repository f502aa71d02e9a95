// The JSON of OpenAI's requests, and the fields of a transcript's form.
#include <cstdlib>
#include <string_view>

#include "fuzz/target.h"
#include "serve/openai/errors.h"
#include "serve/openai/requests.h"
#include "serve/openai/transcripts.h"

using namespace hark;
using namespace hark::fuzz;

static std::vector<std::string> web_requests_seeds() {
    return {
        R"({"model":"m","messages":[{"role":"developer","content":[{"type":"text","text":"a"}]},
            {"role":"user","content":"b"}],"tools":[{"type":"function","function":{"name":"f"}}],
            "tool_choice":"auto","parallel_tool_calls":false,"stream":true,
            "stream_options":{"include_usage":true},"n":2,"seed":1,"stop":["x"],"logprobs":true,
            "top_logprobs":3,"response_format":{"type":"json_object"},"max_completion_tokens":5,
            "chat_template_kwargs":{"a":1},"reasoning_effort":"low","user":"u"})",
        R"({"model":"m","prompt":["a","b"],"echo":true,"best_of":1,"suffix":"","logprobs":null})",
        R"({"model":"m","prompt":[[1,2],[3]],"logprobs":2,"temperature":0.5,"max_tokens":3})",
        R"({"model":"m","input":["a"],"encoding_format":"base64","dimensions":3})",
        R"({"model":"m","tokens":[1,2]})",
        R"({"model":"m","prompt":"a","add_special_tokens":false})",
        "model\nm\nlanguage\nGerman\ntemperature\n0.2\nresponse_format\nverbose_json\n"
        "timestamp_granularities[]\nword\nstream\nfalse\nvad_filter\ntrue\nprompt\nx"};
}

namespace {

// A refusal is a whole answer that names a status of the client's.
template <class Read>
void refused_or_read(const Read& read) {
    try {
        read();
    } catch (const serve::WebError& why) {
        const serve::WebResponse response = serve::error_response(why);
        if (why.status != 400 || !nlohmann::json::accept(response.body)) std::abort();
    }
}

void read_fields(std::string_view text) {
    serve::Form form;
    form.file = std::make_shared<serve::SpooledFile>();
    std::vector<std::string> lines(1);
    for (const char c : text) {
        if (c == '\n')
            lines.emplace_back();
        else
            lines.back() += c;
    }
    for (size_t i = 0; i + 1 < lines.size(); i += 2)
        form.fields.emplace_back(lines[i], lines[i + 1]);
    for (const char* task : {"transcribe", "translate"})
        refused_or_read([&] {
            const serve::AudioQuery query = serve::read_audio_query(form, task);
            if (query.model.empty() || !(query.options.temperature >= 0)) std::abort();
        });
}

}  // namespace

static int web_requests_input(const uint8_t* data, size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    refused_or_read([&] {
        const serve::TextQuery chat = serve::read_chat(text);
        if (chat.prompt.settings.over({}, 0).samples > 128) std::abort();
    });
    refused_or_read([&] {
        const serve::TextQuery completion = serve::read_completion(text);
        if (completion.texts.empty() || completion.max_tokens != 16) std::abort();
        for (const serve::TextOrIds& one : completion.texts)
            if (one.ids && one.ids->empty()) std::abort();
    });
    refused_or_read([&] { serve::read_embedding(text); });
    refused_or_read([&] { serve::read_tokenize(text); });
    refused_or_read([&] { serve::read_detokenize(text); });
    read_fields(text);
    return 0;
}

static const hark::fuzz::Target kWebRequests{"web_requests", web_requests_seeds,
                                             web_requests_input};
