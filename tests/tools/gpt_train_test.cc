// gpt-train's contract, on the real binary: a run, its checkpoints, and runs that are broken off.
#include "tools/gpt_train.h"

#include <cstring>

using namespace hark::test;

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

// The first window of 32 tokens and the next one, as a token file of their own.
TEST(GptTrain, ValidatesOnTheFirstTokensOfAFile) {
    const TemporaryDirectory folder;
    std::string first = read_text(data() / "val.bin").substr(0, 1024 + 2 * 33);
    const int32_t tokens = 33;
    std::memcpy(first.data() + 8, &tokens, sizeof tokens);
    write_text(folder.path() / "first.bin", first);
    const auto run = [&](const char* name, const std::vector<std::string>& more) {
        const ProcessResult result = train(folder.path() / name, more);
        EXPECT_EQ(result.exit_code, 0) << result.err;
        return steps_of(result.out);
    };
    const std::vector<std::string> some = run("some", {"--val-tokens", "32"});
    EXPECT_EQ(some, run("file", {"--val", folder.path() / "first.bin"}));
    EXPECT_NE(some, steps_of(whole().result.out));
}

TEST(GptTrain, MuonTakesItsMomentum) {
    const TemporaryDirectory folder;
    const auto run = [&](const char* momentum) {
        const ProcessResult result =
            train(folder.path() / momentum, {"--optimizer", "muon", "--muon-momentum", momentum});
        EXPECT_EQ(result.exit_code, 0) << result.err;
        return steps_of(result.out);
    };
    const std::vector<std::string> with = run("0.95"), without = run("0");
    ASSERT_EQ(with.size(), 20u);
    ASSERT_EQ(without.size(), 20u);
    EXPECT_EQ(with[0], without[0]);  // the first step's loss is the new model's
    EXPECT_NE(with[19], without[19]);
    const ProcessResult standard = train(folder.path() / "standard", {"--optimizer", "muon"});
    EXPECT_EQ(steps_of(standard.out), with);
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

TEST(GptTrain, ARunInBf16GoesOnToTheSameBits) {
    const TemporaryDirectory folder;
    const fs::path out = folder.path() / "run", again = folder.path() / "again";
    const auto run = [](const fs::path& to) {
        return train(to, {"--dtype", "bf16", "--device", "cpu", "--recompute", "norms"});
    };
    const ProcessResult all = run(out);
    ASSERT_EQ(all.exit_code, 0) << all.err;
    const std::vector<std::string> steps = steps_of(all.out), exact = steps_of(whole().result.out);
    ASSERT_EQ(steps.size(), exact.size());
    EXPECT_NE(steps, exact);
    for (size_t i = 0; i < steps.size(); ++i) {
        double step = 0, ours = 0, theirs = 0;
        std::istringstream(steps[i]) >> step >> ours;
        std::istringstream(exact[i]) >> step >> theirs;
        EXPECT_NEAR(ours, theirs, 0.02) << i;
    }
    fs::copy(out, again, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    fs::remove_all(again / "step-00000020");
    expect_fails(train(again), 1, "bf16");
    const ProcessResult rest = run(again);
    ASSERT_EQ(rest.exit_code, 0) << rest.err;
    const std::vector<std::string> last = steps_of(rest.out);
    ASSERT_EQ(last.size(), 5u);
    EXPECT_TRUE(std::equal(last.rbegin(), last.rend(), steps.rbegin())) << rest.out;
    expect_same_end(out, again);
}

TEST(GptTrain, ASignalAndAClosedPipeSaveFirst) {
    for (const char* how : {"kill -TERM $trainer", "kill -HUP $trainer", "exec 3<&-"}) {
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
        EXPECT_EQ(ended.exit_code, 128 + (closed ? 13 : how[6] == 'H' ? 1 : 15)) << ended.err;
        ASSERT_EQ(checkpoints_of(out).size(), 1u);
        const int step = std::stoi(checkpoints_of(out).front().substr(5));
        const std::string saved =
            "gpt-train: " + out.string() + ": checkpoint saved at step " + std::to_string(step);
        EXPECT_EQ(ended.err.find(saved + "\n") == 0, !closed) << ended.err;
        const ProcessResult rest = train(out, {"--save-every", "1000"});
        EXPECT_EQ(rest.exit_code, 0) << rest.err;
        expect_same_end(whole().out, out);
    }
}

// The file of a run that was killed before its first checkpoint, and is run again.
TEST(GptTrain, AFileHasTheHeadingOnce) {
    const TemporaryDirectory folder;
    const std::string out = folder.path() / "run", table = folder.path() / "run.tsv";
    const std::string run = quoted(arguments_for(out, {"--save-every", "15"}));
    const std::string& full = whole().result.out;
    write_text(table, full.substr(0, full.find("\n2\t") + 1));
    ASSERT_EQ(run_shell(run + " >> '" + table + "'").exit_code, 0);
    const std::string all = read_text(table);
    EXPECT_TRUE(all.starts_with("step\tloss\t")) << all;
    EXPECT_EQ(all.find("step\tloss\t", 1), std::string::npos) << all;
    // A run that is resumed into a new file has the heading, on a pipe it has not.
    for (const char* to : {" > '%'", " | cat > '%'"}) {
        fs::remove_all(fs::path(out) / "step-00000020");
        std::string command = run + to;
        const std::string rest = folder.path() / "rest.tsv";
        ASSERT_EQ(run_shell(command.replace(command.find('%'), 1, rest)).exit_code, 0);
        EXPECT_EQ(read_text(rest).starts_with("step\tloss\t"), to[1] == '>') << read_text(rest);
        EXPECT_EQ(steps_of(read_text(rest)).size(), 5u);
    }
}

TEST(GptTrain, TheMicroBatchChangesNoOrder) {
    const TemporaryDirectory folder;
    const ProcessResult parts =
        train(folder.path() / "run", {"--batch-size", "2", "--accumulate", "2"});
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

// What pads the vocabulary in memory is in no file.
TEST(GptTrain, MomentsAreStoredAsTheParametersAre) {
    const auto data_bytes = [](const std::string& name) {
        const std::string file = read_text(whole().out / "step-00000020" / name);
        uint64_t header = 0;
        std::memcpy(&header, file.data(), sizeof header);
        return file.size() - sizeof header - header;
    };
    EXPECT_EQ(data_bytes("optimizer.safetensors"), 2 * data_bytes("model.safetensors"));
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

TEST(GptTrain, TakesTokenFilesByTheirFlag) {
    expect_fails(run_tool("gpt-train", {"train.bin"}), 2,
                 "takes no arguments (got train.bin); give token files with --train");
}

TEST(GptTrain, ARunGoesOnAsItWasBegunAlone) {
    const TemporaryDirectory folder;
    const fs::path out = folder.path() / "run";
    fs::copy(whole().out, out, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    fs::remove_all(out / "step-00000020");
    expect_fails(train(out, {"--learning-rate", "1e-3"}), 1, "was begun with rate 0.003");
    expect_fails(train(out, {"--dtype", "bf16"}), 1, "was begun with f32 (got bf16); ");
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
    expect_fails(both, 1, "another gpt-train is running");
    // Another shape than it was begun with.
    expect_fails(train(out, {"--width", "64"}), 1, "width 32");
    // Folders that are no checkpoints stay, and are not continued.
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
        return run_tool("gpt-train", {"--train", bad, "--output-dir", folder.path() / "run",
                                      "--vocab-size", "257", "--layers", "1", "--width", "8",
                                      "--heads", "1", "--sequence-length", "16", "--steps", "1"});
    };
    expect_fails(with("x" + good.substr(1)), 1, bad.string());
    expect_fails(with(good.substr(0, good.size() - 2)), 1, bad.string());
    std::string outside = good;
    outside[1024 + 101] = 2;  // 512 and more
    expect_fails(with(outside), 1, bad.string());
    expect_fails(with(good.substr(0, 8) + std::string("\x08\0\0\0", 4) + good.substr(12, 1012) +
                      good.substr(1024, 16)),
                 1, "got 8 in 1 file, expected at least 17");
    expect_fails(with(""), 1, bad.string());
    write_text(folder.path() / "empty.bin", good.substr(0, 8) + std::string(1016, '\0'));
    expect_fails(train(folder.path() / "run", {"--val", folder.path() / "empty.bin"}), 1,
                 "empty.bin: too few tokens (got 0 in 1 file, expected at least 33: a sequence and "
                 "the next token); with smaller "
                 "--val-block and --hold-out-every gpt-tokenize holds more out");
}

TEST(GptTrain, ALossThatIsNoNumberEndsTheRun) {
    const TemporaryDirectory folder;
    const fs::path out = folder.path() / "run";
    const ProcessResult result =
        train(out, {"--learning-rate", "10", "--grad-clip", "0", "--warmup", "0", "--epsilon", "1e-12",
                    "--weight-decay", "10", "--schedule", "constant", "--steps", "400",
                    "--save-every", "1"});
    expect_fails(result, 1, "the loss or the gradients are not finite");
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

// One question four times, each time with another answer that is right.
// The contents of an event file are checked in tests/gpt/event_file_test.cc.
// The first lines of --help's examples that make a configuration and train by it.
TEST(GptTrain, TheConfigurationOfTheHelpTrains) {
    std::istringstream help(run_tool("gpt-train", {"--help"}).out);
    std::string config, train;
    for (std::string line; std::getline(help, line);) {
        line.erase(0, line.find_first_not_of(' '));
        if (config.empty() && line.starts_with("printf ")) config = line;
        if (train.empty() && line.starts_with("gpt-train --config ")) train = line;
    }
    const TemporaryDirectory folder;
    const ProcessResult run = run_shell(
        "cd '" + folder.path().string() + "' && ln -s '" + (data() / "tok").string() + "' tok && " +
        "ln -s '" + (data() / "train.bin").string() + "' a.bin && " + config + " && " + train +
        " --steps 2 -t 1 --device cpu && cat t");
    EXPECT_EQ(run.exit_code, 0) << config << "\n" << train << "\n" << run.err;
    EXPECT_EQ(std::count(run.out.begin(), run.out.end(), '\n'), 3) << run.out;
    EXPECT_TRUE(fs::exists(folder.path() / "run/model.safetensors"));
}

TEST(GptTrain, WrongCommandLines) {
    const TemporaryDirectory folder;
    const fs::path out = folder.path() / "run";
    expect_fails(run_tool("gpt-train", {}), 2, "--train");
    expect_fails(run_tool("gpt-train", {"--train", "x", "--steps", "1"}), 2,
                 "--output-dir DIR is required");
    expect_fails(train(out, {"--steps", "0"}), 2, "--steps");
    expect_fails(train(out, {"--size", "124M"}), 2, "--size contradicts --layers");
    expect_fails(train(out, {"--heads", "5"}), 2, "--heads");
    expect_fails(train(out, {"--model", "demo"}), 2, "--model");
    expect_fails(train(out, {"--warmup", "21"}), 2, "--warmup");
    expect_fails(train(out, {"--context", "16"}), 2, "--sequence-length");
    expect_fails(train(out, {"--size", "125M"}), 2, "did you mean '124M'");
    expect_fails(train(out, {"--schedule", "cosin"}), 2, "--schedule");
    expect_fails(run_tool("gpt-train", {"--train", data() / "none.bin", "--output-dir", out,
                                        "--model", "demo", "--steps", "1"}),
                 1, "none.bin");
}
