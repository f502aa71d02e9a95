// What gpt-train writes next to its checkpoints, on the real binary.
#include "support/terminal.h"
#include "tools/gpt_train.h"

using namespace hark::test;

TEST(GptTrain, ModelsGoToADirectoryOfTheirOwn) {
    const TemporaryDirectory folder;
    fs::copy(whole().out, folder.path() / "run",
             fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    for (const std::string dtype : {"f32", "f16", "bf16"}) {
        const fs::path to = folder.path() / dtype;
        const ProcessResult exported =
            train(folder.path() / "run", {"--export-model", to.string(), "--export-type", dtype});
        ASSERT_EQ(exported.exit_code, 0) << exported.err;
        EXPECT_TRUE(fs::exists(to / "tokenizer.json"));
        const auto bytes = fs::file_size(to / "model.safetensors"),
                   whole_bytes = fs::file_size(folder.path() / "run/model.safetensors");
        // 257 tokens, width 32, 2 layers, 32 positions.
        constexpr double kCount = 257 * 32 + 32 * 32 + 2 * (12 * 32 * 32 + 13 * 32) + 2 * 32;
        EXPECT_NEAR(static_cast<double>(whole_bytes) - static_cast<double>(bytes),
                    dtype == "f32" ? 0 : 2 * kCount, 500);
        const auto text = [&](const fs::path& model) {
            return run_shell("echo Line | gpt-generate --device cpu --max-tokens 8 --model '" +
                             model.string() + "/'");
        };
        const ProcessResult ours = text(to), theirs = text(folder.path() / "run");
        EXPECT_EQ(ours.exit_code, 0) << ours.err;
        EXPECT_EQ(ours.out.empty(), false);
        if (dtype == "f32") {
            EXPECT_EQ(ours.out, theirs.out);
        }
    }
    // Nobody's files are written over, and that is said before the first step.
    write_text(folder.path() / "file", "x");
    for (const char* taken : {"f16", "run", "file", "file/model"}) {
        const ProcessResult refused =
            train(folder.path() / "another", {"--export-model", folder.path() / taken});
        EXPECT_EQ(refused.exit_code, 1) << taken;
        EXPECT_NE(refused.err.find(taken), std::string::npos) << refused.err;
        EXPECT_EQ(refused.out, "");
    }
    expect_fails(
        train(folder.path() / "another", {"--export-llmc", folder.path() / "file/model.bin"}), 1,
        "file/model.bin");
    expect_fails(train(folder.path() / "run",
                       {"--export-llmc", folder.path() / "x", "--export-type", "f16"}),
                 2, "--export-type");
}

TEST(GptTrain, ModelsGoToLlmcAndBack) {
    const TemporaryDirectory folder;
    const fs::path file = folder.path() / "model.bin", half = folder.path() / "half.bin";
    fs::copy(whole().out, folder.path() / "run",
             fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    const auto exported = [&](const fs::path& to,
                              const std::string& dtype) {  // of a run that ended
        const ProcessResult result =
            train(folder.path() / "run", {"--export-llmc", to.string(), "--export-type", dtype});
        EXPECT_EQ(result.exit_code, 0) << result.err;
    };
    exported(file, "f32");
    exported(folder.path() / "a/new/folder.bin", "f32");
    EXPECT_EQ(read_text(folder.path() / "a/new/folder.bin"), read_text(file));
    exported(half, "bf16");
    // Width 32, 2 layers, 32 positions, 257 tokens padded to 384.
    const size_t count = 384 * 32 + 32 * 32 + 2 * (12 * 32 * 32 + 13 * 32) + 2 * 32;
    EXPECT_EQ(fs::file_size(file), 1024 + 4 * count);
    EXPECT_EQ(fs::file_size(half), 1024 + 2 * count);

    const auto from = [&](const std::string& model, const std::string& out) {
        std::vector<std::string> all = {"--train",
                                        data() / "train.bin",
                                        "--val",
                                        data() / "val.bin",
                                        "--output-dir",
                                        folder.path() / out,
                                        "--model",
                                        model,
                                        "--steps",
                                        "1",
                                        "--learning-rate",
                                        "0",
                                        "--sequence-length",
                                        "32"};
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
    expect_fails(from(file, "d"), 1,
                 file.string() + ": expected a language model: a Hugging Face directory, a GGUF file");
}

TEST(GptGenerate, ModelsOfLlmcTakeAVocabulary) {
    const TemporaryDirectory folder;
    const fs::path file = folder.path() / "model.bin";
    fs::copy(whole().out, folder.path() / "run",
             fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    ASSERT_EQ(train(folder.path() / "run", {"--export-llmc", file.string()}).exit_code, 0);
    const auto generate = [](const fs::path& model, std::vector<std::string> more) {
        more.insert(more.end(), {"--model", model, "--temperature", "0", "--max-tokens", "12",
                                 "--dtype", "f32", "--device", "cpu"});
        return run_tool("gpt-generate", more, "the");
    };
    const ProcessResult expected = generate(whole().out.string() + "/", {});
    ASSERT_EQ(expected.exit_code, 0) << expected.err;
    for (const fs::path& vocab : {data() / "tok", data() / "tok" / "tokenizer.json"}) {
        const ProcessResult found = generate(file, {"--tokenizer", vocab});
        EXPECT_EQ(found.exit_code, 0) << found.err;
        EXPECT_EQ(found.out, expected.out);
    }
    expect_fails(generate(file, {}), 1,
                 file.string() + ": llm.c's models carry no tokenizer; give one with --tokenizer");
    expect_fails(run_tool("gpt-tokenize", {"--model", file}, "the"), 1,
                 "llm.c's models carry no tokenizer; give one with --tokenizer");
}

TEST(GptTrain, HellaSwagWithEveryValidation) {
    const TemporaryDirectory folder;
    const fs::path file = folder.path() / "hellaswag.bin";
    write_text(file, questions());
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
    write_text(file, questions().substr(0, questions().size() - 1));
    expect_fails(run("broken"), 1, file.string() + ": example 3: expected a token, found the");
    write_text(file, "");
    expect_fails(run("broken"), 1, file.string() + ": expected an evaluation file");
}

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

    // Steps that are done again write no sample twice; one that is missing is written.
    const std::string first = texts.substr(0, second + 2);
    for (const std::string& left : {texts, first, texts.substr(0, texts.size() - 5)}) {
        fs::remove_all(out / "step-00000020");
        write_text(out / "samples.txt", left);
        EXPECT_EQ(train(out, more).exit_code, 0);
        EXPECT_EQ(read_text(out / "samples.txt"), texts);
    }
    write_text(out / "samples.txt", first);  // as if killed between the checkpoint and the sample
    EXPECT_EQ(train(out, more).exit_code, 0);
    EXPECT_EQ(read_text(out / "samples.txt"), texts);
    expect_fails(run_tool("gpt-train",
                          {"--train", data() / "train.bin", "--output-dir", folder.path() / "other",
                           "--vocab-size", "257", "--layers", "1", "--width", "8", "--heads", "1",
                           "--sequence-length", "16", "--steps", "1", "--sample-every", "1"}),
                 1, "--sample-every: the run has no tokenizer");
}

// A small preset runs; a large one is planned.
TEST(GptTrain, PresetsStart) {
    const TemporaryDirectory folder;
    const auto started = [&](const std::string& preset, std::vector<std::string> more) {
        more.insert(more.begin(),
                    {"--config", source_dir() / "presets/gpt-train" / (preset + ".conf"), "--train",
                     "synthetic", "--val", "synthetic", "--output-dir", folder.path() / preset});
        const ProcessResult result = run_tool("gpt-train", more);
        EXPECT_EQ(result.exit_code, 0) << preset << ": " << result.err;
        return result.out;
    };
    for (const char* preset : {"quick-test", "development"}) {
        const std::vector<std::string> steps = steps_of(started(
            preset, {"--steps", "2", "--warmup", "1", "--width", "24", "--vocab-size", "300",
                     "--val-tokens", "64", "--accumulate", "1", "--batch-size", "2"}));
        ASSERT_EQ(steps.size(), 2u) << preset;
        EXPECT_NE(steps[0].find("\t0.001\t"), std::string::npos) << steps[0];  // the preset's rate
        EXPECT_TRUE(fs::exists(folder.path() / preset / "step-00000002")) << preset;
    }
    for (const char* preset : {"production", "distributed"}) {
        const std::string plan = started(preset, {"--dry-run"});
        EXPECT_NE(plan.find("shape        12 layers, width 768, 12 heads, context 1024, vocabulary "
                            "50257\nparameters   124,439,808\n"),
                  std::string::npos)
            << plan;
        EXPECT_FALSE(fs::exists(folder.path() / preset)) << preset;
    }
    size_t presets = 0;
    for (const fs::directory_entry& entry :
         fs::directory_iterator(source_dir() / "presets/gpt-train"))
        presets += entry.is_regular_file();
    EXPECT_EQ(presets, 4u) << "each preset is in this test";
}

TEST(GptTrain, ADryRunPrintsAndWritesNothing) {
    const TemporaryDirectory folder;
    const fs::path out = folder.path() / "run";
    std::vector<std::string> arguments = arguments_for(out);
    arguments.push_back("--dry-run");
    const ProcessResult planned = run_tool("gpt-train", arguments);
    EXPECT_EQ(planned.exit_code, 0) << planned.err;
    EXPECT_EQ(planned.err, "");
    EXPECT_FALSE(fs::exists(out));
    // 257 tokens, width 32, 2 layers, 32 positions.
    for (const char* line :
         {"shape        2 layers, width 32, 2 heads, context 32, vocabulary 257\n",
          "parameters   34,720\n", "weights      0.1 MB (f32)\n", "gradients    0.1 MB\n",
          "moments      0.3 MB\n", "\nactivations  ", "\ntotal        ",
          "per step     128 tokens: 4 sequences of 32\n",
          "all steps    2,560 tokens in 20 steps, "})
        EXPECT_NE(planned.out.find(line), std::string::npos) << line << " not in " << planned.out;
    // Without a file and without a folder for the run.
    const ProcessResult synthetic = run_tool(
        "gpt-train", {"--size", "124M", "--train", "synthetic", "--steps", "10", "--dry-run"});
    EXPECT_EQ(synthetic.exit_code, 0) << synthetic.err;
    EXPECT_NE(synthetic.out.find("81,920 tokens in 10 steps, 0.08 epochs of 1,048,576\n"),
              std::string::npos)
        << synthetic.out;
}

// A person sees the lines, and below them one of progress.
TEST(GptTrain, LinesOnATerminalAreAboveTheProgress) {
    const std::string command =
        "gpt-train --train synthetic --steps 5 --layers 1 --heads 2 --width 32 --vocab-size 300 "
        "--sequence-length 32 --batch-size 2 --device cpu --threads 1 --dtype f32 --output-dir ";
    const TemporaryDirectory folder;
    Terminal terminal(command + "'" + (folder.path() / "run").string() + "'", 300);
    EXPECT_EQ(terminal.finish(), 0);
    EXPECT_NE(terminal.bytes().find("step 1 of 5"), std::string::npos) << "no progress was shown";
    const std::vector<std::string> screen = terminal.screen();
    ASSERT_EQ(screen.size(), 6u) << terminal.bytes();
    EXPECT_TRUE(screen[0].starts_with("step")) << screen[0];
    for (size_t step = 1; step < screen.size(); ++step)
        EXPECT_TRUE(screen[step].starts_with(std::to_string(step) + "\t")) << screen[step];
}

TEST(GptTrain, SyntheticTokensNeedNoFile) {
    const TemporaryDirectory folder;
    const auto run = [&](const char* name, const char* seed) {
        const ProcessResult result = run_tool("gpt-train", {"--train",
                                                            "synthetic",
                                                            "--val",
                                                            "synthetic",
                                                            "--output-dir",
                                                            folder.path() / name,
                                                            "--vocab-size",
                                                            "256",
                                                            "--layers",
                                                            "1",
                                                            "--width",
                                                            "32",
                                                            "--heads",
                                                            "2",
                                                            "--sequence-length",
                                                            "32",
                                                            "--batch-size",
                                                            "8",
                                                            "--steps",
                                                            "150",
                                                            "--learning-rate",
                                                            "1e-2",
                                                            "--val-tokens",
                                                            "2048",
                                                            "--seed",
                                                            seed,
                                                            "--threads",
                                                            "1"});
        EXPECT_EQ(result.exit_code, 0) << result.err;
        return steps_of(result.out);
    };
    const std::vector<std::string> steps = run("a", "1");
    ASSERT_EQ(steps.size(), 150u);
    double step = 0, first = 0, last = 0, val = 0;
    std::istringstream(steps.front()) >> step >> first;
    std::istringstream(steps.back()) >> step >> last >> val;
    EXPECT_NEAR(first, 5.55, 0.1);  // log 256
    EXPECT_LT(last, 1.5);
    EXPECT_NEAR(val, last, 0.2);  // other words in the same language
    EXPECT_EQ(run("b", "1"), steps);
    EXPECT_NE(run("c", "2"), steps);
}

TEST(Help, OfGptToolsFitsAScreen) {
    for (const char* tool : {"gpt-generate", "gpt-tokenize", "gpt-train"}) {
        const ProcessResult help = run_tool(tool, {"--help"});
        EXPECT_EQ(help.exit_code, 0);
        EXPECT_LE(std::count(help.out.begin(), help.out.end(), '\n'), 45) << help.out;
        EXPECT_NE(help.out.find("\nExamples:\n"), std::string::npos);
        EXPECT_EQ(help.out.find("\nOptions:\n"), std::string::npos) << "a flag has no section";
        std::istringstream lines(help.out);
        for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 79u) << line;
    }
}
