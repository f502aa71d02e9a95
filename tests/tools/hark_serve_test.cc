// hark-serve's text endpoints on the real binary: what they answer is what the tools write.
#include "tools/hark_serve.h"

#include <thread>

#include "support/scripted_model.h"

using namespace hark::test;

namespace {

const std::string kPrompt = "Once upon a time";

// What gpt-generate continues the prompt with.
std::string generated(const std::string& prompt, const std::vector<std::string>& more = kGreedy) {
    const ProcessResult run = generate(more, prompt);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return run.out.substr(0, run.out.size() - 1);  // without the line's end
}

// The servers that the tests share: reading a model takes most of a test's time.
Served& demo_server() {
    static Served server(kServedDemo);
    return server;
}

class TinyServer {
  public:
    TinyServer() {
        write_tiny_qwen2(directory_.path() / "tiny");
        server_ = std::make_unique<Served>(std::vector<std::string>{"--model", folder()});
    }
    std::string folder() const { return (directory_.path() / "tiny").string(); }
    Served& server() { return *server_; }

  private:
    TemporaryDirectory directory_;
    std::unique_ptr<Served> server_;
};

TinyServer& tiny() {
    static TinyServer tiny;
    return tiny;
}

json chat(const std::string& text, const json& more = json::object()) {
    json request = {{"model", "tiny"},
                    {"messages", {{{"role", "user"}, {"content", text}}}},
                    {"temperature", 0},
                    {"max_tokens", 12}};
    request.update(more);
    return request;
}

}  // namespace

TEST(HarkServe, ACompletionIsGptGeneratesText) {
    const TestReply reply = demo_server().post("/v1/completions", completion(kPrompt));
    ASSERT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(reply.headers.at("content-type"), "application/json");
    const json answer = json::parse(reply.body);
    EXPECT_EQ(answer["object"], "text_completion");
    EXPECT_EQ(answer["model"], "gpt-demo");
    EXPECT_EQ(answer["choices"][0]["text"], generated(kPrompt));
    EXPECT_EQ(answer["choices"][0]["finish_reason"], "length");
    EXPECT_EQ(answer["usage"]["completion_tokens"], 20);
    EXPECT_EQ(answer["usage"]["total_tokens"], answer["usage"]["prompt_tokens"].get<int>() + 20);
}

TEST(HarkServe, AChatIsGptGeneratesAnswer) {
    const ProcessResult run =
        run_tool("gpt-generate",
                 {"--model", tiny().folder(), "--chat", "--temperature", "0", "--max-tokens", "12",
                  "--threads", "1", "--format", "jsonl"},
                 "Hello there");
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const json expected = json::parse(run.out);
    const TestReply reply = tiny().server().post("/v1/chat/completions", chat("Hello there"));
    ASSERT_EQ(reply.status, 200) << reply.body;
    const json answer = json::parse(reply.body);
    EXPECT_EQ(answer["object"], "chat.completion");
    const json& choice = answer["choices"][0];
    EXPECT_EQ(choice["message"]["role"], "assistant");
    EXPECT_EQ(choice["message"]["content"], expected["text"]);
    EXPECT_EQ(choice["finish_reason"], expected["finish_reason"]);
    EXPECT_EQ(answer["usage"]["prompt_tokens"], expected["prompt_tokens"]);
    EXPECT_EQ(answer["usage"]["completion_tokens"], expected["completion_tokens"]);
}

TEST(HarkServe, StreamedPartsAreTheWholeAnswer) {
    const json more = {{"n", 3}, {"temperature", 1}, {"seed", 5}};
    json streamed = more;
    streamed.update({{"stream", true}, {"stream_options", {{"include_usage", true}}}});
    const std::string completions = "/v1/completions", chats = "/v1/chat/completions";
    const json whole = json::parse(demo_server().post(completions, completion(kPrompt, more)).body);
    const TestReply parts = demo_server().post(completions, completion(kPrompt, streamed));
    const auto texts = streamed_texts(parts, false);
    ASSERT_EQ(texts.size(), 3u);
    for (const json& choice : whole["choices"])
        EXPECT_EQ(texts.at(choice["index"]), choice["text"]);
    EXPECT_NE(texts.at(0), texts.at(1));
    const auto events = events_of(parts.body);
    EXPECT_EQ(json::parse(events.front())["usage"], json());
    EXPECT_EQ(json::parse(events[events.size() - 2])["usage"]["completion_tokens"],
              whole["usage"]["completion_tokens"]);

    const json whole_chat = json::parse(tiny().server().post(chats, chat("Hi", more)).body);
    const TestReply chat_parts = tiny().server().post(chats, chat("Hi", streamed));
    const auto chat_texts = streamed_texts(chat_parts, true);
    for (const json& choice : whole_chat["choices"])
        EXPECT_EQ(chat_texts.at(choice["index"]), choice["message"]["content"]);
    const json first = json::parse(events_of(chat_parts.body).front());
    EXPECT_EQ(first["object"], "chat.completion.chunk");
    EXPECT_EQ(first["choices"][0]["delta"].dump(), R"({"content":"","role":"assistant"})");
}

TEST(HarkServe, StopStringsLogprobsAndEcho) {
    const std::string text = generated(kPrompt);
    const json stop = completion(kPrompt, {{"stop", "poor"}, {"echo", true}});
    json answer = json::parse(demo_server().post("/v1/completions", stop).body);
    EXPECT_EQ(answer["choices"][0]["text"], kPrompt + text.substr(0, text.find("poor")));
    EXPECT_EQ(answer["choices"][0]["finish_reason"], "stop");

    const json logprobs = completion(kPrompt, {{"logprobs", 2}});
    answer = json::parse(demo_server().post("/v1/completions", logprobs).body);
    const json of = answer["choices"][0]["logprobs"];
    ASSERT_EQ(of["tokens"].size(), 20u);
    std::string joined;
    for (size_t i = 0; i < 20; ++i) {
        EXPECT_EQ(of["text_offset"][i], joined.size());
        joined += of["tokens"][i].get<std::string>();
        EXPECT_EQ(of["top_logprobs"][i].size(), 2u);
        // The greedy token is the likeliest.
        EXPECT_EQ(of["top_logprobs"][i][of["tokens"][i].get<std::string>()],
                  of["token_logprobs"][i]);
    }
    EXPECT_EQ(joined, text);

    // What evaluations ask for: the prompt's tokens and theirs, here of a text that the model says.
    const json scores =
        completion(kPrompt + text, {{"logprobs", 1}, {"echo", true}, {"max_tokens", 1}});
    answer = json::parse(demo_server().post("/v1/completions", scores).body);
    const json& scored = answer["choices"][0]["logprobs"];
    const size_t prompt = scored["tokens"].size() - 1 - 20;
    EXPECT_EQ(scored["token_logprobs"][0], json());
    for (size_t i = 0; i < 20; ++i) {
        EXPECT_EQ(scored["tokens"][prompt + i], of["tokens"][i]);
        EXPECT_NEAR(scored["token_logprobs"][prompt + i].get<double>(),
                    of["token_logprobs"][i].get<double>(), 1e-3);
        EXPECT_EQ(scored["top_logprobs"][prompt + i].begin().key(), of["tokens"][i]);
    }

    const json chat_logprobs = chat("Hi", {{"logprobs", true}, {"top_logprobs", 1}});
    answer = json::parse(tiny().server().post("/v1/chat/completions", chat_logprobs).body);
    const json& content = answer["choices"][0]["logprobs"]["content"];
    EXPECT_EQ(content.size(), answer["usage"]["completion_tokens"].get<size_t>());
    EXPECT_EQ(content[0]["top_logprobs"][0]["logprob"], content[0]["logprob"]);
}

TEST(HarkServe, AnswersFitTheirSchema) {
    const json schema = {
        {"type", "object"},
        {"properties", {{"a", {{"enum", {"x", "y"}}}}, {"b", {{"type", "boolean"}}}}},
        {"required", {"a", "b"}},
        {"additionalProperties", false}};
    const json format = {{"type", "json_schema"},
                         {"json_schema", {{"name", "s"}, {"schema", schema}}}};
    const json more = {{"response_format", format}, {"max_tokens", 60}};
    const json answer =
        json::parse(demo_server().post("/v1/completions", completion("A:", more)).body);
    const json value = json::parse(answer["choices"][0]["text"].get<std::string>());
    EXPECT_TRUE(value["a"] == "x" || value["a"] == "y");
    EXPECT_TRUE(value["b"].is_boolean());
    EXPECT_EQ(answer["choices"][0]["finish_reason"], "stop");
    const json wrong = {{"type", "json_schema"}, {"json_schema", {{"schema", {{"type", "odd"}}}}}};
    expect_refused(
        demo_server().post("/v1/completions", completion("A:", {{"response_format", wrong}})), 400,
        "odd");
}

// A chat's choice, and the message of the same request as a stream, put together.
std::pair<json, json> answer(const Served& server, json request) {
    const TestReply whole = server.post("/v1/chat/completions", request);
    EXPECT_EQ(whole.status, 200) << whole.body;
    request["stream"] = true;
    json message = json::object(), reason;
    const TestReply parts = server.post("/v1/chat/completions", request);
    for (const std::string& event : events_of(parts.body)) {
        if (event == "[DONE]") continue;
        const json choice = json::parse(event)["choices"][0];
        for (const auto& [name, value] : choice["delta"].items())
            message[name] = value.is_string()
                                ? json(message.value(name, "") + value.get<std::string>())
                                : value;
        reason = choice["finish_reason"];
    }
    const json choice = json::parse(whole.body)["choices"][0];
    EXPECT_EQ(reason, choice["finish_reason"]);
    return {choice, message};
}

TEST(HarkServe, ReasoningIsApart) {
    const TemporaryDirectory directory;
    write_scripted_model(directory.path() / "thinks", "\n", "<think> model is</think> text file");
    const Served server({"--model", (directory.path() / "thinks").string()});
    const auto [reasoned, streamed] = answer(server, chat("Why?", {{"model", "thinks"}}));
    EXPECT_EQ(reasoned["message"]["content"], " text file");
    EXPECT_EQ(reasoned["message"]["reasoning_content"], " model is");
    EXPECT_EQ(reasoned["finish_reason"], "stop");
    EXPECT_EQ(streamed["content"], " text file");
    EXPECT_EQ(streamed["reasoning_content"], " model is");
}

TEST(HarkServe, CallsAreApart) {
    const TemporaryDirectory directory;
    const auto calls = directory.path() / "calls";
    json config = json::parse(kTinyConfig);
    config["eos_token_id"] = 2;  // 1 is a quotation mark, which JSON needs
    write_tiny_model(calls, config.dump(), "qwen2");
    write_text(calls / "chat_template.jinja", "{% if tools %}{{ tools | length }}{% endif %}\n");
    const Served server({"--model", calls.string()});
    // A model that can only call the tool.
    const json call = {{"name", "f"}, {"parameters", {{"a", "b"}}}};
    const json format = {{"type", "json_schema"}, {"json_schema", {{"schema", {{"const", call}}}}}};
    const json tools = {{{"type", "function"}, {"function", {{"name", "f"}}}}};
    const auto [called, parts] = answer(server, chat("Call", {{"model", "calls"},
                                                              {"tools", tools},
                                                              {"response_format", format},
                                                              {"max_tokens", 60}}));
    EXPECT_EQ(called["finish_reason"], "tool_calls");
    EXPECT_EQ(called["message"]["content"], json());
    const json function = called["message"]["tool_calls"][0]["function"];
    EXPECT_EQ(function["name"], "f");
    EXPECT_EQ(json::parse(function["arguments"].get<std::string>()), call["parameters"]);
    EXPECT_EQ(parts["tool_calls"][0]["function"], function);
    EXPECT_EQ(parts["tool_calls"][0]["index"], 0);
    EXPECT_EQ(parts["content"], "");
    // One that must.
    const json required = answer(server, chat("Call", {{"model", "calls"},
                                                       {"tools", tools},
                                                       {"tool_choice", "required"},
                                                       {"max_tokens", 60}}))
                              .first;
    EXPECT_EQ(required["finish_reason"], "tool_calls");
    EXPECT_EQ(required["message"]["tool_calls"][0]["function"],
              json({{"name", "f"}, {"arguments", "{}"}}));
    // One of two, whose arguments have a schema.
    const json city = {{"type", "object"},
                       {"properties", {{"city", {{"enum", {"Rome", "Oslo"}}}}}},
                       {"required", {"city"}},
                       {"additionalProperties", false}};
    json two = tools;
    two.push_back(
        {{"type", "function"}, {"function", {{"name", "weather"}, {"parameters", city}}}});
    const json weather = {{"type", "function"}, {"function", {{"name", "weather"}}}};
    const auto [named, named_parts] = answer(
        server,
        chat("Call",
             {{"model", "calls"}, {"tools", two}, {"tool_choice", weather}, {"max_tokens", 60}}));
    EXPECT_EQ(named["finish_reason"], "tool_calls");
    const json chosen = named["message"]["tool_calls"][0]["function"];
    EXPECT_EQ(chosen["name"], "weather");
    const json where = json::parse(chosen["arguments"].get<std::string>());
    EXPECT_TRUE(where == json({{"city", "Rome"}}) || where == json({{"city", "Oslo"}})) << where;
    EXPECT_EQ(named_parts["tool_calls"][0]["function"], chosen);
    // A template that knows no tools.
    expect_refused(tiny().server().post("/v1/chat/completions", chat("Hi", {{"tools", tools}})),
                   400, "takes no tools");
}

TEST(HarkServe, ManyAtOnceAreNotMixed) {
    constexpr size_t kClients = 16;
    std::vector<std::string> expected(kClients), got(kClients);
    const auto prompt_of = [](size_t i) {
        return "The number " + std::to_string(7919 * i) + " and the old man";
    };
    std::vector<std::thread> clients;
    for (size_t i = 0; i < kClients; ++i)
        clients.emplace_back([&, i] {
            const json more = {{"stream", i % 2 == 0}, {"max_tokens", 30}, {"echo", true}};
            const TestReply reply =
                demo_server().post("/v1/completions", completion(prompt_of(i), more));
            got[i] = i % 2 == 0 ? streamed_texts(reply, false)[0]
                                : json::parse(reply.body)["choices"][0]["text"].get<std::string>();
        });
    for (std::thread& client : clients) client.join();
    std::string lines;
    for (size_t i = 0; i < kClients; ++i) lines += json{{"prompt", prompt_of(i)}}.dump() + "\n";
    const ProcessResult run =
        generate({"--input-format", "jsonl", "--temperature", "0", "--max-tokens", "30"}, lines);
    const auto answers = lines_of(run.out);
    ASSERT_EQ(answers.size(), kClients);
    for (size_t i = 0; i < kClients; ++i)
        EXPECT_EQ(got[i], prompt_of(i) + json::parse(answers[i])["text"].get<std::string>());
}

TEST(HarkServe, SeveralPromptsAndTokensAreAnsweredInOrder) {
    const json ids = json::parse(
        demo_server().post("/tokenize", {{"model", "gpt-demo"}, {"prompt", kPrompt}}).body);
    EXPECT_EQ(ids["count"], ids["tokens"].size());
    const json text = json::parse(
        demo_server().post("/detokenize", {{"model", "gpt-demo"}, {"tokens", ids["tokens"]}}).body);
    EXPECT_EQ(text["prompt"], kPrompt);
    json request = completion("");
    request["prompt"] = {kPrompt, "He said"};
    const json two = json::parse(demo_server().post("/v1/completions", request).body);
    request["prompt"] = ids["tokens"];
    const json tokens = json::parse(demo_server().post("/v1/completions", request).body);
    ASSERT_EQ(two["choices"].size(), 2u);
    EXPECT_EQ(two["choices"][0]["text"], generated(kPrompt));
    EXPECT_EQ(two["choices"][1]["text"], generated("He said"));
    EXPECT_EQ(tokens["choices"][0]["text"], generated(kPrompt));
}

// The first are answered while the last are still tokenized.
TEST(HarkServe, AHundredPromptsInOneRequest) {
    json prompts = json::array();
    for (int i = 0; i < 100; ++i) prompts.push_back("Number " + std::to_string(i) + kPrompt);
    json request = completion("", {{"max_tokens", 2}, {"echo", true}});
    request["prompt"] = prompts;
    const json whole = json::parse(demo_server().post("/v1/completions", request).body);
    ASSERT_EQ(whole["choices"].size(), prompts.size());
    request["stream"] = true;
    const auto parts = streamed_texts(demo_server().post("/v1/completions", request), false);
    ASSERT_EQ(parts.size(), prompts.size());
    for (size_t i = 0; i < prompts.size(); ++i) {
        const std::string text = whole["choices"][i]["text"];
        EXPECT_EQ(text.find(prompts[i].get<std::string>()), 0u) << text;
        EXPECT_EQ(parts.at(static_cast<int>(i)), text);
    }
    // One that cannot be answered: none is.
    request["prompt"].push_back("");
    expect_refused(demo_server().post("/v1/completions", request), 400, "no tokens");
}

TEST(HarkServe, EmbeddingsAreThoseOfGptEmbed) {
    const ProcessResult run =
        run_tool("gpt-embed", {"--model", kGptDemo, "--threads", "1", "--dimensions", "8"},
                 "one\ntwo words\n");
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const auto lines = lines_of(run.out);
    json request = {{"model", "gpt-demo"}, {"input", {"one", "two words"}}, {"dimensions", 8}};
    const json floats = json::parse(demo_server().post("/v1/embeddings", request).body);
    request["encoding_format"] = "base64";
    const json base64 = json::parse(demo_server().post("/v1/embeddings", request).body);
    for (size_t i = 0; i < 2; ++i) {
        const json& vector = floats["data"][i]["embedding"];
        const json expected = json::parse(lines[i])["embedding"];
        ASSERT_EQ(vector.size(), 8u);
        for (size_t c = 0; c < 8; ++c)
            EXPECT_NEAR(vector[c].get<double>(), expected[c].get<double>(), 1e-6);
        EXPECT_EQ(base64["data"][i]["embedding"].get<std::string>().size(), 44u);  // of 32 bytes
    }
    EXPECT_GT(floats["usage"]["prompt_tokens"], 0);
    request["dimensions"] = 100000;
    expect_refused(demo_server().post("/v1/embeddings", request), 400, "dimensions");
    request["dimensions"] = 8;
    request["input"] = "";
    expect_refused(demo_server().post("/v1/embeddings", request), 400, "no tokens");
}

TEST(HarkServe, ModelsHealthAndMetricsAreListed) {
    const json models = json::parse(demo_server().get("/v1/models").body);
    EXPECT_EQ(models["object"], "list");
    EXPECT_EQ(models["data"][0]["id"], "gpt-demo");
    EXPECT_EQ(json::parse(demo_server().get("/v1/models/gpt-demo").body), models["data"][0]);
    EXPECT_EQ(demo_server().get("/v1/models/other").status, 404);
    const TestReply health = demo_server().get("/health");
    EXPECT_EQ(health.status, 200);
    EXPECT_EQ(health.body, R"({"status":"ok"})");
    const std::string tokens = "hark_generation_tokens_total", model = "{model_name=\"gpt-demo\"}";
    const double before = demo_server().metric(tokens + model);
    demo_server().post("/v1/completions", completion(kPrompt));
    EXPECT_EQ(demo_server().metric(tokens + model), before + 20);
    EXPECT_EQ(demo_server().metric("hark_num_requests_running" + model), 0);
}

TEST(HarkServe, AConnectionTakesManyRequests) {
    TestClient client(demo_server().address());
    for (int i = 0; i < 3; ++i) EXPECT_EQ(client.get("/health").status, 200);
    const std::string body = completion(kPrompt, {{"max_tokens", 2}}).dump();
    const std::string request =
        request_text("POST", "/v1/completions", body, {"Content-Type: application/json"});
    client.send(request + request);  // at once
    const TestReply one = client.receive(), other = client.receive();
    EXPECT_EQ(json::parse(one.body)["choices"], json::parse(other.body)["choices"]);
    // A refused request does not end it.
    EXPECT_EQ(client.post("/v1/completions", "{").status, 400);
    EXPECT_EQ(client.get("/health").status, 200);
    // Chunks, and a client that asks before it sends.
    client.send(
        "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n");
    EXPECT_EQ(client.read_some(), "HTTP/1.1 100 Continue\r\n\r\n");
    char size[16];
    std::snprintf(size, sizeof size, "%zx\r\n", body.size() - 1);
    client.send(size + body.substr(0, body.size() - 1) + "\r\n1\r\n" + body.back() +
                "\r\n0\r\n\r\n");
    EXPECT_EQ(json::parse(client.receive().body)["choices"], json::parse(one.body)["choices"]);
}
