// Requests of OpenAI's API, read, and refused by the name of the field that is wrong.
#include "serve/openai/requests.h"

#include <gtest/gtest.h>

#include "gpt/answers/constraint.h"
#include "serve/web/web_error.h"
#include "support/expect.h"
#include "text/constrain/grammar_states.h"

namespace hark::serve {
namespace {

using nlohmann::json;
using test::expect_contains;

const json kChat = {{"model", "m"}, {"messages", {{{"role", "user"}, {"content", "hi"}}}}};

json with(json request, const json& more) {
    request.update(more);
    return request;
}

gpt::GenerateOptions options_of(const TextQuery& query) {
    return query.prompt.settings.over(gpt::GenerateOptions(), 0);
}

// The message and the field of the refusal.
template <class Read>
std::pair<std::string, std::string> refusal_of(const Read& read, const std::string& body) {
    try {
        read(body);
    } catch (const WebError& why) {
        EXPECT_EQ(why.status, 400);
        return {why.what(), why.param};
    }
    return {"none", "none"};
}

void expect_refused(const json& more, const std::string& field, const std::string& message) {
    const auto [what, param] = refusal_of(read_chat, with(kChat, more).dump());
    EXPECT_EQ(param, field) << more;
    expect_contains(what, message);
}

TEST(ServeRequests, ChatsHaveOpenAisFields) {
    const json more = {{"temperature", 0.5},
                       {"top_p", 0.9},
                       {"top_k", 3},
                       {"max_completion_tokens", 7},
                       {"seed", 11},
                       {"stop", {"a", "b"}},
                       {"n", 2},
                       {"logprobs", true},
                       {"top_logprobs", 4},
                       {"presence_penalty", 1},
                       {"logit_bias", {{"5", -1}}},
                       {"response_format", {{"type", "json_object"}}},
                       {"stream", true},
                       {"stream_options", {{"include_usage", true}}},
                       {"parallel_tool_calls", false},
                       {"chat_template_kwargs", {{"enable_thinking", false}}},
                       {"reasoning_effort", "low"},
                       {"user", "someone"},
                       {"temperature_of_the_room", nullptr}};
    const TextQuery query = read_chat(with(kChat, more).dump());
    EXPECT_EQ(query.model, "m");
    EXPECT_TRUE(query.is_chat && query.streams && query.streams_usage && query.one_call);
    EXPECT_EQ(query.prompt.messages.dump(), kChat["messages"].dump());
    EXPECT_EQ(query.prompt.arguments.dump(),
              R"({"enable_thinking":false,"reasoning_effort":"low"})");
    const gpt::GenerateOptions options = options_of(query);
    EXPECT_EQ(options.sampler.temperature, 0.5);
    EXPECT_EQ(options.sampler.top_k, 3);
    EXPECT_EQ(options.max_tokens, 7);
    EXPECT_EQ(options.seed, 11);
    EXPECT_EQ(options.samples, 2);
    EXPECT_EQ(options.stop, (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(options.logprobs, 4);
    EXPECT_EQ(options.constraint.kind, gpt::ConstraintRequest::Kind::json_object);
}

TEST(ServeRequests, DevelopersAreTheSystemAndToolsMayBeTurnedOff) {
    const json request = {
        {"model", "m"},
        {"messages", {{{"role", "developer"}, {"content", {{{"type", "text"}, {"text", "x"}}}}}}},
        {"tools", {{{"type", "function"}, {"function", {{"name", "f"}}}}}}};
    EXPECT_EQ(read_chat(request.dump()).prompt.messages[0]["role"], "system");
    EXPECT_EQ(read_chat(request.dump()).prompt.tools.size(), 1u);
    EXPECT_TRUE(read_chat(with(request, {{"tool_choice", "none"}}).dump()).prompt.tools.empty());
    EXPECT_EQ(read_chat(with(request, {{"tool_choice", "auto"}}).dump()).prompt.tools.size(), 1u);
}

TEST(ServeRequests, ACallMayBeRequired) {
    const auto tool = [](const char* name, const json& parameters) {
        return json{{"type", "function"},
                    {"function", {{"name", name}, {"parameters", parameters}}}};
    };
    const json leaf = {{"type", "object"},
                       {"properties", {{"at", {{"$ref", "#/$defs/at"}}}}},
                       {"required", {"at"}},
                       {"additionalProperties", false}};
    const auto tree = [&](const char* value) {
        json schema = leaf;
        schema["$defs"] = {{"at", {{"const", value}}}};
        return schema;
    };
    const json request = {{"tools", {tool("f", tree("here")), tool("g", tree("there"))}}};
    const auto fits = [&](const json& choice, const std::string& text) {
        const TextQuery query =
            read_chat(with(kChat, with(request, {{"tool_choice", choice}})).dump());
        const GrammarAutomaton automaton(gpt::constraint_grammar(options_of(query).constraint));
        GrammarStates states(automaton);
        GrammarStates::State state = states.start();
        for (const char byte : text) state = states.next(state, static_cast<uint8_t>(byte));
        return states.can_end(state);
    };
    const json named = {{"type", "function"}, {"function", {{"name", "g"}}}};
    const std::string f = R"({"name": "f", "arguments": {"at": "here"}})",
                      g = R"({"name": "g", "arguments": {"at": "there"}})";
    EXPECT_TRUE(fits("required", f));
    EXPECT_TRUE(fits("required", g));
    EXPECT_FALSE(fits("required", R"({"name": "g", "arguments": {"at": "here"}})"));
    EXPECT_FALSE(fits("required", "No."));
    EXPECT_TRUE(fits(named, g));
    EXPECT_FALSE(fits(named, f));
    const auto refused = [&](const json& more, const std::string& field, const std::string& why) {
        expect_refused(with(request, more), field, why);
    };
    refused({{"tool_choice", {{"type", "function"}, {"function", {{"name", "h"}}}}}}, "tool_choice",
            "no tool is named h");
    refused({{"tool_choice", "required"}, {"regex", "a"}}, "regex", "tool_choice");
    refused({{"tool_choice", "required"}, {"tools", {tool("f", {{"type", "string"}})}}}, "tools",
            "f: parameters");
    refused({{"tool_choice", "required"}, {"tools", {{{"type", "other"}}}}}, "tools", "names");
}

TEST(ServeRequests, WrongFieldsAreRefusedByName) {
    expect_refused({{"temprature", 1}}, "temprature", "is not supported");
    expect_refused({{"functions", json::array()}}, "functions", "is not supported");
    expect_refused({{"model", 3}}, "model", "expected a text, found number");
    expect_refused({{"model", nullptr}}, "model", "is required");
    expect_refused({{"messages", nullptr}}, "messages", "is required");
    expect_refused({{"messages", json::array()}}, "messages", "a list of objects");
    expect_refused({{"messages", {{{"content", "x"}}}}}, "messages", "role");
    expect_refused({{"messages", {{{"role", "user"}, {"content", 3}}}}}, "messages", "content");
    const json image = {{"type", "image_url"}, {"image_url", {{"url", "http://a"}}}};
    expect_refused({{"messages", {{{"role", "user"}, {"content", {image}}}}}}, "messages",
                   "found image_url");
    expect_refused({{"stream", "yes"}}, "stream", "true or false");
    expect_refused({{"stream_options", {{"include_usage", true}}}}, "stream_options", "stream");
    expect_refused({{"stream", true}, {"stream_options", {{"other", true}}}}, "stream_options",
                   "include_usage");
    expect_refused({{"temperature", "hot"}}, "temperature", "expected a number");
    expect_refused({{"max_tokens", 0}}, "max_tokens", "expected a whole number from 1");
    expect_refused({{"n", 129}}, "n", "128");
    expect_refused({{"top_logprobs", 3}}, "top_logprobs", "needs logprobs");
    expect_refused({{"stop", {""}}}, "stop", "none of them empty");
    expect_refused({{"response_format", {{"type", "xml"}}}}, "response_format", "json_schema");
    expect_refused({{"tools", 3}}, "messages", "tools: expected a list");
    expect_refused({{"tool_choice", "required"}}, "tool_choice", "there are no tools");
    expect_refused({{"tool_choice", "always"}}, "tool_choice", "found \"always\"");
    expect_refused({{"chat_template_kwargs", 3}}, "chat_template_kwargs", "an object");
}

TEST(ServeRequests, BodiesAreJsonObjects) {
    const auto message = [](const std::string& body) { return refusal_of(read_chat, body).first; };
    expect_contains(message("{"), "is not JSON");
    expect_contains(message(""), "is not JSON");
    expect_contains(message("[1]"), "expected a JSON object, found array");
    expect_contains(message(std::string(100, '[')), "nested deeper");
    expect_contains(message(R"({"model": "\ud800"})"), "surrogate");
}

TEST(ServeRequests, CompletionsHaveTextsOrTokens) {
    const auto query_of = [](const json& prompt) {
        return read_completion(json{{"model", "m"}, {"prompt", prompt}, {"logprobs", 3}}.dump());
    };
    EXPECT_EQ(query_of("a").texts[0].text, "a");
    EXPECT_EQ(query_of({"a", "b"}).texts[1].text, "b");
    EXPECT_EQ(*query_of({1, 2}).texts[0].ids, (std::vector<int32_t>{1, 2}));
    const TextQuery query = query_of({{1, 2}, {3}});
    ASSERT_EQ(query.texts.size(), 2u);
    EXPECT_EQ(*query.texts[1].ids, (std::vector<int32_t>{3}));
    EXPECT_EQ(query.max_tokens, 16);
    EXPECT_EQ(options_of(query).logprobs, 3);
}

TEST(ServeRequests, WhatCompletionsDoNotHaveIsRefused) {
    const auto expect = [](const json& more, const std::string& field) {
        const json request = with({{"model", "m"}, {"prompt", "a"}}, more);
        EXPECT_EQ(refusal_of(read_completion, request.dump()).second, field) << more;
    };
    expect({{"best_of", 2}}, "best_of");
    expect({{"prompt", json(std::vector<std::string>(17, "a"))}, {"n", 128}}, "n");
    expect({{"suffix", "b"}}, "suffix");
    expect({{"echo", true}, {"logprobs", 1}, {"stream", true}}, "stream");
    expect({{"logprobs", true}}, "logprobs");
    expect({{"logprobs", 21}}, "logprobs");
    expect({{"messages", json::array()}}, "messages");
    for (const json& prompt : {json(3), json::array(), json({1, "a"}), json({-1}), json({1.5}),
                               json({{1}, json::array()}), json(std::vector<std::string>(3000))})
        expect({{"prompt", prompt}}, "prompt");
}

TEST(ServeRequests, EmbeddingsAndTokens) {
    const EmbeddingQuery embedding = read_embedding(
        R"({"model": "m", "input": ["a"], "encoding_format": "base64", "dimensions": 4})");
    EXPECT_TRUE(embedding.is_base64);
    EXPECT_EQ(embedding.dimensions, 4);
    EXPECT_EQ(refusal_of(read_embedding, R"({"model": "m", "input": "a", "dimensions": 0})").second,
              "dimensions");
    EXPECT_EQ(
        refusal_of(read_embedding, R"({"model": "m", "input": "a", "encoding_format": 1})").second,
        "encoding_format");
    EXPECT_EQ(read_tokenize(R"({"model": "m", "prompt": "a"})").text, "a");
    EXPECT_EQ(refusal_of(read_tokenize, R"({"model": "m"})").second, "prompt");
    EXPECT_EQ(read_detokenize(R"({"model": "m", "tokens": [1, 2]})").ids.size(), 2u);
    EXPECT_EQ(refusal_of(read_detokenize, R"({"model": "m", "tokens": ["a"]})").second, "tokens");
}

}  // namespace
}  // namespace hark::serve
