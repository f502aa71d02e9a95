// gpt-train's contract, on the real binary: a run, its checkpoints, and runs that are broken off.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "support/process.h"

using namespace hark::test;
namespace fs = std::filesystem;

namespace {

// Token files and a tokenizer, made once.
const fs::path& data() {
    static const TemporaryDirectory folder;
    static const bool made = [] {
        std::string text;
        for (int i = 0; text.size() < 60'000; ++i)
            text += "Line " + std::to_string(i * i % 997) + ", and the king said no.\n";
        write_text(folder.path() / "text", text);
        const ProcessResult result =
            run_shell("cd '" + folder.path().string() +
                      "' && gpt-tokenize --train-vocab 256 --output-dir tok text && "
                      "gpt-tokenize --vocab tok --val val.bin --val-block 256 --val-every 10 text "
                      "> train.bin");
        EXPECT_EQ(result.exit_code, 0) << result.err;
        return true;
    }();
    static_cast<void>(made);
    return folder.path();
}

const std::vector<std::string>& shape() {
    static const std::vector<std::string> kShape = {"--tokenizer",  data() / "tok",
                                                    "--layers",     "2",
                                                    "--width",      "32",
                                                    "--heads",      "2",
                                                    "--length",     "32",
                                                    "--batch",      "4",
                                                    "--steps",      "20",
                                                    "--rate",       "3e-3",
                                                    "--warmup",     "5",
                                                    "--val-every",  "10",
                                                    "--save-every", "5",
                                                    "--threads",    "1"};
    return kShape;
}

// `more`: flags and their values, which replace those above.
std::vector<std::string> arguments_for(const fs::path& out,
                                       const std::vector<std::string>& more = {}) {
    std::vector<std::string> all = {
        "--train", data() / "train.bin", "--val", data() / "val.bin", "--out", out};
    all.insert(all.end(), shape().begin(), shape().end());
    for (size_t i = 0; i + 1 < more.size(); i += 2) {
        const auto found = std::find(all.begin(), all.end(), more[i]);
        if (found != all.end())
            *std::next(found) = more[i + 1];
        else
            all.insert(all.end(), {more[i], more[i + 1]});
    }
    return all;
}

ProcessResult train(const fs::path& out, const std::vector<std::string>& more = {}) {
    return run_tool("gpt-train", arguments_for(out, more));
}

std::string quoted(const std::vector<std::string>& arguments) {
    std::string text = "gpt-train";
    for (const std::string& argument : arguments) text += " '" + argument + "'";
    return text;
}

// Lines of metrics without what depends on the clock: step, loss, val_loss, rate, norm.
std::vector<std::string> steps_of(const std::string& out) {
    std::vector<std::string> lines;
    std::istringstream in(out);
    for (std::string line; std::getline(in, line);) {
        size_t at = 0;
        for (int field = 0; field < 5 && at != std::string::npos; ++field)
            at = line.find('\t', at + 1);
        if (!line.starts_with("step")) lines.push_back(line.substr(0, at));
    }
    return lines;
}

std::vector<std::string> checkpoints_of(const fs::path& out) {
    std::vector<std::string> names;
    for (const fs::directory_entry& entry : fs::directory_iterator(out))
        if (entry.path().filename().string() != "." && entry.is_directory())
            names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
}

void expect_same_end(const fs::path& a, const fs::path& b) {
    for (const char* name : {"model.safetensors", "optimizer.safetensors", "training.json"})
        EXPECT_EQ(read_text(a / "step-00000020" / name), read_text(b / "step-00000020" / name))
            << name;
}

void expect_fails(const ProcessResult& result, int exit_code, const std::string& part) {
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    EXPECT_NE(result.err.find(part), std::string::npos)
        << "'" << part << "' not in: " << result.err;
}

// The run that nothing breaks off.
struct Whole {
    TemporaryDirectory folder;
    fs::path out = folder.path() / "run";
    ProcessResult result = train(out);
};
const Whole& whole() {
    static const Whole kWhole;
    return kWhole;
}

}  // namespace

TEST(GptTrain, ALineAStepAndALossThatFalls) {
    const ProcessResult& result = whole().result;
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    const std::vector<std::string> steps = steps_of(result.out);
    ASSERT_EQ(steps.size(), 20u) << result.out;
    double first = 0, last = 0, val = 0;
    std::istringstream(steps.front().substr(2)) >> first;
    std::istringstream(steps.back().substr(3)) >> last >> val;
    EXPECT_NEAR(first, 5.55, 0.1);  // log 257, as a new model's must be
    EXPECT_LT(last, 4.5);
    EXPECT_NEAR(val, last, 0.3);
    EXPECT_EQ(std::count(steps[8].begin(), steps[8].end(), '\t'), 4);
    EXPECT_NE(steps[8].find("\t\t"), std::string::npos) << "no validation at step 9: " << steps[8];
    EXPECT_EQ(steps[9].find("\t\t"), std::string::npos) << "validation at step 10: " << steps[9];
}

TEST(GptTrain, GenerateReadsWhatItWrote) {
    const ProcessResult made =
        run_tool("gpt-generate",
                 {"--model", whole().out.string() + "/", "--max-tokens", "5", "--temperature", "0"},
                 "and the king");
    EXPECT_EQ(made.exit_code, 0) << made.err;
    EXPECT_FALSE(made.out.empty());
}

TEST(GptTrain, KeepsTheNewestCheckpoints) {
    EXPECT_EQ(checkpoints_of(whole().out),
              (std::vector<std::string>{"step-00000015", "step-00000020"}));
    EXPECT_EQ(fs::read_symlink(whole().out / "model.safetensors"),
              fs::path("step-00000020/model.safetensors"));
}

TEST(GptTrain, AKilledRunGoesOnToTheSameBits) {
    const TemporaryDirectory folder;
    const fs::path out = folder.path() / "run";
    // Killed once step 12 is written: the checkpoint is that of step 10.
    const ProcessResult killed =
        run_shell("mkfifo '" + folder.path().string() + "/pipe'; " + quoted(arguments_for(out)) +
                  " > '" + folder.path().string() +
                  "/pipe' & trainer=$!; while read -r step rest; do [ \"$step\" != 12 ] || "
                  "{ kill -9 $trainer; break; }; done < '" +
                  folder.path().string() + "/pipe'; wait $trainer");
    EXPECT_EQ(killed.exit_code, 128 + 9) << killed.err;
    ASSERT_FALSE(checkpoints_of(out).empty());
    EXPECT_LT(checkpoints_of(out).back(), "step-00000020");
    const ProcessResult rest = train(out);
    EXPECT_EQ(rest.exit_code, 0) << rest.err;
    const std::vector<std::string> steps = steps_of(rest.out), all = steps_of(whole().result.out);
    ASSERT_GE(steps.size(), 5u);
    ASSERT_LE(steps.size(), all.size());
    EXPECT_TRUE(std::equal(steps.rbegin(), steps.rend(), all.rbegin())) << rest.out;
    expect_same_end(whole().out, out);
    const ProcessResult again = train(out);  // done already
    EXPECT_EQ(again.exit_code, 0) << again.err;
    EXPECT_EQ(again.out, "");
}

TEST(GptTrain, ASignalAndAClosedPipeSaveFirst) {
    for (const char* how : {"kill -TERM $trainer", "exec 3<&-"}) {
        SCOPED_TRACE(how);
        const TemporaryDirectory folder;
        const fs::path out = folder.path() / "run", pipe = folder.path() / "pipe";
        const bool closed = how[0] == 'e';
        const ProcessResult ended =
            run_shell("mkfifo '" + pipe.string() + "'; " +
                      quoted(arguments_for(out, {"--save-every", "1000"})) + " > '" +
                      pipe.string() + "' & trainer=$!; exec 3< '" + pipe.string() +
                      "'; while read -r step rest <&3; do [ \"$step\" != 4 ] || { " + how +
                      "; break; }; done; [ -z \"" + (closed ? "" : "x") +
                      "\" ] || cat <&3 > /dev/null; wait $trainer");
        EXPECT_EQ(ended.exit_code, 128 + (closed ? 13 : 15)) << ended.err;
        ASSERT_EQ(checkpoints_of(out).size(), 1u);
        const ProcessResult rest = train(out, {"--save-every", "1000"});
        EXPECT_EQ(rest.exit_code, 0) << rest.err;
        expect_same_end(whole().out, out);
    }
}

TEST(GptTrain, TheMicroBatchChangesNoOrder) {
    const TemporaryDirectory folder;
    const ProcessResult parts = train(folder.path() / "run", {"--batch", "2", "--accumulate", "2"});
    EXPECT_EQ(parts.exit_code, 0) << parts.err;
    const std::vector<std::string> found = steps_of(parts.out), all = steps_of(whole().result.out);
    ASSERT_EQ(found.size(), all.size());
    for (size_t i = 0; i < all.size(); ++i) {
        double step = 0, ours = 0, theirs = 0;
        std::istringstream(found[i]) >> step >> ours;
        std::istringstream(all[i]) >> step >> theirs;
        EXPECT_NEAR(ours, theirs, 2e-5) << i;
    }
}

TEST(GptTrain, ADiskThatIsFullLeavesTheLastCheckpoint) {
    const TemporaryDirectory folder;
    const fs::path out = folder.path() / "run";
    ASSERT_EQ(train(out, {"--steps", "20"}).exit_code, 0);
    fs::remove_all(out / "step-00000020");  // as if it had been stopped at 15
    const std::string before = read_text(out / "step-00000015/optimizer.safetensors");
    const ProcessResult full =
        run_shell("trap '' XFSZ; ulimit -f 64; " + quoted(arguments_for(out)));
    expect_fails(full, 1, "cannot write");
    EXPECT_EQ(checkpoints_of(out), (std::vector<std::string>{"step-00000015"}));
    EXPECT_EQ(read_text(out / "step-00000015/optimizer.safetensors"), before);
    EXPECT_EQ(train(out).exit_code, 0);
    expect_same_end(whole().out, out);
}

TEST(GptTrain, DamagedCheckpointsAreNamed) {
    const TemporaryDirectory folder;
    const fs::path out = folder.path() / "run", last = out / "step-00000015";
    for (const std::string name : {"model.safetensors", "optimizer.safetensors", "training.json"}) {
        fs::remove_all(out);
        fs::copy(whole().out, out, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
        fs::remove_all(out / "step-00000020");
        const std::string content = read_text(last / name);
        write_text(last / name, content.substr(0, content.size() / 2));
        expect_fails(train(out), 1, (last / name).string());
        fs::remove(last / name);
        expect_fails(train(out), 1, "step-00000015");
    }
}

TEST(GptTrain, ARunGoesOnAsItWasBegunAlone) {
    const TemporaryDirectory folder;
    const fs::path out = folder.path() / "run";
    fs::copy(whole().out, out, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    fs::remove_all(out / "step-00000020");
    expect_fails(train(out, {"--rate", "1e-3"}), 1, "rate 0.003");
    expect_fails(train(out, {"--train", data() / "val.bin"}), 1, "train.bin:");
}

TEST(GptTrain, AFolderIsOneRunsAlone) {
    const TemporaryDirectory folder;
    const fs::path out = folder.path() / "run";
    // A model that somebody keeps there.
    fs::create_directory(out);
    write_text(out / "model.safetensors", "weights");
    expect_fails(train(out), 1, "found a model's model.safetensors");
    EXPECT_EQ(read_text(out / "model.safetensors"), "weights");
    // Another process at work.
    fs::remove_all(out);
    fs::copy(whole().out, out, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    const ProcessResult both =
        run_shell("flock '" + (out / ".lock").string() + "' " + quoted(arguments_for(out)));
    expect_fails(both, 1, "another gpt-train is at work");
    // Another shape than it was begun with.
    expect_fails(train(out, {"--width", "64"}), 1, "width 32");
    // Folders that are no checkpoints stay, and are not gone on from.
    fs::remove_all(out / "step-00000020");
    for (const char* name : {"step-00000010-good", "step-best", "step-9"})
        fs::create_directory(out / name);
    EXPECT_EQ(train(out).exit_code, 0);
    expect_same_end(whole().out, out);
    for (const char* name : {"step-00000010-good", "step-best", "step-9"})
        EXPECT_TRUE(fs::exists(out / name)) << name;
}

// A checkpoint that is whole, and a link that was not moved to it before the run was killed.
TEST(GptTrain, TheLinkFollowsTheNewestCheckpoint) {
    const TemporaryDirectory folder;
    const fs::path out = folder.path() / "run", link = out / "model.safetensors";
    fs::copy(whole().out, out, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    fs::remove(link);
    EXPECT_EQ(train(out).exit_code, 0);
    EXPECT_EQ(fs::read_symlink(link), fs::path("step-00000020/model.safetensors"));
}

TEST(GptTrain, BadTokensAreNamed) {
    const TemporaryDirectory folder;
    const fs::path bad = folder.path() / "bad.bin";
    const std::string good = read_text(data() / "train.bin");
    const auto with = [&](const std::string& content) {
        write_text(bad, content);
        return run_tool("gpt-train", {"--train", bad, "--out", folder.path() / "run",
                                      "--vocab-size", "257", "--layers", "1", "--width", "8",
                                      "--heads", "1", "--length", "16", "--steps", "1"});
    };
    expect_fails(with("x" + good.substr(1)), 1, bad.string());
    expect_fails(with(good.substr(0, good.size() - 2)), 1, bad.string());
    std::string outside = good;
    outside[1024 + 101] = 2;  // 512 and more
    expect_fails(with(outside), 1, bad.string());
    expect_fails(with(good.substr(0, 8) + std::string("\x08\0\0\0", 4) + good.substr(12, 1012) +
                      good.substr(1024, 16)),
                 1, "expected at least 17 tokens");
    expect_fails(with(""), 1, bad.string());
}

TEST(GptTrain, ALossThatIsNoNumberEndsTheRun) {
    const TemporaryDirectory folder;
    const fs::path out = folder.path() / "run";
    const ProcessResult result =
        train(out, {"--rate", "10", "--clip", "0", "--warmup", "0", "--epsilon", "1e-12",
                    "--weight-decay", "10", "--schedule", "constant", "--steps", "400",
                    "--save-every", "1"});
    expect_fails(result, 1, "expected a finite loss");
    EXPECT_FALSE(checkpoints_of(out).empty());
}

// From step 128 on: a limit that every second loss is over. The windows are part of a checkpoint.
TEST(GptTrain, OutliersAreSkippedAndSaidAlsoInARunThatGoesOn) {
    const TemporaryDirectory folder;
    const auto run = [&](const char* name) {
        return train(folder.path() / name,
                     {"--steps", "140", "--skip-outliers", "0.000001", "--val-every", "0",
                      "--save-every", "135", "--schedule", "constant"});
    };
    const ProcessResult result = run("run");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_NE(result.err.find("is skipped as an outlier"), std::string::npos) << result.err;
    EXPECT_EQ(result.err.find("step 127 is skipped"), std::string::npos) << result.err;
    fs::copy(folder.path() / "run", folder.path() / "again",
             fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    fs::remove_all(folder.path() / "again/step-00000140");
    const ProcessResult again = run("again");
    EXPECT_EQ(again.exit_code, 0) << again.err;
    for (const char* name : {"model.safetensors", "training.json"})
        EXPECT_EQ(read_text(folder.path() / "run/step-00000140" / name),
                  read_text(folder.path() / "again/step-00000140" / name));
}

TEST(GptTrain, ModelsGoToLlmcAndBack) {
    const TemporaryDirectory folder;
    const fs::path file = folder.path() / "model.bin", half = folder.path() / "half.bin";
    fs::copy(whole().out, folder.path() / "run",
             fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    const auto exported = [&](const fs::path& to,
                              const std::string& dtype) {  // of a run that ended
        const ProcessResult result =
            train(folder.path() / "run", {"--export-llmc", to.string(), "--export-dtype", dtype});
        EXPECT_EQ(result.exit_code, 0) << result.err;
    };
    exported(file, "f32");
    exported(half, "bf16");
    // Width 32, 2 layers, 32 positions, 257 tokens padded to 384.
    const size_t count = 384 * 32 + 32 * 32 + 2 * (12 * 32 * 32 + 13 * 32) + 2 * 32;
    EXPECT_EQ(fs::file_size(file), 1024 + 4 * count);
    EXPECT_EQ(fs::file_size(half), 1024 + 2 * count);

    const auto from = [&](const std::string& model, const std::string& out) {
        std::vector<std::string> all = {"--train",  data() / "train.bin",
                                        "--val",    data() / "val.bin",
                                        "--out",    folder.path() / out,
                                        "--model",  model,
                                        "--steps",  "1",
                                        "--rate",   "0",
                                        "--length", "32"};
        if (model.ends_with(".bin")) all.insert(all.end(), {"--tokenizer", data() / "tok"});
        return run_tool("gpt-train", all);
    };
    const ProcessResult theirs = from(whole().out.string() + "/", "a"), ours = from(file, "b");
    ASSERT_EQ(ours.exit_code, 0) << ours.err;
    EXPECT_EQ(steps_of(ours.out), steps_of(theirs.out));
    // The run's own last validation: the file has its weights.
    const std::string last = steps_of(whole().result.out).back();
    double val = 0, read = 0, rounded = 0;
    std::istringstream(last.substr(last.find('\t', 3))) >> val;
    const auto validation = [](const std::string& out) {
        double step = 0, loss = 0, found = 0;
        std::istringstream(steps_of(out).at(0)) >> step >> loss >> found;
        return found;
    };
    read = validation(ours.out);
    EXPECT_NEAR(read, val, 1e-5);
    const ProcessResult halves = from(half, "c");
    ASSERT_EQ(halves.exit_code, 0) << halves.err;
    rounded = validation(halves.out);
    EXPECT_NEAR(rounded, val, 1e-2);
    EXPECT_NE(rounded, val);
    EXPECT_EQ(
        run_tool("gpt-generate", {"--model", folder.path() / "b/", "--max-tokens", "2"}, "the")
            .exit_code,
        0);

    const std::string bytes = read_text(file);
    write_text(file, bytes.substr(0, bytes.size() - 100));
    expect_fails(from(file, "d"), 1, file.string() + ": its header describes a model of");
    write_text(file, "not a model");
    expect_fails(from(file, "d"), 1, file.string() + ": expected an llm.c model");
}

// One question four times, each time with another answer that is right.
TEST(GptTrain, HellaSwagWithEveryValidation) {
    const TemporaryDirectory folder;
    const fs::path file = folder.path() / "hellaswag.bin";
    std::string bytes("\x8a\xd8\x34\x01\x01\0\0\0\x04\0\0\0", 12);
    bytes.resize(1024, '\0');
    for (const int label : {0, 1, 2, 3})
        for (const int number :
             {65535, 38, label, label, 4, 2, 97, 98, 1, 50, 2, 60, 70, 2, 80, 90, 2, 91, 92})
            bytes += {static_cast<char>(number & 255), static_cast<char>(number >> 8)};
    write_text(file, bytes);
    const auto run = [&](const std::string& out) {
        return train(folder.path() / out, {"--hellaswag", file.string()});
    };
    const ProcessResult result = run("run");
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(steps_of(result.out), steps_of(whole().result.out));  // nothing else changes
    std::istringstream lines(result.out);
    std::string line;
    std::getline(lines, line);
    EXPECT_TRUE(line.ends_with("\tfraction\thellaswag")) << line;
    for (int step = 1; std::getline(lines, line); ++step)
        EXPECT_EQ(line.substr(line.rfind('\t')), step % 10 == 0 ? "\t0.2500" : "\t") << line;
    write_text(file, bytes.substr(0, bytes.size() - 1));
    expect_fails(run("broken"), 1, file.string() + ": example 3: expected a token, found the");
    write_text(file, "");
    expect_fails(run("broken"), 1, file.string() + ": expected an evaluation file");
}

// What stands in an event file is looked at in tests/gpt/event_file_test.cc.
TEST(GptTrain, EventFilesOfARunThatGoesOn) {
    const TemporaryDirectory folder;
    const fs::path out = folder.path() / "run", events = folder.path() / "board/a";
    const auto files = [&] {
        std::vector<std::string> contents;
        for (const fs::directory_entry& entry : fs::directory_iterator(events))
            contents.push_back(read_text(entry.path()));
        return contents;
    };
    const auto count = [](const std::string& text, const std::string& part) {
        int found = 0;
        for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++found;
        return found;
    };
    const ProcessResult first = train(out, {"--tensorboard", events.string()});
    ASSERT_EQ(first.exit_code, 0) << first.err;
    EXPECT_EQ(steps_of(first.out), steps_of(whole().result.out));
    ASSERT_EQ(files().size(), 1u);
    EXPECT_EQ(count(files()[0], "learning_rate"), 20);
    EXPECT_EQ(count(files()[0], "val_loss"), 2);
    EXPECT_EQ(train(out, {"--tensorboard", events.string()}).exit_code, 0);
    EXPECT_EQ(files().size(), 1u) << "a run that has ended has no more events";
    fs::remove_all(out / "step-00000020");
    EXPECT_EQ(train(out, {"--tensorboard", events.string()}).exit_code, 0);
    ASSERT_EQ(files().size(), 2u);
    EXPECT_EQ(count(files()[0], "learning_rate") + count(files()[1], "learning_rate"), 25);
    write_text(folder.path() / "file", "");
    expect_fails(train(folder.path() / "other", {"--tensorboard", folder.path() / "file"}), 1,
                 (folder.path() / "file").string());
}

TEST(GptTrain, SamplesOfWhatItWrites) {
    const TemporaryDirectory folder;
    const fs::path out = folder.path() / "run";
    const std::vector<std::string> more = {
        "--sample-every", "10", "--sample-tokens", "12", "--sample-prompt", "and the king"};
    const ProcessResult result = train(out, more);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(steps_of(result.out), steps_of(whole().result.out));  // nothing else changes
    const std::string texts = read_text(out / "samples.txt");
    const size_t second = texts.find("\n\nstep 20:\n");
    ASSERT_NE(second, std::string::npos) << texts;
    EXPECT_TRUE(texts.starts_with("step 10:\nand the king"));
    // The last one is what gpt-generate makes of the checkpoint: seed 0, and of its 20th prompt.
    const ProcessResult made = run_tool("gpt-generate",
                                        {"--model", out.string() + "/", "--max-tokens", "12",
                                         "--seed", "20", "--echo", "--dtype", "f32"},
                                        "and the king");
    EXPECT_EQ(made.exit_code, 0) << made.err;
    EXPECT_EQ(texts.substr(second + 11), made.out + (made.out.ends_with('\n') ? "\n" : "\n\n"))
        << texts;
    EXPECT_FALSE(fs::exists(out / "step-00000020/samples.txt"));
    EXPECT_TRUE(fs::exists(out / "step-00000020/tokenizer.json"));

    fs::remove_all(out / "step-00000020");
    EXPECT_EQ(train(out, more).exit_code, 0);
    EXPECT_EQ(read_text(out / "samples.txt"), texts + texts.substr(second + 2));
    expect_fails(
        run_tool("gpt-train", {"--train", data() / "train.bin", "--out", folder.path() / "other",
                               "--vocab-size", "257", "--layers", "1", "--width", "8", "--heads",
                               "1", "--length", "16", "--steps", "1", "--sample-every", "1"}),
        1, "--sample-every: the run has no tokenizer");
}

TEST(GptTrain, PresetsAreTaken) {
    const TemporaryDirectory folder;
    int presets = 0;
    for (const fs::directory_entry& entry :
         fs::directory_iterator(source_dir() / "presets/gpt-train")) {
        SCOPED_TRACE(entry.path());
        ++presets;
        expect_fails(run_tool("gpt-train", {"--config", entry.path()}), 2, "--train: expected");
        // All flags and the shape make sense, so that the tokens are looked for.
        expect_fails(
            run_tool("gpt-train", {"--config", entry.path(), "--train", "none.bin", "--out",
                                   folder.path() / "a", "--tokenizer", data() / "tok"}),
            1, "none.bin");
    }
    EXPECT_GE(presets, 4);
    // The command line wins.
    const ProcessResult result = run_tool(
        "gpt-train", {"--config", source_dir() / "presets/gpt-train/quick-test.conf", "--train",
                      data() / "train.bin", "--out", folder.path() / "b", "--tokenizer",
                      data() / "tok", "--width", "16", "--steps", "2", "--warmup", "1"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const std::vector<std::string> steps = steps_of(result.out);
    ASSERT_EQ(steps.size(), 2u);
    EXPECT_NE(steps[0].find("\t0.001\t"), std::string::npos) << steps[0];  // the preset's rate
}

TEST(GptTrain, WrongCommandLines) {
    const TemporaryDirectory folder;
    const fs::path out = folder.path() / "run";
    expect_fails(run_tool("gpt-train", {}), 2, "--train");
    expect_fails(run_tool("gpt-train", {"--train", "x", "--steps", "1"}), 2, "--out");
    expect_fails(train(out, {"--steps", "0"}), 2, "--steps");
    expect_fails(train(out, {"--size", "124M"}), 2, "exclude each other");
    expect_fails(train(out, {"--heads", "5"}), 2, "--heads");
    expect_fails(train(out, {"--model", "demo"}), 2, "--model");
    expect_fails(train(out, {"--warmup", "21"}), 2, "--warmup");
    expect_fails(train(out, {"--context", "16"}), 2, "--length");
    expect_fails(train(out, {"--schedule", "cosin"}), 2, "--schedule");
    expect_fails(run_tool("gpt-train", {"--train", data() / "none.bin", "--out", out, "--model",
                                        "demo", "--steps", "1"}),
                 1, "none.bin");
}
