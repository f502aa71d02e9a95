// hark-model verify, remove, list and info, on the real binary.

#include "core/json/json.h"
#include "support/http_server.h"
#include "tools/hark_model.h"

namespace hark::test {
namespace {

TEST_F(HarkModel, VerifyReadsEveryTensor) {
    const ProcessResult sound = hark_model("verify whisper-demo");
    EXPECT_EQ(sound.exit_code, 0) << sound.err;
    EXPECT_NE(sound.out.find("167 tensors of 9522688 values are finite"), std::string::npos)
        << sound.out;
    // Infinity in f16, in the last value of the file.
    fs::copy(kDemo, home_.path() / "broken", fs::copy_options::recursive);
    std::string weights = read_text(kDemo / "model.safetensors");
    weights[weights.size() - 2] = 0;
    weights[weights.size() - 1] = 0x7c;
    write_text(home_.path() / "broken/model.safetensors", weights);
    const ProcessResult broken = hark_model("verify '" + (home_.path() / "broken/").string() + "'");
    EXPECT_EQ(broken.exit_code, 1);
    const std::string where = (home_.path() / "broken/model.safetensors").string();
    EXPECT_EQ(broken.err.find("hark-model verify: " + where + ": "), 0u) << broken.err;
    EXPECT_NE(broken.err.find(": expected finite values, found one that is not"), std::string::npos)
        << broken.err;
    const std::string mel = "mel < '" + (samples_dir() / "key.wav").string() + "' | ";
    expect_fails_without_output(
        shell(mel + "whisper-transcribe --model '" + (home_.path() / "broken/").string() + "'"), 1,
        where + ": weights: found a value that is not a finite number");
    expect_fails_without_output(hark_model("verify whisper-demo --at-most 5"), 2,
                                "--at-most needs --reference FILE and recordings");
    expect_fails_without_output(hark_model("verify whisper-demo --reference x a.wav b.wav a.wav"),
                                2, "a.wav: given twice");
    expect_fails_without_output(
        hark_model("verify whisper-demo --dtype f16"), 2,
        "--device, --dtype and --threads need --reference FILE and recordings");
    EXPECT_NE(broken.out.find("166 tensors"), std::string::npos) << broken.out;
}

TEST_F(HarkModel, VerifyComparesTranscriptsWithTheirReference) {
    const std::string key = (samples_dir() / "key.wav").string();
    const ProcessResult said =
        shell("audio-decode '" + key + "' | mel | whisper-transcribe --model demo --format jsonl");
    ASSERT_EQ(said.exit_code, 0) << said.err;
    const fs::path reference = home_.path() / "reference.jsonl";
    write_text(reference, said.out);
    const std::string command =
        "verify whisper-demo --reference '" + reference.string() + "' '" + key + "'";
    const ProcessResult same = hark_model(command);
    EXPECT_EQ(same.exit_code, 0) << same.err;
    EXPECT_NE(same.out.find(key + ": as expected\n"), std::string::npos) << same.out;
    EXPECT_NE(same.out.find("word error rate 0% of "), std::string::npos) << same.out;

    std::string changed = said.out;
    const size_t text = changed.find("\"text\"");
    const size_t word = changed.find(' ', changed.find_first_not_of(" :\"", text + 6));
    changed.insert(word, " xylophone");
    write_text(reference, changed);
    const ProcessResult other = hark_model(command);
    EXPECT_EQ(other.exit_code, 1);
    EXPECT_NE(other.out.find(key + ": word 2: expected 'xylophone', found nothing\n"),
              std::string::npos)
        << other.out;
    EXPECT_NE(other.err.find("at most 0% is allowed"), std::string::npos) << other.err;
    EXPECT_EQ(hark_model(command + " --at-most 20").exit_code, 0);
    EXPECT_EQ(hark_model(command + " /none.wav").exit_code, 1);
    write_text(reference, "{\"source\": \"other.wav\", \"text\": \"word\"}\n");
    const ProcessResult unknown = hark_model(command);
    EXPECT_EQ(unknown.exit_code, 1);
    EXPECT_NE(unknown.err.find("key.wav: no reference of this name"), std::string::npos)
        << unknown.err;
    EXPECT_EQ(unknown.out.find("word error rate"), std::string::npos) << unknown.out;
    write_text(reference, "{\"source\": \"key.wav\", \"text\": \"\"}\n");
    const ProcessResult silent = hark_model(command);
    EXPECT_EQ(silent.exit_code, 1);
    EXPECT_NE(silent.out.find(" words, expected none"), std::string::npos) << silent.out;
    expect_fails_without_output(hark_model("verify whisper-demo '" + key + "'"), 2,
                                "recordings need --reference FILE");
    expect_fails_without_output(hark_model("verify gpt-demo --reference x '" + key + "'"), 1,
                                "a GPT model cannot transcribe recordings");
}

TEST_F(HarkModel, ThePipelineThatVerifiesAnOfficialModel) {
    const HttpServer server(mirror);
    const std::string key = (samples_dir() / "key.wav").string();
    const ProcessResult said = shell("mel < '" + key + "' | whisper-transcribe --model demo");
    ASSERT_EQ(said.exit_code, 0) << said.err;
    const std::string verify = "'" + (source_dir() / "pipelines/verify-official.sh").string() +
                               "' --from " + server.url() + " --audio '" + key + "' --text ";
    const std::string text = said.out.substr(0, said.out.find_last_not_of('\n') + 1);
    const ProcessResult same = shell(verify + "'\"" + text + "\"' tiny");
    EXPECT_EQ(same.exit_code, 0) << same.err;
    EXPECT_NE(same.out.find("key.wav: as expected"), std::string::npos) << same.out;
    const ProcessResult other = shell(verify + "'something else' tiny");
    EXPECT_EQ(other.exit_code, 1) << other.err;
    EXPECT_EQ(other.out.find("as expected"), std::string::npos) << other.out;
    EXPECT_NE(other.err.find("at most 0% is allowed"), std::string::npos) << other.err;
    EXPECT_EQ(shell(verify).exit_code, 2);
}

TEST_F(HarkModel, AModelIsRemoved) {
    fs::create_directories(models() / "owner");
    fs::copy(kDemo, models() / "whisper-mine", fs::copy_options::recursive);
    fs::copy(kDemo, models() / "owner/model", fs::copy_options::recursive);
    fs::copy(kDemo, home_.path() / "elsewhere", fs::copy_options::recursive);
    fs::create_directories(models() / ".whisper-base.part");
    EXPECT_EQ(hark_model("use mine").exit_code, 0);
    const ProcessResult removed = hark_model("rm mine");
    EXPECT_EQ(removed.exit_code, 0) << removed.err;
    EXPECT_EQ(removed.out, (models() / "whisper-mine").string() + "\n");
    EXPECT_NE(removed.err.find("it was the default whisper model"), std::string::npos);
    EXPECT_EQ(hark_model("rm owner/model").exit_code, 0);
    EXPECT_EQ(hark_model("rm base").exit_code, 0);
    EXPECT_TRUE(fs::is_empty(models())) << shell("ls -la " + models().string()).out;

    expect_fails_without_output(hark_model("rm demo"), 1, "only models there are removed");
    for (const std::string path : {"../../../../elsewhere", "./elsewhere", "/", "..", "~", "a/b/c"})
        expect_fails_without_output(shell("cd \"$HOME\"; hark-model rm '" + path + "'"), 1,
                                    "only models there are removed");
    expect_fails_without_output(
        hark_model("rm absent"), 1,
        "no model 'absent' in " + models().string() + "; run: hark model list\n");
    expect_fails_without_output(hark_model("rm"), 2, "a model is required");
    EXPECT_TRUE(fs::exists(home_.path() / "elsewhere/config.json"));
    // Of a link the link alone.
    fs::create_directory_symlink(home_.path() / "elsewhere", models() / "linked");
    EXPECT_EQ(hark_model("rm linked").exit_code, 0);
    EXPECT_TRUE(fs::exists(home_.path() / "elsewhere/config.json"));
}

TEST_F(HarkModel, ListsForPrograms) {
    fs::create_directories(models());
    fs::copy(kDemo, models() / "whisper-mine", fs::copy_options::recursive);
    EXPECT_EQ(hark_model("use mine").exit_code, 0);
    const ProcessResult list = hark_model("list --format json");
    EXPECT_EQ(list.exit_code, 0) << list.err;
    const nlohmann::json models = nlohmann::json::parse(list.out);
    EXPECT_EQ(models[0]["name"], "whisper-mine");
    EXPECT_EQ(models[0]["kind"], "whisper");
    EXPECT_EQ(models[0]["default"], true);
    EXPECT_GT(models[0]["bytes"], 19'000'000);
    EXPECT_EQ(models[0]["path"], (this->models() / "whisper-mine").string());
    EXPECT_EQ(hark_model("list -f names").out.rfind("whisper-mine\n", 0), 0u);
}

TEST_F(HarkModel, TheSizesAreKnownBeforeADownload) {
    const ProcessResult list = hark_model("get --list");
    EXPECT_EQ(list.exit_code, 0) << list.err;
    EXPECT_NE(list.out.find("small                967 MB  openai/whisper-small\n"),
              std::string::npos)
        << list.out;
    EXPECT_NE(hark_model("get --help-all").out.find(" 967 MB "), std::string::npos);
}

TEST_F(HarkModel, InfoOfSeveralModelsAndOfAll) {
    const ProcessResult both = hark_model("info demo");
    EXPECT_EQ(both.exit_code, 0) << both.err;
    const std::string whisper = "name             whisper-demo\npath             ",
                      gpt = "\n\nname            gpt-demo\npath            ";
    EXPECT_EQ(both.out.rfind(whisper, 0), 0u) << both.out;
    EXPECT_NE(both.out.find("whisper-demo\nkind             whisper\n"), std::string::npos)
        << both.out;
    EXPECT_NE(both.out.find(gpt), std::string::npos) << both.out;
    EXPECT_NE(both.out.find("gpt-demo\nkind            gpt\n"), std::string::npos) << both.out;
    const std::string mine = (home_.path() / "mine").string();
    fs::copy(kDemo, mine, fs::copy_options::recursive);
    const ProcessResult path = hark_model("info --format json '" + mine + "' gpt-demo");
    const size_t second = path.out.find("}\n{") + 2;
    EXPECT_EQ(nlohmann::json::parse(path.out.substr(0, second))["name"], mine);
    EXPECT_EQ(nlohmann::json::parse(path.out.substr(second))["name"], "gpt-demo");
    const ProcessResult all = hark_model("info");
    EXPECT_EQ(all.exit_code, 0) << all.err;
    EXPECT_EQ(all.out.size(), both.out.size()) << all.out;  // in another order
}

TEST_F(HarkModel, VerifyOfSeveralModels) {
    const ProcessResult both = hark_model("verify demo");
    EXPECT_EQ(both.exit_code, 0) << both.err;
    EXPECT_EQ(std::count(both.out.begin(), both.out.end(), '\n'), 2) << both.out;
    expect_contains(both.out, "/whisper-demo: ");
    expect_contains(both.out, "/gpt-demo: ");
    // A file can be made of one of them.
    expect_fails_without_output(hark_model("convert demo '" + (home_.path() / "x").string() + "'"),
                                1,
                                "'demo' is the name of two models; give whisper-demo or gpt-demo");
    // A broken model does not hide the other.
    fs::create_directories(models());
    fs::copy(kDemo, models() / "whisper-pair");
    fs::resize_file(models() / "whisper-pair/model.safetensors", 1000);
    fs::copy(kDemo.parent_path() / "gpt-demo", models() / "gpt-pair");
    const ProcessResult broken = hark_model("verify pair");
    EXPECT_EQ(broken.exit_code, 1);
    expect_contains(broken.err, "/whisper-pair");
    expect_contains(broken.out, "/gpt-pair: ");
    // Recordings are for the Whisper model.
    const std::string sea = (samples_dir() / "sea.wav").string();
    write_text(home_.path() / "texts", R"({"source":")" + sea +
                                           R"(","text":"small house"})"
                                           "\n");
    const ProcessResult spoken = hark_model("verify demo --at-most 1000 --reference '" +
                                            (home_.path() / "texts").string() + "' '" + sea + "'");
    EXPECT_EQ(spoken.exit_code, 0) << spoken.err;
    EXPECT_EQ(spoken.out.find("/gpt-demo"), std::string::npos) << spoken.out;
    expect_contains(spoken.out, "sea.wav");
}

TEST_F(HarkModel, EachCommandHasItsHelp) {
    const ProcessResult help = hark_model("--help");
    EXPECT_EQ(help.exit_code, 0) << help.err;
    for (const std::string command : {"get", "list", "use", "rm", "info", "convert", "verify"}) {
        EXPECT_NE(help.out.find("\n  " + command + " "), std::string::npos) << help.out;
        const ProcessResult its = hark_model(command + " --help");
        EXPECT_EQ(its.exit_code, 0) << its.err;
        EXPECT_EQ(its.out.rfind("Usage: hark-model " + command + " [OPTION]...", 0), 0u) << its.out;
        EXPECT_NE(its.out.find("\nExamples:\n  # "), std::string::npos) << its.out;
        EXPECT_LE(std::count(its.out.begin(), its.out.end(), '\n'), 45) << its.out;
        EXPECT_EQ(hark_model("help " + command).out, its.out);
    }
    const ProcessResult version = hark_model("--version");
    EXPECT_EQ(version.exit_code, 0);
    EXPECT_EQ(version.out.rfind("hark-model (hark) ", 0), 0u) << version.out;
}

}  // namespace
}  // namespace hark::test
