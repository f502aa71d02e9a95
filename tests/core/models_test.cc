// How --model MODEL is read.
#include "core/models/models.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "core/error.h"
#include "support/expect.h"
#include "support/process.h"

namespace hark {
namespace {

namespace fs = std::filesystem;

// With a home and a working folder of its own.
class Models : public ::testing::Test {
  protected:
    void SetUp() override {
        ::setenv("HOME", home_.path().c_str(), 1);
        ::unsetenv("XDG_DATA_HOME");
        before_ = fs::current_path();
        fs::current_path(work_.path());
    }
    void TearDown() override { fs::current_path(before_); }
    static std::string fails(const std::string& model, const std::string& kind = "whisper") {
        try {
            return "found " + find_model(model, kind).string();
        } catch (const Error& error) {
            return error.what();
        }
    }
    static void make_model(const fs::path& folder) {
        fs::create_directories(folder);
        test::write_text(folder / "config.json", "{}");
    }

    test::TemporaryDirectory home_, work_;
    const fs::path models_ = home_.path() / ".local/share/hark/models";
    fs::path before_;
};

TEST_F(Models, TheDemoModelIsFoundByNameAndByKind) {
    const fs::path whisper = find_model("demo", "whisper");
    EXPECT_EQ(whisper.filename(), "whisper-demo");
    EXPECT_EQ(find_model("whisper-demo", "whisper"), whisper);
    EXPECT_EQ(find_model("demo", "gpt").filename(), "gpt-demo");
    EXPECT_EQ(find_models("demo"), (std::vector<fs::path>{whisper, find_model("demo", "gpt")}));
    EXPECT_EQ(find_models("whisper-demo"), std::vector<fs::path>{whisper});
}

TEST_F(Models, AWhisperModelMayBeAFile) {
    make_model(models_ / "whisper-both");
    for (const char* name : {"tiny.pt", "ggml-base.bin", "both.pt"})
        test::write_text(models_ / name, "x");
    EXPECT_EQ(find_model("tiny", "whisper"), models_ / "tiny.pt");
    EXPECT_EQ(find_model("tiny.pt", "whisper"), models_ / "tiny.pt");
    EXPECT_EQ(find_model("base", "whisper"), models_ / "ggml-base.bin");
    EXPECT_EQ(find_model("both", "whisper"), models_ / "whisper-both");
    EXPECT_EQ(find_model((models_ / "tiny.pt").string(), "whisper"), models_ / "tiny.pt");
    EXPECT_THROW(find_model("tiny", "gpt"), Error);
    fs::create_symlink("tiny.pt", models_ / "whisper-default");
    EXPECT_EQ(find_model("", "whisper"), models_ / "whisper-default");
}

TEST_F(Models, WhatExistsOrLooksLikeAPathIsOne) {
    make_model("run");
    make_model(home_.path() / "own");
    test::write_text("file.bin", "x");
    EXPECT_EQ(find_model("run", "gpt"), "run");
    EXPECT_EQ(find_model("run/", "gpt"), "run/");
    EXPECT_EQ(find_model("./run", "gpt"), "./run");
    EXPECT_EQ(find_model("file.bin", "whisper"), "file.bin");
    EXPECT_EQ(find_model("~/own", "whisper"), home_.path() / "own");
    EXPECT_EQ(fails("./none"), "./none: no such file or folder");
    EXPECT_EQ(fails("~/none"), (home_.path() / "none").string() + ": no such file or folder");
    EXPECT_EQ(fails("/dev/null"), "/dev/null: neither a file nor a folder");
    EXPECT_EQ(find_models("run"), std::vector<fs::path>{"run"});
}

TEST_F(Models, APathHidesAnInstalledModelAndSaysSo) {
    fs::create_directories("demo");
    test::expect_contains(fails("demo"),
                          "demo: no model in this folder (got nothing, expected config.json, "
                          "model.safetensors and tokenizer.json); the installed model is ");
    test::expect_contains(fails("demo"), "whisper-demo");
}

TEST_F(Models, AModelOfAnOwner) {
    make_model(models_ / "openai/whisper-new");
    EXPECT_EQ(find_model("openai/whisper-new", "whisper"), models_ / "openai/whisper-new");
    std::vector<std::string> names;
    for (const InstalledModel& model : installed_models()) names.push_back(model.name);
    EXPECT_EQ(names.front(), "openai/whisper-new");
    test::expect_contains(fails("openai/whisper-ne"), "did you mean 'openai/whisper-new'?");
}

TEST_F(Models, AGgufOfARepository) {
    const fs::path folder = models_ / "owner/m:Q4_K_M";
    fs::create_directories(folder);
    for (const char* name : {"hark-model.json", "m-00002-of-00002.gguf", "m-00001-of-00002.gguf"})
        test::write_text(folder / name, "x");
    EXPECT_EQ(find_model("owner/m:q4_k_m", "gpt"), folder / "m-00001-of-00002.gguf");
    EXPECT_EQ(find_models("owner/m:Q4_K_M"),
              std::vector<fs::path>{folder / "m-00001-of-00002.gguf"});
    EXPECT_EQ(find_model(folder.string(), "gpt"), folder / "m-00001-of-00002.gguf");
    EXPECT_EQ(installed_models().front().name, "owner/m:Q4_K_M");
    EXPECT_EQ(installed_models().front().path, folder / "m-00001-of-00002.gguf");
    test::expect_contains(fails("owner/m", "gpt"), "; give owner/m:Q4_K_M");
    test::expect_contains(fails("other/m:q8_0", "gpt"), "; run: hark model get other/m:q8_0");
    test::write_text(folder / "other.gguf", "x");
    test::expect_contains(fails("owner/m:q4_k_m", "gpt"), "no model in this folder");
    EXPECT_EQ(installed_name("owner/m:dir/x.gguf"), "owner/m:x.gguf");
    EXPECT_EQ(installed_name("a:b/c"), "a:b/c");
}

TEST_F(Models, AnErrorHasBothReadingsAndTheWayOn) {
    EXPECT_EQ(fails("small"),
              "no model 'small': no file or folder ./small exists, and no model of "
              "this name is installed; run: hark model get small (967 MB)");
    test::expect_contains(fails("whisper-small"), "; run: hark model get small (967 MB)");
    test::expect_contains(fails("openai/whisper-small"), "; run: hark model get small (967 MB)");
    test::expect_contains(fails("smal"),
                          "; did you mean 'small'? run: hark model get small (967 MB)");
    test::expect_contains(fails("openai/whisper-smal"),
                          "; did you mean 'small'? run: hark model get small");
    test::expect_contains(fails("dem"), "; did you mean 'demo'?");
    test::expect_contains(fails("gpt2"), "; 'gpt2' is a model of another kind (gpt)");
    test::expect_contains(fails("gpt2", "gpt"), "; run: hark model get gpt2 (548 MB)");
    test::expect_contains(fails("xylophone"), "; run hark model list, or hark model get --list");
    make_model(models_ / "whisper-small");
    EXPECT_EQ(find_model("openai/whisper-small", "whisper"), models_ / "whisper-small");
    test::expect_contains(fails("smal"), "; did you mean 'small'?");
    EXPECT_EQ(fails("smal").find("hark model get"), std::string::npos);
}

TEST_F(Models, APathThatCannotBeLookedAtSaysWhy) {
    const std::string name(300, 'x');
    EXPECT_EQ(fails("./" + name), "./" + name + ": File name too long");
    EXPECT_EQ(fails(name), name + ": File name too long");
}

TEST_F(Models, AFolderThatHoldsNoModelSaysWhatItHolds) {
    fs::create_directories("x");
    for (const char* name : {"g", "f", "e", "d", "c", "b", "a"})
        test::write_text(fs::path("x") / name, "");
    EXPECT_EQ(fails("./x"),
              "./x: no model in this folder (got a, b, c, d, e, f, ..., expected config.json, "
              "model.safetensors and tokenizer.json)");
}

TEST_F(Models, WithoutANameTheUsersDefaultOrTheWayOn) {
    test::expect_contains(fails(""), "no model is set; run: hark model get small (967 MB)");
    test::expect_contains(fails("", "gpt"), "no model is set; run: hark model get gpt2 (548 MB)");
    make_model(models_ / "whisper-mine");
    fs::create_directory_symlink("whisper-mine", models_ / "whisper-default");
    EXPECT_EQ(find_model("", "whisper"), models_ / "whisper-default");
    EXPECT_EQ(find_model("mine", "whisper"), models_ / "whisper-mine");
    fs::remove_all(models_ / "whisper-mine");
    test::expect_contains(fails(""), "whisper-default: a link to a file that does not exist");
}

TEST_F(Models, XdgDataHomeIsObeyed) {
    make_model(work_.path() / "data/hark/models/whisper-mine");
    ::setenv("XDG_DATA_HOME", (work_.path() / "data").c_str(), 1);
    EXPECT_EQ(find_model("mine", "whisper"), work_.path() / "data/hark/models/whisper-mine");
    ::setenv("XDG_DATA_HOME", "relative", 1);  // ignored, as the XDG specification says
    EXPECT_EQ(user_models(), models_);
}

TEST_F(Models, FoldersHaveNoDots) {
    for (const fs::path& folder : model_folders())
        EXPECT_EQ(folder, folder.lexically_normal()) << folder;
}

}  // namespace
}  // namespace hark
