// Models of any repository on the real binaries, from a server that answers as Hugging Face does.

#include "core/json/json.h"
#include "support/fake_hub.h"
#include "support/family_folder.h"
#include "support/tiny_gguf.h"
#include "tools/hark_model.h"

namespace hark::test {
namespace {

constexpr const char* kToken = "hf_aVeryPrivateToken";

class HarkModelGet : public HarkModel {
  protected:
    // With the server of Hugging Face at `hub`, and no token but in `environment`.
    ProcessResult at(const FakeHub& hub, const std::string& command,
                     const std::string& environment = "") {
        return shell("unset HF_TOKEN HF_HOME HF_TOKEN_PATH XDG_CACHE_HOME; export HF_ENDPOINT='" +
                     hub.url() + "' " + environment + "; " + command);
    }
    void write_ggufs() const {
        write_text(source_.path() / "m-f32.gguf", tiny_gguf()[0]);
        const std::vector<std::string> parts = tiny_gguf(2);
        write_text(source_.path() / "m-Q8_0-00001-of-00002.gguf", parts[0]);
        write_text(source_.path() / "m-Q8_0-00002-of-00002.gguf", parts[1]);
    }

    TemporaryDirectory source_;
};

void expect_parts(const std::string& text, const std::vector<std::string>& parts) {
    for (const std::string& part : parts)
        EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' not in: " << text;
}

TEST_F(HarkModelGet, AGgufIsAModelEverywhere) {
    write_ggufs();
    const FakeHub hub("owner/ggufs", source_.path());
    const ProcessResult got = at(hub, "hark-model get owner/ggufs:F32");
    EXPECT_EQ(got.exit_code, 0) << got.err;
    const std::string path = (models() / "owner/ggufs:F32/m-f32.gguf").string();
    EXPECT_EQ(got.out, path + "\n");
    expect_parts(got.err, {"get: owner/ggufs:F32: 1 file, ",
                           " MB, from " + hub.url() + ", commit " + FakeHub::kCommit +
                               ", licence apache-2.0\n",
                           "owner/ggufs:F32 is the default gpt model now\n"});
    EXPECT_EQ(at(hub, "hark-model get owner/ggufs:f32").err, "");  // is there already
    const ProcessResult parts = at(hub, "hark-model get owner/ggufs:q8_0");
    EXPECT_EQ(parts.exit_code, 0) << parts.err;
    EXPECT_NE(parts.err.find("owner/ggufs:Q8_0: 2 files, "), std::string::npos) << parts.err;

    const std::string line = listed("owner/ggufs:F32");
    EXPECT_EQ(line.front(), '*');
    expect_parts(line, {" gpt ", " GGUF ", " 1 layers of 16 ", " apache-2.0 ", path});
    const auto list = nlohmann::json::parse(hark_model("list -f json").out);
    EXPECT_EQ(list[1]["name"], "owner/ggufs:Q8_0");
    EXPECT_EQ(list[1]["license"], "apache-2.0");
    EXPECT_EQ(list[1]["repository"], "owner/ggufs");
    EXPECT_EQ(list[1]["bytes"].get<size_t>(),
              tiny_gguf(2)[0].size() + tiny_gguf(2)[1].size() +
                  fs::file_size(models() / "owner/ggufs:Q8_0/hark-model.json"));

    const ProcessResult info = hark_model("info owner/ggufs:f32");
    EXPECT_EQ(info.exit_code, 0) << info.err;
    expect_parts(info.out,
                 {"family          gpt2\n", "parameters      ", "stored          f32 ",
                  "context memory  32 tokens: f32 0.0 MB, f16 0.0 MB\n", "chat template   none\n",
                  "end of text     <|endoftext|> (4095)\n", "repository      owner/ggufs\n",
                  "revision        main\n", "commit          " + FakeHub::kCommit + "\n",
                  "license         apache-2.0\n", "attention qkv f32; "});
    EXPECT_EQ(hark_model("verify owner/ggufs:F32").exit_code, 0);
    EXPECT_EQ(hark_model("verify owner/ggufs:Q8_0").exit_code, 0);
    const std::string generate = "gpt-generate --prompt Once --max-tokens 5 --temperature 0";
    const ProcessResult one = shell(generate + " --model owner/ggufs:F32");
    EXPECT_EQ(one.exit_code, 0) << one.err;
    EXPECT_EQ(shell(generate).out, one.out);  // the default
    EXPECT_EQ(shell(generate + " --model owner/ggufs:q8_0").out, one.out);
    EXPECT_EQ(hark_model("use owner/ggufs:Q8_0").exit_code, 0);
    EXPECT_EQ(listed("owner/ggufs:Q8_0").front(), '*');

    expect_fails_without_output(shell(generate + " --model owner/ggufs"), 1,
                                "; give owner/ggufs:F32, owner/ggufs:Q8_0\n");
    expect_fails_without_output(shell(generate + " --model who/knows"), 1,
                                "run: hark model get who/knows");
    const ProcessResult removed = hark_model("rm owner/ggufs:q8_0");
    EXPECT_EQ(removed.exit_code, 0) << removed.err;
    EXPECT_NE(removed.err.find("it was the default gpt model"), std::string::npos);
    EXPECT_EQ(hark_model("rm owner/ggufs:F32").exit_code, 0);
    EXPECT_TRUE(fs::is_empty(models())) << shell("ls -laR " + models().string()).out;
}

TEST_F(HarkModelGet, AProfileTellsTheNetworkFromTheDisk) {
    write_ggufs();
    const FakeHub hub("owner/ggufs", source_.path());
    const std::string trace = home_.path() / "trace";
    const ProcessResult got =
        at(hub, "hark-model get owner/ggufs:F32 --profile '" + trace + "' --stats");
    EXPECT_EQ(got.exit_code, 0) << got.err;
    expect_parts(got.err, {"wait.in", "hash", "write"});
    expect_parts(read_text(trace), {"\"hark-model get.wait.in\"", "\"hark-model get.hash\"",
                                    "\"hark-model get.write\""});
}

TEST_F(HarkModelGet, AFolderOfSafetensorsIsAModelEverywhere) {
    write_tiny_qwen2(source_.path());
    const FakeHub hub("owner/tiny", source_.path());
    const ProcessResult got = at(hub, "hark-model get owner/tiny@main");
    EXPECT_EQ(got.exit_code, 0) << got.err;
    EXPECT_EQ(got.out, (models() / "owner/tiny").string() + "\n");
    const ProcessResult info = hark_model("info owner/tiny");
    expect_parts(info.out, {"family          qwen2\n", "chat template   yes\n",
                            "context memory  128 tokens: f32 0.1 MB, f16 0.0 MB\n",
                            "attention q f32; attention k f32; ", "license         apache-2.0\n"});
    const auto json = nlohmann::json::parse(hark_model("info owner/tiny -f json").out);
    // 2 layers of 2 heads of 16 channels, keys and values.
    EXPECT_EQ(json["context_memory"][0]["f32"], 2 * 2 * 2 * 16 * 128 * 4);
    EXPECT_EQ(json["types"]["mlp_down"]["f32"], 2);
    EXPECT_EQ(json["end_of_text"][0]["id"], 1);
    EXPECT_EQ(hark_model("verify owner/tiny").exit_code, 0);
    const ProcessResult text =
        shell("gpt-generate --model owner/tiny --chat --prompt hi --max-tokens 3");
    EXPECT_EQ(text.exit_code, 0) << text.err;
    EXPECT_EQ(hark_model("rm owner/tiny").exit_code, 0);
}

TEST_F(HarkModelGet, AWhisperFolderTranscribes) {
    const FakeHub hub("me/whisper", kDemo);
    const ProcessResult got = at(hub, "hark-model get me/whisper");
    EXPECT_EQ(got.exit_code, 0) << got.err;
    const std::string mel = "mel < '" + (samples_dir() / "key.wav").string() + "' | ";
    const ProcessResult text = shell(mel + "whisper-transcribe --model me/whisper");
    EXPECT_EQ(text.exit_code, 0) << text.err;
    EXPECT_EQ(text.out, shell(mel + "whisper-transcribe --model demo").out);
    // A repository of the list has the list's name, and its own.
    const FakeHub listed("openai/whisper-tiny", kDemo);
    EXPECT_EQ(at(listed, "hark-model get openai/whisper-tiny").out,
              (models() / "whisper-tiny").string() + "\n");
    EXPECT_EQ(shell(mel + "whisper-transcribe --model openai/whisper-tiny").out, text.out);
    EXPECT_EQ(hark_model("rm openai/whisper-tiny").exit_code, 0);
}

TEST_F(HarkModelGet, TheTokenIsInNoMessageAndNoFile) {
    write_ggufs();
    FakeHub hub("owner/ggufs", source_.path());
    hub.token = kToken;
    const std::string get = "hark-model get owner/ggufs:F32 -v";
    expect_fails_without_output(
        at(hub, get), 1,
        "owner/ggufs: this repository is gated (HTTP status 401); accept its licence at "
        "https://huggingface.co/owner/ggufs and set HF_TOKEN");
    const ProcessResult wrong = at(hub, get, "HF_TOKEN=hf_another");
    expect_fails_without_output(wrong, 1, "gated (HTTP status 403); your token gives no access");
    EXPECT_EQ(wrong.err.find("hf_another"), std::string::npos);
    hub.cut = 10'000;
    const ProcessResult broken =
        at(hub, "timeout -s INT 5 " + get, std::string("HF_TOKEN=") + kToken);
    EXPECT_NE(broken.exit_code, 0);
    EXPECT_EQ((broken.out + broken.err).find(kToken), std::string::npos);
    EXPECT_NE(shell("grep -rl 127.0.0.1 '" + models().string() + "'").out, "");
    EXPECT_EQ(shell("grep -rl " + std::string(kToken) + " '" + models().string() + "'").out, "");
    hub.cut = SIZE_MAX;
    fs::create_directories(home_.path() / ".cache/huggingface");
    write_text(home_.path() / ".cache/huggingface/token", std::string(kToken) + "\n");
    const ProcessResult got = at(hub, get);
    EXPECT_EQ(got.exit_code, 0) << got.err;
    EXPECT_EQ((got.out + got.err).find(kToken), std::string::npos);
    EXPECT_NE(hub.stored_requests().back().range, "");  // continued
    for (const HttpRequest& r : hub.stored_requests()) EXPECT_EQ(r.authorization, "");
    EXPECT_EQ(shell("grep -rl " + std::string(kToken) + " '" + models().string() + "'").out, "");
}

TEST_F(HarkModelGet, ErrorsNameWhatIsWrong) {
    write_ggufs();
    FakeHub hub("owner/ggufs", source_.path());
    expect_fails_without_output(
        at(hub, "hark-model get owner/ggufs"), 1,
        "owner/ggufs: the repository holds GGUF files; give owner/ggufs:TYPE or "
        "owner/ggufs:FILE (it has F32, Q8_0)");
    expect_fails_without_output(at(hub, "hark-model get owner/ggufs:Q4_K_M"), 1,
                                "no GGUF file of type 'Q4_K_M' (it has F32, Q8_0)");
    expect_fails_without_output(
        at(hub, "hark-model get owner/ggufs:none.gguf"), 1,
        "no file 'none.gguf' (it has m-Q8_0-00001-of-00002.gguf, m-f32.gguf)");
    expect_fails_without_output(at(hub, "hark-model get owner/ggufs@v9:F32"), 1,
                                "has no revision 'v9'");
    expect_fails_without_output(
        at(hub, "hark-model get owner/none:F32"), 1,
        "owner/none: this repository is gated, private or not there (HTTP status 401)");
    expect_fails_without_output(at(hub, "hark-model get owner/../x"), 2,
                                "expected OWNER/NAME[@REVISION]");
    expect_fails_without_output(at(hub, "hark-model get owner/ggufs:../x.gguf"), 2,
                                "expected a file's name or a type after :");
    expect_fails_without_output(
        at(hub, "hark-model get owner/ggufs:F32", "HF_ENDPOINT=http://example.org"), 1,
        "HF_ENDPOINT: expected an https address");
    hub.busy = 1;
    hub.retry_after = "7200";
    expect_fails_without_output(at(hub, "hark-model get owner/ggufs:F32"), 1,
                                "it asks to wait 7200 seconds");
    hub.more_files = {"..\\..\\x.gguf"};
    expect_fails_without_output(at(hub, "hark-model get owner/ggufs:F32"), 1,
                                "expected a file's name, found");
    EXPECT_TRUE(fs::is_empty(models())) << shell("ls -laR " + models().string()).out;
}

TEST_F(HarkModelGet, ALocalGgufSaysItsOwnLicense) {
    write_text(home_.path() / "x.gguf", tiny_gguf()[0]);
    EXPECT_NE(hark_model("info '" + (home_.path() / "x.gguf").string() + "'")
                  .out.find("license         mit\n"),
              std::string::npos);
    fs::create_directories(home_.path() / "alone");
    fs::rename(home_.path() / "x.gguf", home_.path() / "alone/x.gguf");
    EXPECT_EQ(hark_model("info '" + (home_.path() / "alone").string() + "'").exit_code, 0);
}

}  // namespace
}  // namespace hark::test
