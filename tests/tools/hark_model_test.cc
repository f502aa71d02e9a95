// hark-model's contract, on the real binary; with the demonstration models as published ones.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "core/json/json.h"
#include "support/http_server.h"
#include "tools/hark_model.h"

namespace hark::test {
namespace {

TEST_F(HarkModel, AModelIsFetchedChosenListedAndTranscribes) {
    const HttpServer server(mirror);
    const ProcessResult got = hark_model("get tiny --from " + server.url());
    EXPECT_EQ(got.exit_code, 0) << got.err;
    EXPECT_EQ(got.out, (models() / "whisper-tiny").string() + "\n");
    EXPECT_EQ(got.err.rfind("hark-model get: whisper-tiny: ", 0), 0u) << got.err;
    for (const std::string part :
         {" files, 19.7", " MB, from http", "get: config.json, generation_config.json, ",
          ": the server gave no checksum; not verified\n",
          "get: whisper-tiny is the default whisper model now\n"})
        EXPECT_NE(got.err.find(part), std::string::npos) << part << got.err;
    EXPECT_EQ(hark_model("get tiny --from " + server.url()).err, "");  // is there already
    EXPECT_EQ(listed("whisper-tiny").front(), '*');

    EXPECT_EQ(hark_model("use whisper-demo").exit_code, 0);
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
    // The other kind's is its own, and nothing else is left.
    EXPECT_EQ(hark_model("use gpt-demo").exit_code, 0);
    size_t entries = 0;
    for (const auto& entry : fs::directory_iterator(models())) entries += entry.is_symlink();
    EXPECT_EQ(entries, 2u);
    const ProcessResult both = hark_model("use demo");
    EXPECT_EQ(both.exit_code, 0) << both.err;
    EXPECT_EQ(fs::canonical(models() / "whisper-default").filename(), "whisper-demo");
    EXPECT_EQ(fs::canonical(models() / "gpt-default").filename(), "gpt-demo");
    expect_fails_without_output(hark_model("use absent"), 1,
                                "no model 'absent': no file or folder ./absent exists");
    fs::remove(models() / "gpt-default");
    fs::create_directory(models() / "gpt-default");
    expect_fails_without_output(hark_model("use gpt-demo"), 1, "gpt-default: not a link");
}

TEST_F(HarkModel, ABrokenModelIsNamedAndTheOthersListed) {
    fs::create_directories(models() / "whisper-broken");
    write_text(models() / "whisper-broken/config.json", "{\"model_type\": \"bert\"}");
    fs::create_directories(models() / ".whisper-base.part");
    const ProcessResult list = hark_model("list");
    EXPECT_EQ(list.exit_code, 1);
    EXPECT_NE(list.err.find("whisper-broken: "), std::string::npos) << list.err;
    EXPECT_NE(list.err.find("found 'bert'"), std::string::npos) << list.err;
    EXPECT_EQ(list.out.find(".part"), std::string::npos) << list.out;
    EXPECT_NE(list.out.find("whisper-demo"), std::string::npos) << list.out;
}

TEST_F(HarkModel, DefaultsElsewhereLinksAndFilesOfAnyNameAreListed) {
    fs::create_directories(models());
    fs::copy(kDemo, home_.path() / "mine", fs::copy_options::recursive);
    EXPECT_EQ(hark_model("use '" + (home_.path() / "mine/").string() + "'").exit_code, 0);
    fs::create_directory_symlink(kDemo, models() / "linked");
    const fs::path half = home_.path() / "half.bin";
    EXPECT_EQ(hark_model("convert whisper-demo '" + half.string() + "'").exit_code, 0);
    fs::rename(half, models() / "half");
    write_text(models() / "notes", "no model");
    const ProcessResult list = hark_model("list");
    EXPECT_EQ(list.exit_code, 0) << list.err;
    EXPECT_EQ(list.out.find("notes"), std::string::npos) << list.out;
    EXPECT_EQ(listed("linked").front(), ' ');
    EXPECT_NE(listed("half").find(" ggml "), std::string::npos);
    const std::string line = listed("whisper-default");
    EXPECT_EQ(line.front(), '*');
    EXPECT_NE(line.find((home_.path() / "mine").string()), std::string::npos) << line;

    EXPECT_EQ(hark_model("use linked").exit_code, 0);
    EXPECT_EQ(listed("linked").front(), '*');
    EXPECT_EQ(listed("whisper-default"), "");
    fs::remove(models() / "whisper-default");
    fs::create_symlink("none", models() / "whisper-default");
    const ProcessResult gone = hark_model("list");
    EXPECT_EQ(gone.exit_code, 1);
    EXPECT_NE(gone.err.find("whisper-default: "), std::string::npos) << gone.err;
}

TEST_F(HarkModel, AFullDiskLeavesWhatHasCome) {
    const HttpServer server(mirror);
    // A limit on the size of files: 4 MB, of the weights' 18.
    expect_fails_without_output(
        shell("trap '' XFSZ; ulimit -f 4000; hark-model get tiny --from " + server.url()), 1,
        "model.safetensors.part: cannot write");
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
    expect_fails_without_output(shell("flock '" + (models() / ".whisper-tiny.part").string() +
                                      "' hark-model get tiny --from " + server.url()),
                                1, "another hark-model is downloading this model");
}

TEST_F(HarkModel, WrongCommandLines) {
    expect_fails_without_output(hark_model(""), 2, "no command given; expected one of get, list, ");
    expect_fails_without_output(hark_model("--quiet list"), 2, "unknown command '--quiet'");
    expect_fails_without_output(hark_model("fetch"), 2, "unknown command 'fetch'");
    expect_fails_without_output(hark_model("get"), 2, "a model is required (got 0 arguments)");
    expect_fails_without_output(hark_model("get tiny base"), 2, "(got 2 arguments)");
    expect_fails_without_output(hark_model("get huge"), 2,
                                "no published model 'huge'; hark model get --list shows all");
    expect_fails_without_output(hark_model("get tiny --from file:///tmp"), 2, "--from: not a URL");
    expect_fails_without_output(hark_model("list all"), 2, "list takes no arguments (got all)");
    expect_fails_without_output(shell("unset HOME; hark-model get tiny"), 1,
                                "neither XDG_DATA_HOME nor HOME is set");
    const ProcessResult nobody = hark_model("get tiny --from http://127.0.0.1:9");
    expect_fails_without_output(
        nobody, 1, "http://127.0.0.1:9/api/models/openai/whisper-tiny/revision/main?blobs=true: ");
    EXPECT_TRUE(fs::is_empty(models()));
}

TEST_F(HarkModel, InfoTellsOfWhisperAndGpt) {
    const ProcessResult whisper = hark_model("info whisper-demo");
    EXPECT_EQ(whisper.exit_code, 0) << whisper.err;
    for (const std::string line :
         {"kind             whisper\n", "format           Hugging Face\n",
          "encoder          4 layers of 256, 4 heads, MLP of 1024\n", "mels             80\n",
          "positions        1500 of sound, 448 of text\n", "vocabulary       5448\n",
          "alignment heads  2:0 2:1 2:2 2:3 3:0 3:1 3:2 3:3\n",
          "tokenizer        3840 tokens of text, timestamps from 3947\n",
          "parameters       9522688\n", "stored           f16 9522688\n",
          "memory           auto 20.1 MB, f32 38.1 MB, f16 20.1 MB, bf16 20.1 MB, int8 11.2 MB, "
          "fp8 11.5 MB\n"})
        EXPECT_NE(whisper.out.find(line), std::string::npos) << line << whisper.out;
    const auto json_of = [&](const std::string& model) {
        const ProcessResult info = hark_model("info " + model + " --format json");
        EXPECT_EQ(info.exit_code, 0) << info.err;
        return nlohmann::json::parse(info.out);
    };
    const nlohmann::json demo = json_of("whisper-demo"), gpt = json_of("gpt-demo");
    EXPECT_EQ(demo["encoder"], nlohmann::json::parse(R"({"layers": 4, "channels": 256, "heads": 4,
                                                         "mlp": 1024})"));
    EXPECT_EQ(demo["positions"], nlohmann::json::parse(R"({"sound": 1500, "text": 448})"));
    EXPECT_EQ(demo["alignment_heads"][1], nlohmann::json::parse("[2, 1]"));
    EXPECT_EQ(demo["tokenizer"],
              nlohmann::json::parse(R"({"tokens": 3840, "first_timestamp": 3947})"));
    EXPECT_EQ(demo["languages"][0], "af");
    EXPECT_EQ(demo["stored"], nlohmann::json::parse(R"({"f16": 9522688})"));
    EXPECT_EQ(gpt["kind"], "gpt");
    EXPECT_EQ(gpt["decoder"]["layers"], 8);
    EXPECT_EQ(gpt["positions"]["text"], 512);
    EXPECT_EQ(gpt["tied_output"], true);
    EXPECT_EQ(gpt["tokenizer"]["tokens"], 4096);
    EXPECT_EQ(gpt["parameters"], 7498240);
    EXPECT_EQ(gpt["memory"]["auto"], 15312896);
}

TEST_F(HarkModel, ConvertedModelsTranscribeTheSame) {
    const std::string key = (samples_dir() / "key.wav").string();
    const std::string blocks = (home_.path() / "q8.bin").string();
    const std::string folder = (home_.path() / "folder").string();
    const ProcessResult quantised = hark_model("convert whisper-demo '" + blocks + "' --type q8_0");
    EXPECT_EQ(quantised.exit_code, 0) << quantised.err;
    EXPECT_EQ(quantised.out + quantised.err, "");
    const ProcessResult back = hark_model("convert '" + blocks + "' '" + folder + "' --type f16");
    EXPECT_EQ(back.exit_code, 0) << back.err;
    const std::string transcribe = "mel < '" + key + "' | whisper-transcribe --model ";
    const ProcessResult original = shell(transcribe + "demo");
    EXPECT_EQ(original.exit_code, 0) << original.err;
    EXPECT_EQ(shell(transcribe + "'" + folder + "'").out, original.out);

    // A file goes by its name too, and may be the default.
    fs::create_directories(models());
    const std::string half = (models() / "half.bin").string();
    EXPECT_EQ(hark_model("convert whisper-demo '" + half + "' --to ggml").exit_code, 0);
    EXPECT_EQ(hark_model("use half.bin").exit_code, 0);
    EXPECT_EQ(hark_model("use whisper-default").exit_code, 0);  // as it is already
    const std::string line = listed("half.bin");
    EXPECT_EQ(line.front(), '*');
    EXPECT_NE(line.find(" ggml "), std::string::npos) << line;
    const ProcessResult chosen = shell("mel < '" + key + "' | whisper-transcribe");
    EXPECT_EQ(chosen.exit_code, 0) << chosen.err;
    EXPECT_EQ(chosen.out, original.out);

    expect_fails_without_output(hark_model("convert whisper-demo"), 2,
                                "MODEL and OUTPUT are required (got 1 argument)");
    expect_fails_without_output(
        hark_model("convert whisper-demo '" + folder + "' --type q4_0"), 2,
        "--type: not a type of safetensors (got 'q4_0', expected f32, f16, bf16)");
    expect_fails_without_output(hark_model("convert whisper-demo '" + folder + "'"), 1,
                                "expected a new or empty folder to write to");
    expect_fails_without_output(hark_model("convert gpt-demo '" + blocks + "' --to ggml"), 1,
                                "a language model cannot be written as ggml");
    expect_fails_without_output(hark_model("convert gpt-demo gpt.bin"), 1,
                                "a language model cannot be written as ggml");
    expect_fails_without_output(hark_model("convert whisper-demo '" + half + "'"), 1,
                                "exists already");
    expect_fails_without_output(hark_model("convert whisper-demo demo.gguf"), 1,
                                "a Whisper model cannot be written as GGUF");
    expect_fails_without_output(hark_model("convert whisper-demo demo.ONNX"), 2,
                                "demo.ONNX: files that end in .onnx are not written");
    // Folders on the way are made; what is broken is said of the format alone that it is in.
    const std::string deep = (home_.path() / "new/folders/demo.bin").string();
    EXPECT_EQ(hark_model("convert whisper-demo '" + deep + "'").exit_code, 0);
    fs::resize_file(deep, 1000);
    const ProcessResult broken = hark_model("info '" + deep + "'");
    EXPECT_EQ(broken.exit_code, 1);
    EXPECT_EQ(broken.err.find("GPT"), std::string::npos) << broken.err;
    fs::copy(kDemo, home_.path() / "mute", fs::copy_options::recursive);
    for (const char* file : {"tokenizer.json", "vocab.json", "merges.txt"})
        fs::remove(home_.path() / "mute" / file);
    const std::string mute = (home_.path() / "mute").string();
    const ProcessResult warned = hark_model("convert '" + mute + "/' '" + mute + "2'");
    EXPECT_EQ(warned.exit_code, 0) << warned.err;
    EXPECT_NE(warned.err.find("has no tokenizer"), std::string::npos) << warned.err;
    fs::remove(half);
    expect_fails_without_output(shell("mel < '" + key + "' | whisper-transcribe"), 1,
                                "a link to a file that does not exist");
    expect_fails_without_output(hark_model("info whisper-default"), 1,
                                "a link to a file that does not exist");
}

// SIGXFSZ ends the process in the middle of the weights.
TEST_F(HarkModel, ASignalLeavesNothingOfAConversion) {
    for (const std::string target : {"folder", "file.bin"}) {
        const ProcessResult ended = shell(
            "cd \"$HOME\"; (ulimit -f 1000; exec hark-model convert "
            "whisper-demo " +
            target + ")");
        EXPECT_NE(ended.exit_code, 0);
        EXPECT_TRUE(fs::is_empty(home_.path())) << shell("find \"$HOME\"").out;
    }
}

TEST_F(HarkModel, NewFoldersRespectTheUmask) {
    const ProcessResult modes = shell(
        "umask 077; cd \"$HOME\"; hark-model convert whisper-demo folder && hark-model use "
        "./folder > /dev/null && find . -type d -o -type f | xargs stat -c %a | sort -u");
    EXPECT_EQ(modes.out, "600\n700\n") << modes.err;
}

TEST_F(HarkModel, APipeIsNoModelFile) {
    const std::string home = home_.path().string();
    for (const std::string file :
         {"config.json", "generation_config.json", "tokenizer.json", "model.safetensors"}) {
        fs::remove_all(home_.path() / "model");
        fs::copy(kDemo, home_.path() / "model", fs::copy_options::recursive);
        fs::remove(home_.path() / "model" / file);
        ASSERT_EQ(::mkfifo((home_.path() / "model" / file).c_str(), 0600), 0);
        const ProcessResult opened =
            shell("timeout 20 hark-model verify '" + home + "/model' --reference x y");
        EXPECT_EQ(opened.exit_code, 1) << file;
        EXPECT_EQ(opened.out, "");
    }
    fs::remove(home_.path() / "model/config.json");
    fs::create_symlink("/dev/zero", home_.path() / "model/config.json");
    expect_fails_without_output(hark_model("info '" + home + "/model'"), 1,
                                "config.json: not a regular file (got a device)");
    ASSERT_EQ(::mkfifo((home_.path() / "pipe.bin").c_str(), 0600), 0);
    expect_fails_without_output(shell("timeout 20 hark-model info '" + home + "/pipe.bin'"), 1,
                                "pipe.bin");
}

// Whoever puts a model where the link to the default would be has chosen it.
TEST_F(HarkModel, AFolderIsADefaultToo) {
    fs::create_directories(models());
    fs::copy(kDemo, models() / "whisper-default", fs::copy_options::recursive);
    EXPECT_EQ(shell("mel < '" + (samples_dir() / "key.wav").string() + "' | whisper-transcribe")
                  .exit_code,
              0);
    const ProcessResult list = hark_model("list");
    EXPECT_NE(list.out.find("* whisper-default"), std::string::npos) << list.out;
    expect_fails_without_output(hark_model("use whisper-demo"), 1, "not a link");
}

}  // namespace
}  // namespace hark::test
