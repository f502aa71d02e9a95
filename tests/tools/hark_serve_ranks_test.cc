// hark-serve as two processes under mpirun, on the CPU: its answers are those of one, and the two
// end together.
#include <fstream>
#include <sstream>

#include "tools/hark_serve.h"

namespace hark::test {
namespace {

namespace fs = std::filesystem;

// A server of two processes, of which the first one answers.
class ServedByTwo {
  public:
    ServedByTwo() : server_(Served::ByShell(), command(folder_.path().string())) {}

    Served& operator*() { return server_; }
    Served* operator->() { return &server_; }
    void signal(int rank, int number) const { ::kill(pid_of(rank), number); }

  private:
    // The processes are found by a variable.
    static std::string command(const std::string& mark) {
        return concat("env SERVED_BY='", mark, "' ", mpirun(2, 300), "'",
                      (build_dir() / "bin/hark-serve").string(),
                      "' --port 0 --threads 1 --device cpu --only-named --model '", kGptDemo, "'");
    }
    pid_t pid_of(int rank) const {
        for (const fs::directory_entry& process : fs::directory_iterator("/proc")) {
            std::ifstream file(process.path() / "environ");
            std::stringstream variables;
            variables << file.rdbuf();
            const std::string all = variables.str();
            if (all.find("SERVED_BY=" + folder_.path().string()) != all.npos &&
                all.find(concat("OMPI_COMM_WORLD_RANK=", rank)) != all.npos)
                return std::stoi(process.path().filename().string());
        }
        throw Error(concat("no process of rank ", rank));
    }

    TemporaryDirectory folder_;
    Served server_;
};

std::vector<std::string> texts_of(const TestReply& reply) {
    EXPECT_EQ(reply.status, 200) << reply.body;
    std::vector<std::string> texts;
    const json answer = json::parse(reply.body);
    for (const json& choice : answer["choices"]) texts.push_back(choice["text"]);
    return texts;
}

}  // namespace

TEST(HarkServeRanks, TwoAnswerAsOne) {
    const Served one({"--device", "cpu", "--only-named", "--model", kGptDemo});
    ServedByTwo two;
    for (const json& more :
         {json::object(), json{{"temperature", 1.2}, {"seed", 7}, {"n", 3}},
          json{{"regex", "([a-z]{1,4} ){3}[0-9]{2}"}, {"max_tokens", 60}},
          json{{"prompt", json::array({"Once upon", "A dog and a cat", "The old woman"})}},
          json{{"logprobs", 2}, {"echo", true}, {"stop", "."}},
          json{{"logit_bias", {{"13", -100}}}, {"repetition_penalty", 1.3}}}) {
        const json asked = completion("Once upon a time", more);
        EXPECT_EQ(texts_of(two->post("/v1/completions", asked)),
                  texts_of(one.post("/v1/completions", asked)))
            << more;
    }
    const json streamed = completion("A dog", {{"stream", true}});
    EXPECT_EQ(streamed_texts(two->post("/v1/completions", streamed), false),
              streamed_texts(one.post("/v1/completions", streamed), false));
    // What the engine is never asked for leaves no trace in the other process.
    expect_refused(two->post("/v1/completions", completion("x", {{"max_tokens", 1 << 20}})), 400,
                   "context");
    const json vectors = {{"model", "gpt-demo"}, {"input", {"a dog", "a cat and a dog"}}};
    const auto vector_of = [&](const TestReply& reply) {
        EXPECT_EQ(reply.status, 200) << reply.body;
        return json::parse(reply.body)["data"][1]["embedding"].get<std::vector<float>>();
    };
    const std::vector<float> expected = vector_of(one.post("/v1/embeddings", vectors)),
                             found = vector_of(two->post("/v1/embeddings", vectors));
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-5);
    two.signal(0, SIGTERM);
    EXPECT_EQ(two->tool().wait(), 0) << two->tool().err();
}

TEST(HarkServeRanks, OneThatIsKilledEndsTheServer) {
    ServedByTwo two;
    two.signal(1, SIGKILL);
    EXPECT_NE(two->tool().wait(), 0);
    expect_contains(two->tool().err(), "signal 9");
}

TEST(HarkServeRanks, WhatIsNotSharedIsRefused) {
    const auto refused = [](const std::string& more, int status, const std::string& part) {
        const ProcessResult result =
            run_shell(mpirun(2, 120) + "hark-serve --port 0 --threads 1 --device cpu " + more);
        EXPECT_EQ(result.exit_code, status) << result.err;
        expect_contains(result.err, part);
    };
    refused("-m demo", 2, "several processes need --only-named");
    refused(concat("--only-named --model '", kSpeechDemo, "'"), 1,
            "several processes compute one language model (--model names 0)");
    expect_fails(run_tool("hark-serve", {"--gpus", "2", "--device", "cpu"}), 2,
                 "--gpus needs --device cuda (got cpu)");
    expect_fails(run_tool("hark-serve", {"--gpus", "2"}), 2, "--gpus: needs --only-named");
}

}  // namespace hark::test
