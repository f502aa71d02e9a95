// hark-serve with installed models that it reads when a request names them.
#include <csignal>
#include <cstdlib>
#include <thread>

#include "support/web_socket.h"
#include "tools/hark_serve.h"

using namespace hark::test;

namespace {

namespace fs = std::filesystem;

const std::string kCompletions = "/v1/completions";

// A folder of installed models, in place of the user's own.
class Installed {
  public:
    Installed() { ::setenv("XDG_DATA_HOME", home_.path().c_str(), 1); }
    ~Installed() { ::unsetenv("XDG_DATA_HOME"); }
    Installed(const Installed&) = delete;

    fs::path models() const { return home_.path() / "hark/models"; }
    fs::path add_tiny(const std::string& name) const {
        write_tiny_qwen2(models() / name);
        return models() / name;
    }
    // A model of zeros whose reading takes a while, and little room on the disk.
    void add_slow(const std::string& name) const {
        json config = json::parse(kTinyConfig);
        config.update({{"hidden_size", 1024},
                       {"intermediate_size", 4096},
                       {"num_hidden_layers", 6},
                       {"num_attention_heads", 16},
                       {"num_key_value_heads", 8}});
        add_hollow(name, config);
    }
    // A model of that config whose file has no values, which are zeros then.
    void add_hollow(const std::string& name, const json& config) const {
        const fs::path folder = add_tiny(name);
        write_text(folder / "config.json", config.dump());
        const auto specs = hark::gpt::tensor_specs(hark::gpt::parse_config(config.dump(), name));
        const hark::SafetensorsHeader header = tiny_header(specs, "model.");
        const std::string text = hark::format_safetensors_header(header);
        write_text(folder / "model.safetensors", text);
        fs::resize_file(folder / "model.safetensors", text.size() + header.data_bytes);
    }

  private:
    TemporaryDirectory home_;
};

json of_model(const std::string& model, const json& more = json::object()) {
    json request = completion("Once upon a time", {{"model", model}, {"max_tokens", 4}});
    request.update(more);
    return request;
}

std::string request_of(const std::string& model, const json& more = json::object()) {
    return request_text("POST", kCompletions, of_model(model, more).dump(),
                        {"Content-Type: application/json"});
}

std::string label(const std::string& metric, const std::string& model) {
    return "hark_model_" + metric + "{model_name=\"" + model + "\"}";
}

// The listed model, or null.
json listed(const Served& server, const std::string& name) {
    const json models = json::parse(server.get("/v1/models").body);
    for (const json& model : models["data"])
        if (model["id"] == name) return model;
    return nullptr;
}

}  // namespace

TEST(HarkServeModels, AreReadWhenARequestNamesThem) {
    const Installed installed;
    const std::string folder = installed.add_tiny("own/tiny").string();
    const Served server;
    json model = listed(server, "own/tiny");
    EXPECT_EQ(model["loaded"], false);
    EXPECT_EQ(model["max_model_len"], 128);
    EXPECT_EQ(model["endpoints"],
              json({"/v1/chat/completions", "/v1/completions", "/v1/embeddings"}));
    const ProcessResult run =
        run_tool("gpt-generate",
                 {"--model", folder, "--temperature", "0", "--max-tokens", "4", "--threads", "1"},
                 "Once upon a time");
    const TestReply reply = server.post(kCompletions, of_model("own/tiny"));
    ASSERT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(json::parse(reply.body)["choices"][0]["text"].get<std::string>() + "\n", run.out);
    EXPECT_EQ(listed(server, "own/tiny")["loaded"], true);
    EXPECT_EQ(server.metric(label("loaded", "own/tiny")), 1);
    EXPECT_GT(server.metric(label("memory_bytes", "own/tiny")), 0);
    // A model of another kind, by the name that tools take.
    TestClient client(server.address());
    client.send(form_request("/v1/audio/transcriptions", read_text(samples_dir() / "hat.wav"),
                             {{"model", "demo"}}));
    expect_contains(client.receive().body, "sat down by the fire");
    EXPECT_EQ(server.metric(label("loads_total", "whisper-demo")), 1);
    // Both are one name in the list, and others of each outside it.
    EXPECT_EQ(listed(server, "demo")["endpoints"].size(), 5u);
    EXPECT_EQ(listed(server, "gpt-demo"), nullptr);
    EXPECT_EQ(json::parse(server.get("/v1/models/demo").body), listed(server, "demo"));
    const json whisper = json::parse(server.get("/v1/models/whisper-demo").body);
    EXPECT_EQ(whisper["endpoints"],
              json({"/v1/audio/transcriptions", "/v1/audio/translations", "/v1/audio/live"}));
    EXPECT_EQ(whisper["loaded"], true);
    EXPECT_EQ(json::parse(server.get("/v1/models/gpt-demo").body)["loaded"], false);
    // The same model is not read again for its other name.
    EXPECT_EQ(server.post("/tokenize", {{"model", "gpt-demo"}, {"prompt", "a"}}).status, 200);
    EXPECT_EQ(server.post("/detokenize", {{"model", "demo"}, {"tokens", {1}}}).status, 200);
    EXPECT_EQ(server.post("/v1/embeddings", {{"model", "demo"}, {"input", "a"}}).status, 200);
    EXPECT_EQ(server.metric(label("loads_total", "gpt-demo")), 1);
}

TEST(HarkServeModels, ALiveSessionWaitsForItsModel) {
    const Installed installed;
    const Served server;
    TestSocket socket(server.address(), "/v1/audio/live?model=whisper-demo&language=en");
    ASSERT_EQ(socket.reply().status, 101);
    socket.send_sound(read_text(samples_dir() / "hat.wav").substr(44));
    socket.send_text("end");
    std::string lines;
    SocketMessage message;
    while ((message = socket.receive()).opcode == 1) lines += message.data;
    EXPECT_EQ(message.code, 1000);
    expect_contains(lines, "sat down by the fire");
    TestSocket other(server.address(), "/v1/audio/live?model=other");
    expect_refused(other.reply(), 404, "no Whisper model 'other'");
    TestSocket text(server.address(), "/v1/audio/live?model=gpt-demo");
    EXPECT_EQ(text.receive().code, 1008);
}

TEST(HarkServeModels, NamesLeadToInstalledModelsAlone) {
    const Installed installed;
    const fs::path tiny = installed.add_tiny("tiny"), outside = installed.models().parent_path();
    installed.add_tiny(".hidden");
    fs::copy(tiny, outside / "outside", fs::copy_options::recursive);
    fs::create_symlink(outside / "outside", installed.models() / "gpt-default");
    const Served server;
    for (const std::string& name :
         {tiny.string(), std::string("../outside"), std::string("tiny/../../outside"),
          std::string("./tiny"), std::string("tiny/../tiny"), std::string("tiny/"),
          std::string(".hidden"), std::string("~"), std::string("default"),
          std::string("gpt-default"), std::string("tiny\0", 5), std::string("tiny\n"),
          std::string(100000, 'a'), std::string("a/b/c")}) {
        const TestReply reply = server.post(kCompletions, of_model(name));
        EXPECT_EQ(reply.status, 404) << name.substr(0, 50);
        EXPECT_EQ(json::parse(reply.body)["error"]["code"], "model_not_found");
    }
    EXPECT_EQ(server.post(kCompletions, of_model("tiny")).status, 200);
}

TEST(HarkServeModels, OthersAreRefusedIfOnlyNamedOnesServe) {
    const Installed installed;
    installed.add_tiny("tiny");
    const Served server({"--model", "gpt-demo", "--only-named"});
    expect_refused(server.post(kCompletions, of_model("tiny")), 404, "no language model 'tiny'");
    EXPECT_EQ(server.post(kCompletions, of_model("gpt-demo")).status, 200);
    EXPECT_EQ(json::parse(server.get("/v1/models").body)["data"].size(), 1u);
    EXPECT_EQ(server.get("/v1/models/tiny").status, 404);
    expect_fails(run_tool("hark-serve", {"--only-named"}), 2, "needs --model");
}

TEST(HarkServeModels, ABrokenModelIsNamedAndTheServerGoesOn) {
    const Installed installed;
    const fs::path cut = installed.add_tiny("cut"), wrong = installed.add_tiny("wrong");
    fs::resize_file(cut / "model.safetensors", 5000);
    write_text(wrong / "config.json", "{\"model_type\": \"qwen2\"}");
    fs::create_directories(installed.models() / "empty");
    Served server({"--model", "gpt-demo"});
    for (const std::string name : {"cut", "wrong", "empty"}) {
        const TestReply reply = server.post(kCompletions, of_model(name));
        expect_refused(reply, 500, "the model '" + name + "' cannot be read: " + name);
        EXPECT_EQ(reply.body.find(installed.models().string()), std::string::npos) << reply.body;
        EXPECT_EQ(listed(server, name), json());
    }
    EXPECT_EQ(server.metric(label("load_failures_total", "cut")), 1);
    EXPECT_EQ(server.post(kCompletions, of_model("gpt-demo")).status, 200);
    server.tool().signal(SIGTERM);
    EXPECT_EQ(server.tool().wait(), 0);
    expect_contains(server.tool().err(), (cut / "model.safetensors").string());
}

TEST(HarkServeModels, AModelThatDoesNotFitIsRefusedWithBothFigures) {
    const Installed installed;
    json config = json::parse(kTinyConfig);
    config.update({{"vocab_size", 1 << 24}, {"hidden_size", 8192}, {"num_attention_heads", 64}});
    installed.add_hollow("huge", config);
    const Served server;
    const TestReply reply = server.post(kCompletions, of_model("huge"));
    expect_refused(reply, 503, "no memory for the model 'huge': it needs ");
    expect_contains(reply.body, " GB for all models ");
    EXPECT_EQ(reply.headers.at("retry-after"), "1");
    EXPECT_EQ(json::parse(reply.body)["error"]["code"], "insufficient_memory");
    EXPECT_EQ(server.post(kCompletions, of_model("demo")).status, 200);
    expect_fails(run_tool("hark-serve", {"--model", "huge"}), 1, "no memory for the models");
}

TEST(HarkServeModels, AreUnloadedOnceNobodyUsesThem) {
    const Installed installed;
    installed.add_tiny("tiny");
    const Served server({"--model", "demo", "--keep-alive", "0.01"});
    TestClient client(server.address());
    client.send(request_of("tiny", {{"stream", true}, {"max_tokens", 100}, {"n", 64}}));
    std::string text = client.read_some();
    expect_contains(text, "200 OK");
    EXPECT_EQ(server.metric(label("loaded", "tiny")), 1);
    for (std::string more; text.find("[DONE]") == text.npos; text += more)
        ASSERT_FALSE((more = client.read_some()).empty());
    await_metric(server, label("loaded", "tiny"), 0);
    await_metric(server, label("unloads_total", "tiny"), 1);
    EXPECT_EQ(server.metric(label("memory_bytes", "tiny")), 0);
    EXPECT_EQ(server.post(kCompletions, of_model("tiny")).status, 200);
    EXPECT_EQ(server.metric(label("loads_total", "tiny")), 2);
    EXPECT_EQ(server.metric(label("loaded", "demo")), 2);
    EXPECT_EQ(server.metric(label("unloads_total", "demo")), 0);
}

TEST(HarkServeModels, ManyClientsWhileModelsComeAndGo) {
    const Installed installed;
    installed.add_tiny("tiny");
    installed.add_tiny("own/tiny");
    const Served server({"--keep-alive", "0"});
    const std::vector<std::string> models = {"tiny", "own/tiny", "demo"};
    std::vector<std::string> expected;
    for (const std::string& model : models)
        expected.push_back(
            json::parse(server.post(kCompletions, of_model(model)).body)["choices"].dump());
    std::vector<std::thread> clients;
    for (size_t i = 0; i < 9; ++i)
        clients.emplace_back([&, i] {
            for (size_t k = i; k < i + 6; ++k) {
                const TestReply reply =
                    server.post(kCompletions, of_model(models[k % models.size()]));
                EXPECT_EQ(reply.status, 200) << reply.body;
                EXPECT_EQ(json::parse(reply.body)["choices"].dump(), expected[k % models.size()]);
                TestClient leaves(server.address());
                leaves.send(request_of(models[(k + 1) % models.size()], {{"stream", true}}));
            }
        });
    for (std::thread& client : clients) client.join();
    for (const std::string model : {"tiny", "own/tiny", "gpt-demo"})
        await_metric(server, label("loaded", model), 0);
}

TEST(HarkServeModels, OthersGoOnWhileAModelIsReadAndSigtermWaitsForIt) {
    const Installed installed;
    installed.add_slow("slow");
    installed.add_tiny("tiny");
    Served server({"--model", "gpt-demo"});
    TestClient one(server.address()), other(server.address()), queued(server.address());
    const json one_token = {{"max_tokens", 1}};
    one.send(request_of("slow", one_token));
    other.send(request_of("slow", one_token));
    EXPECT_EQ(server.get("/health").status, 200);
    EXPECT_EQ(server.post(kCompletions, of_model("gpt-demo", one_token)).status, 200);
    EXPECT_EQ(listed(server, "slow")["loaded"], false);
    queued.send(request_of("tiny"));
    EXPECT_EQ(server.get("/metrics").body.find(label("loads_total", "slow")), std::string::npos);
    server.tool().signal(SIGTERM);
    expect_refused(queued.receive(), 503, "about to end");
    EXPECT_EQ(one.receive().status, 200);
    EXPECT_EQ(other.receive().status, 200);
    EXPECT_EQ(server.tool().wait(), 0);
    EXPECT_EQ(lines_of(server.tool().err()).size(), 1u) << server.tool().err();
}
