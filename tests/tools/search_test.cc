// hark search: by words, and by meaning with a tiny model that was trained for nothing.
#include "support/family_folder.h"
#include "tools/pipelines.h"

namespace hark::test {
namespace {

class Search : public testing::Test {
  protected:
    void SetUp() override {
        fs::create_directories(folder_.path() / "meetings/monday");
        write("monday/one.srt",
              "1\n00:00:01,000 --> 00:00:04,500\nThe old captain walked\nhome to his house.\n\n"
              "2\n01:02:03,250 --> 01:02:05,000\n<b>Rain</b> fell on every ROOF.\n");
        write("b=1.tsv", "start\tend\ttext\n1500\t2000\t\u00dcber the roof, the roof!\n");
        write("c.vtt", "WEBVTT\n\n00:05.000 --> 00:07.000\nNobody spoke.\n");
        write("c.txt", "Nobody spoke of the roof.\n");
        write("notes.txt", "A roof has many words in a line as long as this one is.\r\n\r\nEnd.\n");
    }
    void write(const std::string& name, const std::string& text) const {
        write_text(folder_.path() / "meetings" / name, text);
    }
    ProcessResult search(const std::string& arguments) const {
        return run_shell("cd '" + folder_.path().string() + "' && hark search " + arguments);
    }
    std::string model() const {
        const fs::path path = folder_.path() / "tiny";
        if (!fs::exists(path)) write_tiny_qwen2(path);
        return " --model ./tiny --threads 1";
    }

    Folder folder_;
};

TEST_F(Search, LinesByTheirWords) {
    const ProcessResult found = search("meetings roof");
    EXPECT_EQ(found.exit_code, 0) << found.err;
    EXPECT_EQ(found.err, "");
    EXPECT_EQ(found.out,
              "meetings/b=1.tsv\t0:00:01\t\u00dcber the roof, the roof!\n"
              "meetings/monday/one.srt\t1:02:03\tRain fell on every ROOF.\n"
              "meetings/notes.txt\t-\tA roof has many words in a line as long as this one is.\n");
    EXPECT_EQ(search("meetings/ \u00fcber").out,
              "meetings/b=1.tsv\t0:00:01\t\u00dcber the roof, the roof!\n");
    EXPECT_EQ(search("--matches=1 meetings 'home CAPTAIN' roof").out,
              "meetings/monday/one.srt\t0:00:01\tThe old captain walked home to his house.\n");
    EXPECT_EQ(search("meetings nobody").out, "meetings/c.vtt\t0:00:05\tNobody spoke.\n");
}

TEST_F(Search, MoreMatchesThanAPipeHolds) {
    std::string text;
    for (int i = 0; i < 20000; ++i) text += "The same words.\n";
    write("long.txt", text);
    const ProcessResult found = search("--matches 2 meetings same");
    EXPECT_EQ(found.exit_code, 0) << found.err;
    EXPECT_EQ(found.out, "meetings/long.txt\t-\tThe same words.\n"
                         "meetings/long.txt\t-\tThe same words.\n");
}

TEST_F(Search, AFullDiskIsNamed) {
    const ProcessResult full = search("meetings roof > /dev/full");
    EXPECT_EQ(full.exit_code, 1);
    EXPECT_EQ(full.err, "hark search: stdout: cannot write\n");
}

TEST_F(Search, AFolderThatTakesNoVectorsIsNamed) {
    const std::string store = "meetings/.hark/search/._tiny", tiny = model();
    fs::create_directories(folder_.path() / store);
    const ProcessResult closed =
        run_shell("cd '" + folder_.path().string() + "' && chmod a-w " + store + " && " +
                  kWithoutRights + "hark search meetings roof" + tiny);
    EXPECT_EQ(closed.exit_code, 1);
    EXPECT_EQ(closed.out, "");
    expect_contains(closed.err, "search/._tiny: cannot write into this folder, where the vectors");
    EXPECT_EQ(std::count(closed.err.begin(), closed.err.end(), '\n'), 1) << closed.err;
    fs::permissions(folder_.path() / store, fs::perms::owner_all);
}

TEST_F(Search, NothingFound) {
    const ProcessResult none = search("meetings zebra");
    EXPECT_EQ(none.exit_code, 1);
    EXPECT_EQ(none.out + none.err, "");
    fs::create_directories(folder_.path() / "empty");
    const ProcessResult empty = search("empty roof");
    EXPECT_EQ(empty.exit_code, 1);
    expect_contains(empty.err, "hark search: empty: found no transcripts");
}

TEST_F(Search, WrongUsage) {
    expect_fails(search("meetings"), 2, "expected a folder and words, got 1 argument; ");
    EXPECT_EQ(search("meetings ' '").exit_code, 2);
    EXPECT_EQ(search("meetings roof --matches 0").exit_code, 2);
    EXPECT_EQ(search("meetings roof --format tsv").exit_code, 2);
    const ProcessResult missing = search("nowhere roof");
    EXPECT_EQ(missing.exit_code, 1);
    expect_contains(missing.err, "hark search: nowhere: expected a folder of transcripts");
    const ProcessResult no_model = search("meetings roof --model nothing-there");
    EXPECT_EQ(no_model.exit_code, 1);
    expect_contains(no_model.err, "gpt-embed: ");
}

TEST_F(Search, LinesByTheirMeaning) {
    const ProcessResult found = search("meetings 'Nobody spoke.' --matches 2" + model());
    ASSERT_EQ(found.exit_code, 0) << found.err;
    // The same text has the same vector.
    EXPECT_TRUE(found.out.starts_with("meetings/c.vtt\t0:00:05\tNobody spoke.\n")) << found.out;
    EXPECT_EQ(std::count(found.out.begin(), found.out.end(), '\n'), 2);
    const fs::path store = folder_.path() / "meetings/.hark/search/._tiny";
    EXPECT_EQ(fs::file_size(store / "monday/one.srt.f32"), 2u * 64 * 4);
    EXPECT_EQ(search("meetings 'Nobody spoke.' --matches 2" + model()).out, found.out);
}

TEST_F(Search, VectorsAreMadeAgainWhereATranscriptHasChanged) {
    search("meetings roof" + model());
    const fs::path store = folder_.path() / "meetings/.hark/search/._tiny";
    const fs::path kept = store / "c.vtt.f32", made = store / "b=1.tsv.f32";
    write_text(kept, std::string(64 * 4, '\0'));  // shows that it is read again
    write("b=1.tsv", "start\tend\ttext\n0\t1\tA bell.\n2\t3\tThunder.\n");
    const ProcessResult found = search("meetings 'A bell.' --matches 1" + model());
    EXPECT_EQ(found.out, "meetings/b=1.tsv\t0:00:00\tA bell.\n") << found.err;
    EXPECT_EQ(fs::file_size(made), 2u * 64 * 4);
    EXPECT_EQ(read_text(kept), std::string(64 * 4, '\0'));
    // Words find no transcripts in the folder of the vectors.
    EXPECT_EQ(search("meetings bell").out, "meetings/b=1.tsv\t0:00:00\tA bell.\n");
}

// A transcript changes, the run that makes its new vectors is killed, and the change is undone.
// The first kill comes when the vectors have their name and the passages do not.
constexpr const char* kKills = R"(
run() { hark search meetings 'A bell.' --matches 9 --model ./tiny --threads 1; }
say() { printf 'start\tend\ttext\n0\t1\t%s\n' "$1" > meetings/b=1.tsv; }
now() { echo $((${EPOCHREALTIME/./} / 1000)); }
export -f run
mkdir killing; printf '#!/bin/bash\nkill -KILL $PPID\n' > killing/cp; chmod +x killing/cp
say 'A bell.'; begun=$(now); run > first || exit; took=$(($(now) - begun)); RANDOM=3
for ((n = 0; n < kills; ++n)); do
    say Thunder.
    if [ $n = 0 ]; then
        PATH="$PWD/killing:$PATH" run > /dev/null && exit 2
    else
        setsid bash -c run > /dev/null & leader=$!
        printf -v moment %04d $((RANDOM * took / 32768)); sleep ${moment:0:-3}.${moment: -3}
        kill -KILL -- -$leader; wait $leader
    fi
    say 'A bell.'; run > after && cmp first after || exit 3
done
)";

TEST_F(Search, KillsLeaveNoVectorsOfOtherPassages) {
    model();
    const char* kills = std::getenv("HARK_ALL_RECORDINGS") == nullptr ? "4" : "20";
    const ProcessResult killed =
        run_shell(concat("cd '", folder_.path().string(), "'; kills=", kills, "\n", kKills));
    EXPECT_EQ(killed.exit_code, 0) << killed.err;
}

}  // namespace
}  // namespace hark::test
