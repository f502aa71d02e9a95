// hark-model's contract, on the real binary; the demonstration models stand in for published ones.
#include <gtest/gtest.h>

#include "support/http_server.h"
#include "support/process.h"

using namespace hark::test;

namespace {

namespace fs = std::filesystem;

const fs::path kDemo = source_dir() / "models/whisper-demo";

class HarkModel : public ::testing::Test {
  protected:
    // With a $HOME of the test's own.
    ProcessResult hark_model(const std::string& arguments) {
        return shell("hark-model " + arguments);
    }
    ProcessResult shell(const std::string& command) {
        return run_shell("export HOME='" + home_.path().string() + "'; " + command);
    }
    fs::path models() const { return home_.path() / ".local/share/hark/models"; }
    // The line of `hark-model list` that tells of a model.
    std::string listed(const std::string& name) {
        const ProcessResult list = hark_model("list");
        EXPECT_EQ(list.exit_code, 0) << list.err;
        const size_t at = list.out.find(" " + name + " ");
        if (at == std::string::npos) return "";
        const size_t begin = list.out.rfind('\n', at) + 1;
        return list.out.substr(begin, list.out.find('\n', at) - begin);
    }

    TemporaryDirectory home_;
};

void expect_fails(const ProcessResult& result, int exit_code, const std::string& part) {
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    EXPECT_NE(result.err.find(part), std::string::npos)
        << "'" << part << "' not in: " << result.err;
    EXPECT_EQ(result.out, "");
}

HttpResponse mirror(const HttpRequest& request) {
    const std::string folder = "/openai/whisper-tiny/resolve/main/";
    const fs::path file = kDemo / fs::path(request.path).filename();
    if (!request.path.starts_with(folder) || !fs::exists(file)) return {404};
    HttpResponse response = in_parts(request, read_text(file));
    response.headers["ETag"] = "\"v1\"";
    return response;
}

TEST_F(HarkModel, AModelIsFetchedChosenListedAndTranscribes) {
    const HttpServer server(mirror);
    const ProcessResult got = hark_model("get tiny --from " + server.url());
    EXPECT_EQ(got.exit_code, 0) << got.err;
    EXPECT_EQ(got.out, (models() / "whisper-tiny").string() + "\n");
    EXPECT_EQ(got.err, "");
    EXPECT_EQ(listed("whisper-tiny").front(), ' ');

    const ProcessResult used = hark_model("use tiny");
    EXPECT_EQ(used.exit_code, 0) << used.err;
    EXPECT_EQ(fs::read_symlink(models() / "whisper-default"), "whisper-tiny");
    const std::string line = listed("whisper-tiny");
    EXPECT_EQ(line.front(), '*');
    EXPECT_NE(line.find("4 + 4 layers of 256"), std::string::npos) << line;
    EXPECT_EQ(listed("gpt-demo").front(), ' ');

    const ProcessResult text =
        shell("mel < '" + (samples_dir() / "key.wav").string() + "' | whisper-transcribe");
    EXPECT_EQ(text.exit_code, 0) << text.err;
    EXPECT_NE(text.out, "");
}

TEST_F(HarkModel, ADefaultIsReplaced) {
    EXPECT_EQ(hark_model("use whisper-demo").exit_code, 0);
    EXPECT_EQ(fs::read_symlink(models() / "whisper-default"), fs::canonical(kDemo));
    fs::copy(kDemo, home_.path() / "mine", fs::copy_options::recursive);
    EXPECT_EQ(hark_model("use '" + (home_.path() / "mine/").string() + "'").exit_code, 0);
    EXPECT_EQ(fs::read_symlink(models() / "whisper-default"), fs::canonical(home_.path() / "mine"));
    // The other kind's is its own, and nothing else is left behind.
    EXPECT_EQ(hark_model("use gpt-demo").exit_code, 0);
    size_t entries = 0;
    for (const auto& entry : fs::directory_iterator(models())) entries += entry.is_symlink();
    EXPECT_EQ(entries, 2u);
    expect_fails(hark_model("use demo"), 2, "there are whisper-demo and gpt-demo");
    expect_fails(hark_model("use absent"), 1, "'absent'");
    fs::remove(models() / "gpt-default");
    fs::create_directory(models() / "gpt-default");
    expect_fails(hark_model("use gpt-demo"), 1, "gpt-default: expected a link or nothing");
}

TEST_F(HarkModel, ABrokenModelIsNamedAndTheOthersListed) {
    fs::create_directories(models() / "whisper-broken");
    write_text(models() / "whisper-broken/config.json", "{\"model_type\": \"bert\"}");
    fs::create_directories(models() / ".whisper-base.part");
    const ProcessResult list = hark_model("list");
    EXPECT_EQ(list.exit_code, 1);
    EXPECT_NE(list.err.find("whisper-broken: "), std::string::npos) << list.err;
    EXPECT_NE(list.err.find("found bert"), std::string::npos) << list.err;
    EXPECT_EQ(list.out.find(".part"), std::string::npos) << list.out;
    EXPECT_NE(list.out.find("whisper-demo"), std::string::npos) << list.out;
}

TEST_F(HarkModel, AFullDiskLeavesWhatHasCome) {
    const HttpServer server(mirror);
    // A limit on the size of files: 4 MB, of the weights' 18.
    expect_fails(shell("trap '' XFSZ; ulimit -f 4000; hark-model get tiny --from " + server.url()),
                 1, "model.safetensors.part: cannot write");
    EXPECT_FALSE(fs::exists(models() / "whisper-tiny"));
    const ProcessResult got = hark_model("get tiny --from " + server.url());
    EXPECT_EQ(got.exit_code, 0) << got.err;
    EXPECT_EQ(server.requests().back().range, "bytes=4096000-");
    EXPECT_EQ(read_text(models() / "whisper-tiny/model.safetensors"),
              read_text(kDemo / "model.safetensors"));
}

TEST_F(HarkModel, TwoAtOnceDoNotMeet) {
    const HttpServer server(mirror);
    fs::create_directories(models() / ".whisper-tiny.part");
    expect_fails(shell("flock '" + (models() / ".whisper-tiny.part").string() +
                       "' hark-model get tiny --from " + server.url()),
                 1, "another hark-model fetches this model right now");
}

TEST_F(HarkModel, WrongCommandLines) {
    expect_fails(hark_model(""), 2, "expected a command");
    expect_fails(hark_model("fetch"), 2, "found 'fetch'");
    expect_fails(hark_model("get"), 2, "expected the NAME of a model, found 0 arguments");
    expect_fails(hark_model("get tiny base"), 2, "found 2 arguments");
    expect_fails(hark_model("get huge"), 2, "no published model 'huge': expected one of tiny, ");
    expect_fails(hark_model("get tiny --from file:///tmp"), 2, "--from: expected http");
    expect_fails(hark_model("list all"), 2, "takes no files");
    expect_fails(shell("unset HOME; hark-model get tiny"), 1, "expected $HOME");
    const ProcessResult nobody = hark_model("get tiny --from http://127.0.0.1:9");
    expect_fails(nobody, 1, "http://127.0.0.1:9/openai/whisper-tiny/resolve/main/config.json: ");
}

TEST_F(HarkModel, EachCommandHasItsHelp) {
    const ProcessResult help = hark_model("--help");
    EXPECT_EQ(help.exit_code, 0) << help.err;
    for (const std::string command : {"get", "list", "use"}) {
        EXPECT_NE(help.out.find("hark-model " + command + " "), std::string::npos) << help.out;
        const ProcessResult its = hark_model(command + " --help");
        EXPECT_EQ(its.exit_code, 0) << its.err;
        EXPECT_EQ(its.out.rfind("Usage: hark-model " + command + " [OPTION]...", 0), 0u) << its.out;
    }
}

}  // namespace
