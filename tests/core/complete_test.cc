#include "core/cli/complete.h"

#include <gtest/gtest.h>

#include <map>

namespace hark {
namespace {

// Programs and what they say: a tool "t" with flags, and "h" with commands.
const std::map<std::string, std::string> kOutputs = {
    {"t --help-as table",
     "model\tm\tMODEL\t-\twhisper-model\t-\tto use\n"
     "format\tf\tF,...\t-\t-\ttext,srt,tsv\tto write\n"
     "config\t-\tFILE\t-\tfile\t-\tto read\n"
     "train\t-\tFILE\t-\tfile\tsynthetic\tto learn\n"
     "output-dir\to\tDIR\t-\tdirectory\t-\twhere\n"
     "seed\t-\tN\t-\t-\t-\ta number\n"
     "eot\t-\t-\tswitch\t-\t-\tat the end\n"
     "-\t-\tFILE...\t-\tfile\t-\t-\n"},
    {"h --help-as commands", "get\tfetch one\ngrow\t-\nuse\tchoose\nfetch\t-\n"},
    {"h get --help-as table", "from\t-\tURL\t-\t-\t-\ta mirror\n-\t-\tMODEL\t-\tmodel\t-\t-\n"},
    {"h fetch --help-as table", "-\t-\tNAME\t-\tpublished-model\t-\t-\n"},
    {"hark-model get --list",
     "NAME     SIZE  REPOSITORY\ntiny    151 MB  openai/whisper-tiny\n"
     "small   967 MB  openai/whisper-small\n"},
    {"hark-model list --format names", "gpt-demo\nwhisper-demo\nwhisper-small\n"},
};

std::string complete(const std::vector<std::string>& words) {
    return hark::complete(words, [](const std::vector<std::string>& argv) {
        std::string line;
        for (const std::string& word : argv) line += (line.empty() ? "" : " ") + word;
        const auto found = kOutputs.find(line);
        return found == kOutputs.end() ? "" : found->second;
    });
}

TEST(Complete, OffersCommandsFirst) {
    EXPECT_EQ(complete({"h", ""}), "get\tfetch one\ngrow\nuse\tchoose\nfetch\n:\n");
    EXPECT_EQ(complete({"h", "g"}), "get\tfetch one\ngrow\n:\n");
    EXPECT_EQ(complete({"h", "x"}), ":\n");
    EXPECT_EQ(complete({"h", "get", "--f"}), "--from\ta mirror\n:\n");
    EXPECT_EQ(complete({"h", "get", ""}), "gpt-demo\nwhisper-demo\nwhisper-small\n:file\n");
    EXPECT_EQ(complete({"h", "fetch", "s"}), "small\n:\n");
    EXPECT_EQ(complete({"h", "nothing", ""}), ":\n");
    EXPECT_EQ(complete({"h"}), ":\n");
    EXPECT_EQ(complete({}), ":\n");
}

TEST(Complete, OffersFlagsAfterADash) {
    EXPECT_EQ(complete({"t", "--"}),
              "--model\tto use\n--format\tto write\n--config\tto read\n--train\tto learn\n--output-dir\twhere\n"
              "--seed\ta number\n--eot\tat the end\n:\n");
    EXPECT_EQ(complete({"t", "a", "-m", "x", "--o"}), "--output-dir\twhere\n:\n");
    EXPECT_EQ(complete({"t", "--no"}), "--no-eot\n:\n");
    EXPECT_EQ(complete({"t", "--", "--o"}), ":file\n");
}

TEST(Complete, OffersWhatAValueMayBe) {
    EXPECT_EQ(complete({"t", "--model", ""}), "whisper-demo\nwhisper-small\n:file\n");
    EXPECT_EQ(complete({"t", "-m", "whisper-s"}), "whisper-small\n:file\n");
    EXPECT_EQ(complete({"t", "--model=whisper-d"}), "--model=whisper-demo\n:file\n");
    // A name without its kind.
    EXPECT_EQ(complete({"t", "--model=d"}), "--model=demo\n:file\n");
    EXPECT_EQ(complete({"t", "--train", ""}), "synthetic\n:file\n");
    EXPECT_EQ(complete({"t", "--format", "t"}), "text\ntsv\n:\n");
    EXPECT_EQ(complete({"t", "--format", "text,s"}), "text,srt\n:\n");
    EXPECT_EQ(complete({"t", "--format=text,s"}), "--format=text,srt\n:\n");
    EXPECT_EQ(complete({"t", "--config", "x"}), ":file\n");
    EXPECT_EQ(complete({"t", "--output-dir="}), ":directory\n");
    EXPECT_EQ(complete({"t", "--seed", ""}), ":\n");
    EXPECT_EQ(complete({"t", "--eot", ""}), ":file\n");
    // A value that looks like a flag is a value.
    EXPECT_EQ(complete({"t", "--seed", "--format", ""}), ":file\n");
    EXPECT_EQ(complete({"t", ""}), ":file\n");
}

}  // namespace
}  // namespace hark
