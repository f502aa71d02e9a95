// hark train_script: from a text to a model, the same command again, and the proof of an exact
// resume.
#include <algorithm>

#include "tools/pipelines.h"

using namespace hark::test;

namespace {

ProcessResult train_script(const Folder& folder, const std::string& arguments) {
    return run_shell("cd '" + folder.path().string() + "' && '" +
                     (source_dir() / "pipelines/train.sh").string() + "' " + arguments);
}

int lines_in(const std::string& text) {
    return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

// A text of about 40 kB, so that blocks of 250 tokens are held out.
void write_book(const Folder& folder) {
    write_text(folder.path() / "book.txt", read_text(source_dir() / "docs/formats.md") +
                                               read_text(source_dir() / "docs/development.md"));
}

}  // namespace

TEST(Train, MakesAModelOfAText) {
    Folder folder;
    write_book(folder);
    const std::string command = "book.txt -o'a run' --steps=12 --save-every 6 --prove-resume";
    const ProcessResult first = train_script(folder, command);
    ASSERT_EQ(first.exit_code, 0) << first.err;
    EXPECT_GT(first.out.size(), 10u);
    expect_contains(first.err, "with the same model, byte for byte");
    const auto names = folder.names();
    for (const char* name :
         {"tokenizer/tokenizer.json", "train.bin", "val.bin", "run.tsv", "config.json"})
        EXPECT_TRUE(names.contains(std::string("a run/") + name)) << name;
    for (const char* inside : {"a run/tensorboard/", "a run/step-00000006/"})
        EXPECT_TRUE(std::any_of(names.begin(), names.end(), [&](const std::string& name) {
            return name.starts_with(inside);
        })) << inside;
    EXPECT_EQ(names.contains("a run/run.png"), has_command("gnuplot"));
    EXPECT_EQ(lines_in(folder.text("a run/run.tsv")), 13);  // a heading and the steps

    const std::string model = folder.text("a run/model.safetensors");
    const ProcessResult again = train_script(folder, "book.txt --output-dir 'a run' --steps 12");
    EXPECT_EQ(again.exit_code, 0) << again.err;
    EXPECT_EQ(again.out, first.out);
    EXPECT_EQ(folder.text("a run/model.safetensors"), model);
    EXPECT_EQ(lines_in(folder.text("a run/run.tsv")), 13);
}

// The folder takes the right text after that.
TEST(Train, ARecordingIsNoText) {
    Folder folder;
    write_book(folder);
    const std::string sound = (samples_dir() / "key.wav").string();
    for (const std::string& texts : {sound, "book.txt " + sound}) {
        const ProcessResult refused = train_script(folder, texts + " --steps 2");
        EXPECT_EQ(refused.exit_code, 1) << refused.err;
        EXPECT_EQ(refused.out, "");
        expect_contains(refused.err,
                        "gpt-tokenize: " + sound + ": this is no text (got a zero byte");
        EXPECT_EQ(refused.err.find("other texts"), std::string::npos) << refused.err;
        EXPECT_EQ(refused.err.find("all documents are empty"), std::string::npos) << refused.err;
    }
    const ProcessResult made = train_script(folder, "book.txt --steps 1");
    EXPECT_EQ(made.exit_code, 0) << made.err;
    expect_contains(made.err, "no picture: it takes two steps");
}

TEST(Train, ContinuesAStoppedRun) {
    Folder folder;
    write_book(folder);
    const std::string rest = "book.txt --steps 24 --save-every 10 --output-dir ";
    ASSERT_EQ(train_script(folder, rest + "whole").exit_code, 0);
    const ProcessResult stopped =
        run_shell("cd '" + folder.path().string() + "'; '" +
                  (source_dir() / "pipelines/train.sh").string() + "' " + rest +
                  "stopped & pid=$!; until [ -e stopped/step-00000010 ]; do sleep 0.02; done; "
                  "pkill -TERM -P $pid; wait $pid");
    EXPECT_NE(stopped.exit_code, 0);
    const ProcessResult rested = train_script(folder, rest + "stopped");
    EXPECT_EQ(rested.exit_code, 0) << rested.err;
    EXPECT_EQ(folder.text("stopped/model.safetensors"), folder.text("whole/model.safetensors"));
    EXPECT_EQ(lines_in(folder.text("stopped/run.tsv")), 25);
}

TEST(Train, ASignalEndsItOnceTheCheckpointIsSaved) {
    Folder folder;
    write_book(folder);
    const std::string rest = "book.txt --steps 4000 --output-dir ";
    const ProcessResult stopped =
        run_shell("cd '" + folder.path().string() + "'; '" +
                  (source_dir() / "pipelines/train.sh").string() + "' " + rest +
                  "run & pid=$!; until grep -q ^5 run/run.tsv 2> /dev/null; do sleep 0.02; done; "
                  "kill -TERM $pid; wait $pid; status=$?; ls -d run/step-*; exit $status");
    EXPECT_EQ(stopped.exit_code, 143) << stopped.err;
    expect_contains(stopped.out, "run/step-0");
}

// gpt-train would work on alone, and the same command could not continue the run.
TEST(Train, AKillEndsItTooAndTheSameCommandContinues) {
    Folder folder;
    write_book(folder);
    const std::string train = "'" + (source_dir() / "pipelines/train.sh").string() +
                              "' book.txt --steps 60 --save-every 5 --output-dir ";
    ASSERT_EQ(
        train_script(folder, "book.txt --steps 60 --save-every 5 --output-dir whole").exit_code, 0);
    const char* const all = std::getenv("HARK_ALL_RECORDINGS");
    const ProcessResult killed = run_shell(
        "cd '" + folder.path().string() + "'; RANDOM=7; for n in {1.." + (all ? "20" : "2") +
        "}; do " + train +
        "killed & pid=$!; sleep $((RANDOM % 2)).$((RANDOM % 10)); kill -KILL $pid; wait $pid; " +
        "for try in {1..100}; do [ ! -e killed/.lock ] || flock -n killed/.lock true && break; "
        "sleep 0.1; done; done 2> /dev/null; pgrep -f \"^gpt-train .*--output-dir killed\"; " +
        train + "killed");
    EXPECT_EQ(killed.exit_code, 0) << killed.err;
    EXPECT_EQ(folder.text("killed/model.safetensors"), folder.text("whole/model.safetensors"));
    EXPECT_EQ(lines_in(folder.text("killed/run.tsv")), 61);
}

TEST(Train, ASignalEndsTheProofToo) {
    Folder folder;
    write_book(folder);
    const std::string temporary = (folder.path() / "temporary").string();
    fs::create_directories(temporary);
    const ProcessResult stopped = run_shell(
        "cd '" + folder.path().string() + "'; export TMPDIR='" + temporary + "'; '" +
        (source_dir() / "pipelines/train.sh").string() +
        "' book.txt --steps 2 --prove-resume --batch-size 64 & pid=$!; "
        "until ls -d \"$TMPDIR\"/*/whole > /dev/null 2>&1; do sleep 0.02; done; "
        "kill -TERM $pid; wait $pid; status=$?; pgrep -f \"^gpt-train .*$TMPDIR\"; exit $status");
    EXPECT_EQ(stopped.exit_code, 143) << stopped.err;
    EXPECT_EQ(stopped.out, "");
    EXPECT_TRUE(fs::is_empty(temporary));
}

TEST(Train, TakesAPreset) {
    Folder folder;
    write_book(folder);
    write_text(folder.path() / "my.conf",
               "layers = 1\nheads = 2\nwidth = 32\ncontext = 32\nsequence-length = 32\n"
               "batch-size = 2\nsteps = 7\nwarmup = 2\n");
    const ProcessResult own = train_script(folder, "book.txt --config my.conf --output-dir=own");
    ASSERT_EQ(own.exit_code, 0) << own.err;
    EXPECT_EQ(lines_in(folder.text("own/run.tsv")), 8);
    expect_contains(folder.text("own/config.json"), "\"n_layer\": 1");
    const ProcessResult shorter =
        train_script(folder, "book.txt --config=my.conf --steps 3 --output-dir shorter");
    ASSERT_EQ(shorter.exit_code, 0) << shorter.err;
    EXPECT_EQ(lines_in(folder.text("shorter/run.tsv")), 4);
}

TEST(Train, NamesWhatIsWrong) {
    Folder folder;
    write_book(folder);
    write_text(folder.path() / "short.txt", "too short");
    const struct {
        const char* arguments;
        int exit_code;
        const char* message;
    } cases[] = {
        {"none.txt", 1, "none.txt: cannot read this text"},
        {"book.txt --steps none", 2, "--steps: expected a number above 0, got 'none'"},
        {"book.txt --steps", 2, "--steps: expected a value"},
        {"", 2, "expected a text; hark train --demo shows a run without one"},
        {"--demo book.txt", 2, "--demo: has texts of its own, got 'book.txt'"},
        {"book.txt --vocab-size 100", 2, "--vocab-size: expected 256 to 999999, got '100'"},
        {"book.txt --vocab-size=1000000", 2, "--vocab-size: expected 256 to 999999, got '1000000'"},
        {"book.txt --prove-resume=yes", 2, "--prove-resume: expected no value, got 'yes'"},
        {"book.txt --dry-run", 2, "use gpt-train --dry-run"},
        {"book.txt --config none.conf", 1, "none.conf: cannot read this preset"},
        {"book.txt --val=x.bin", 2, "--val: this command chooses it"},
        {"book.txt --train x.bin", 2, "--train: this command chooses it"},
        {"book.txt --stepz 3", 2, "--stepz"},
        {"short.txt", 1, "short.txt: too little text (got 9 bytes, expected 5000 at least)"},
        {"short.txt short.txt", 1, "hark train: too little text (got 18 bytes, expected 5000"},
        {"book.txt --learning-rate 99", 2, "gpt-train: --learning-rate: expected a number from 0"},
        {"book.txt --config short.txt", 1, "gpt-train: short.txt:1: "},
        {"book.txt --export-model book.txt", 1, "gpt-train: book.txt: expected a new or empty"},
    };
    for (const auto& wrong : cases) {
        const ProcessResult result = train_script(folder, wrong.arguments);
        EXPECT_EQ(result.exit_code, wrong.exit_code) << wrong.arguments << result.err;
        EXPECT_EQ(result.out, "") << wrong.arguments;
        expect_contains(result.err, wrong.message);
        EXPECT_FALSE(fs::exists(folder.path() / "run")) << wrong.arguments;
    }
    // Which needs tokens, or a tokenizer, is no reason to refuse it.
    const std::string fine =
        "book.txt --steps 2 --mask-documents --sample-every 1 --output-dir fine";
    EXPECT_EQ(train_script(folder, fine).exit_code, 0);
    ASSERT_EQ(train_script(folder, "book.txt --steps 2").exit_code, 0);
    write_text(folder.path() / "book.txt", read_text(source_dir() / "docs/style.md"));
    expect_contains(train_script(folder, "book.txt --steps 2").err,
                    "choose another --output-dir\n");
    fs::remove_all(folder.path() / "run/step-00000002");
    expect_contains(train_script(folder, "book.txt --steps 2").err,
                    "choose another --output-dir, or remove run, which has no checkpoint\n");
}
