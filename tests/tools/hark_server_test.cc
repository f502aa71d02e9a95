// hark transcribe and hark ask with --server: they print what their pipes print.
#include <algorithm>

#include "support/scripted_model.h"
#include "tools/hark_serve.h"
#include "tools/pipelines.h"

namespace hark::test {
namespace {

// A server with a model that reasons and the demonstration's, which are one name.
class AskedServer {
  public:
    AskedServer() {
        write_scripted_model(thinker(), "\n", "<think> model is</think> text file");
        server_ = std::make_unique<Served>(
            std::vector<std::string>{"--model", thinker(), "--model", "demo"});
    }
    std::string thinker() const { return (directory_.path() / "thinker").string(); }
    std::string flag() const { return " --server " + server_->address() + " "; }

  private:
    TemporaryDirectory directory_;
    std::unique_ptr<Served> server_;
};

AskedServer& asked() {
    static AskedServer asked;
    return asked;
}

std::string sample(const std::string& name) { return "'" + (samples_dir() / name).string() + "' "; }

void expect_equal_runs(const std::string& here, const std::string& there,
                       const std::string& input = "") {
    const ProcessResult local = run_shell(here, input), served = run_shell(there, input);
    EXPECT_EQ(local.exit_code, 0) << here << local.err;
    EXPECT_NE(local.out, "") << here;
    EXPECT_EQ(served.exit_code, 0) << there << served.err;
    EXPECT_EQ(served.out, local.out) << there;
    EXPECT_EQ(served.err, local.err) << there;
}

void expect_one_line(const ProcessResult& result, int exit_code, const std::string& part) {
    expect_fails_without_output(result, exit_code, part);
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_EQ(result.err.rfind("hark ", 0), 0u) << result.err;
}

}  // namespace

TEST(TranscribeByServer, PrintsWhatThePipePrints) {
    const std::string served = "hark transcribe --model demo" + asked().flag();
    const std::string local = "hark transcribe --model demo --threads 1 ";
    for (const std::string& words :
         {sample("room.m4a") + "-f srt", sample("train.wav") + "--format=vtt -l en",
          sample("sea.wav") + sample("silence.wav") + sample("key.wav"),
          sample("vater.wav") + "--task translate", sample("vater.wav") + "--language German",
          sample("train.wav") + "--vad --temperature 0.2 --initial-prompt 'A; train' -l auto"})
        expect_equal_runs(local + words, served + words);
    // The only Whisper model in the server's memory; a name that is not listed.
    for (const std::string model : {"", "--model whisper-demo "}) {
        const ProcessResult named =
            run_shell("hark transcribe " + model + sample("sea.wav") + asked().flag());
        EXPECT_EQ(named.exit_code, 0) << named.err;
        EXPECT_EQ(named.out, std::string(kSea) + "\n");
    }
    expect_equal_runs(local + "-", served + "-", read_text(samples_dir() / "hat.wav"));
}

TEST(TranscribeByServer, GoesOnAfterARecordingThatIsBroken) {
    Folder folder;
    write_text(folder.path() / "bad.wav", "no audio at all");
    folder.copy("sea.wav", "a \"b\"; c.wav");
    folder.copy("key.wav", "-key.wav");
    const ProcessResult result =
        run_shell("cd '" + folder.path().string() + "' && hark transcribe --model demo" +
                  asked().flag() + "bad.wav 'a \"b\"; c.wav' none.wav -- -key.wav");
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(result.out.rfind(std::string(kSea) + "\n\n", 0), 0u) << result.out;
    expect_contains(result.out, kKey);
    expect_contains(result.err, "hark transcribe: bad.wav: file: cannot be decoded: ");
    expect_contains(result.err, "hark transcribe: none.wav: cannot read this recording\n");
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 2) << result.err;
}

TEST(TranscribeByServer, PrintsWhatThereIsOfACutRecording) {
    const std::string half = read_text(samples_dir() / "story.mp3").substr(0, 80270);
    const std::string command = "hark transcribe --model demo -";
    const ProcessResult local = run_shell(command + " --threads 1 --allow-truncated", half);
    const ProcessResult served = run_shell(command + asked().flag(), half);
    EXPECT_EQ(served.exit_code, 0) << served.err;
    EXPECT_NE(served.out, "");
    EXPECT_EQ(served.out, local.out);
}

TEST(AskByServer, PrintsWhatThePipePrints) {
    const std::string demo = "--model demo --whisper-model demo --language en ";
    for (const std::string& words :
         {sample("sea.wav") + "'Is it {}, or {}?'", sample("sea.wav") + "'Who?' --seed 7 --top-k 9",
          sample("story.mp3") + "'Who?' --temperature 0 --max-tokens 30 --stop , --stop ' \"q\"'"})
        expect_equal_runs("hark ask --threads 1 " + demo + words,
                          "hark ask " + demo + asked().flag() + words);
    const std::string chat = "--whisper-model demo --language en --chat --system 'Be brief.' " +
                             sample("sea.wav") + "'Who lives there?' --model ";
    for (const std::string quiet : {"", " --quiet"})
        expect_equal_runs("hark ask --threads 1 " + chat + asked().thinker() + quiet,
                          "hark ask " + asked().flag() + chat + "thinker" + quiet);
    expect_one_line(run_shell("hark ask " + demo + asked().flag() + sample("silence.wav") + "Who?"),
                    1, "silence.wav: nothing is said");
}

TEST(ByServer, TakesTheOnlyModelAndAKeyThatIsInNoArgument) {
    Folder folder;
    const std::string keys = (folder.path() / "keys").string();
    write_text(keys, "# of this machine\n\nsk-\\\"right\"\r\n");
    write_text(folder.path() / "wrong", "sk-wrong");
    fs::create_directories(folder.path() / "bin");
    write_text(folder.path() / "bin/curl", "#!/bin/sh\necho \"$@\" >> '" +
                                               (folder.path() / "seen").string() +
                                               "'\nPATH=\"${PATH#*:}\" exec curl \"$@\"\n");
    fs::permissions(folder.path() / "bin/curl", fs::perms::owner_all);
    const Served server(
        {"--model", "demo", "--socket", (folder.path() / "socket").string(), "--api-keys", keys});
    const std::string command = " PATH='" + (folder.path() / "bin").string() +
                                "':$PATH hark transcribe " + sample("sea.wav") + "--server " +
                                server.address();
    const std::string text = std::string(kSea) + "\n";
    ProcessResult result = run_shell(command + " --api-key-file '" + keys + "'");
    EXPECT_EQ(result.out, text) << result.err;
    result = run_shell("HARK_API_KEY='sk-\\\"right\"'" + command);
    EXPECT_EQ(result.out, text) << result.err;
    // Nothing goes through a proxy, where no server is here.
    result = run_shell(
        "http_proxy=http://127.0.0.1:1 ALL_PROXY=http://127.0.0.1:1 "
        "HARK_API_KEY='sk-\\\"right\"'" +
        command);
    EXPECT_EQ(result.out, text) << result.err;
    const std::string refused = "the key is missing or wrong; give --api-key-file FILE";
    expect_one_line(run_shell(command), 1, refused);
    expect_one_line(run_shell("HARK_API_KEY=sk-wrong" + command), 1, refused);
    // The file goes before the variable.
    expect_one_line(run_shell("HARK_API_KEY='sk-\\\"right\"'" + command + " --api-key-file '" +
                              (folder.path() / "wrong").string() + "'"),
                    1, refused);
    const std::string seen = folder.text("seen");
    expect_contains(seen, "/v1/audio/transcriptions");
    EXPECT_EQ(seen.find("sk-"), std::string::npos) << seen;
}

TEST(ByServer, SaysWhatIsWrong) {
    const std::string transcribe = "hark transcribe " + sample("sea.wav");
    const std::string ask = "hark ask " + sample("sea.wav") + "Who? ";
    for (const std::string& command : {transcribe, ask})
        for (const std::string address : {"http://127.0.0.1:1", "unix:/nowhere/socket"})
            expect_one_line(run_shell(command + "--server " + address), 1,
                            address + ": cannot connect; is hark-serve running there?");
    const std::string flag = asked().flag();
    const struct {
        std::string command;
        int exit_code;
        const char* part;
    } kWrong[] = {
        {ask + flag, 1, "expected --model NAME, one of thinker, demo"},
        {transcribe + flag + "-m other", 1,
         "no model 'other' answers at /v1/audio/transcriptions; expected one of demo"},
        {transcribe + flag + "-m thinker", 1,
         "no model 'thinker' answers at /v1/audio/transcriptions; expected one of demo"},
        {ask + flag + "-m demo --whisper-model gpt-demo", 1,
         "no model 'gpt-demo' answers at /v1/audio/transcriptions; expected one of demo"},
        {ask + flag + "-m demo --whisper-model demo --chat", 1, "has no chat template"},
        {transcribe + flag + "-m demo -l Klingon", 1, "no language 'Klingon' (status 400)"},
        {transcribe + flag + "--threads 2", 2, "--threads: not an option with --server"},
        {transcribe + flag + "--overwrite", 2, "--overwrite: not an option with --server"},
        {ask + flag + "--regex a", 2, "--regex: not an option with --server"},
        {ask + flag + "--show-pipe", 2, "--show-pipe: not an option with --server"},
        {ask + flag + "--seed x", 2, "--seed: expected a number, got 'x'"},
        {ask + flag + "--system x", 2, "--system needs --chat"},
        {transcribe + flag + "-f json", 2, "expected text, srt or vtt with --server"},
        {transcribe + sample("key.wav") + flag + "-f srt", 2, "holds one recording, got 2"},
        {"hark transcribe ." + flag, 2, "expected recordings, got the folder '.'"},
        {transcribe + "--server 127.0.0.1:1", 2, "expected http://HOST:PORT or unix:PATH"},
        {transcribe + "--server http://a/v1", 2, "expected http://HOST:PORT or unix:PATH"},
        {ask + "--api-key-file /dev/null", 2, "--api-key-file: needs --server"},
        {ask + flag + "--api-key-file /dev/null", 1, "/dev/null: no key"},
        {ask + flag + "--api-key-file /nowhere", 1, "/nowhere: cannot read this file"},
    };
    for (const auto& wrong : kWrong)
        expect_one_line(run_shell(wrong.command), wrong.exit_code, wrong.part);
}

TEST(ByServer, RefusesWhatIsNoHarkServe) {
    Folder folder;
    for (const auto& [status, part] : {std::pair("200", "the answer is not one of hark-serve"),
                                       {"502", "not one of hark-serve (status 502)"}}) {
        write_text(folder.path() / "curl", std::string("#!/bin/sh\nprintf ") + status + "\n");
        fs::permissions(folder.path() / "curl", fs::perms::owner_all);
        expect_one_line(run_shell("PATH='" + folder.path().string() + "':$PATH hark transcribe " +
                                  sample("sea.wav") + "--server http://localhost"),
                        1, part);
    }
}

}  // namespace hark::test
