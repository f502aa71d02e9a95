// What the tests of gpt-train share: its data, a run that nothing breaks off, and its lines.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "support/expect.h"
#include "support/process.h"

namespace hark::test {

namespace fs = std::filesystem;

// Token files and a tokenizer, made once.
inline const fs::path& data() {
    static const TemporaryDirectory folder;
    static const bool made = [] {
        std::string text;
        for (int i = 0; text.size() < 60'000; ++i)
            text += "Line " + std::to_string(i * i % 997) + ", and the king said no.\n";
        write_text(folder.path() / "text", text);
        const ProcessResult result = run_shell(
            "cd '" + folder.path().string() +
            "' && gpt-tokenize --train-tokenizer --vocab-size 256 --output-dir tok text && "
            "gpt-tokenize --tokenizer tok --val-output val.bin --val-block 256 --hold-out-every 10 text "
            "> train.bin");
        EXPECT_EQ(result.exit_code, 0) << result.err;
        return true;
    }();
    static_cast<void>(made);
    return folder.path();
}

inline const std::vector<std::string>& shape() {
    static const std::vector<std::string> kShape = {"--tokenizer",       data() / "tok",
                                                    "--layers",          "2",
                                                    "--width",           "32",
                                                    "--heads",           "2",
                                                    "--sequence-length", "32",
                                                    "--batch-size",      "4",
                                                    "--steps",           "20",
                                                    "--learning-rate",   "3e-3",
                                                    "--warmup",          "5",
                                                    "--val-every",       "10",
                                                    "--save-every",      "5",
                                                    "--threads",         "1"};
    return kShape;
}

// `more`: flags and their values, which replace those above.
inline std::vector<std::string> arguments_for(const fs::path& out,
                                              const std::vector<std::string>& more = {}) {
    std::vector<std::string> all = {"--train",          data() / "train.bin", "--val",
                                    data() / "val.bin", "--output-dir",       out};
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

inline ProcessResult train(const fs::path& out, const std::vector<std::string>& more = {}) {
    return run_tool("gpt-train", arguments_for(out, more));
}

inline std::string quoted(const std::vector<std::string>& arguments) {
    std::string text = "gpt-train";
    for (const std::string& argument : arguments) text += " '" + argument + "'";
    return text;
}

// Lines of metrics without what depends on the clock: step, loss, val_loss, rate, norm.
inline std::vector<std::string> steps_of(const std::string& out) {
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

inline std::vector<std::string> checkpoints_of(const fs::path& out) {
    std::vector<std::string> names;
    for (const fs::directory_entry& entry : fs::directory_iterator(out))
        if (entry.path().filename().string() != "." && entry.is_directory())
            names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
}

inline void expect_same_end(const fs::path& a, const fs::path& b) {
    for (const char* name : {"model.safetensors", "optimizer.safetensors", "training.json"})
        EXPECT_EQ(read_text(a / "step-00000020" / name), read_text(b / "step-00000020" / name))
            << name;
}

// A file for --hellaswag: a question four times, each time with another right answer.
inline std::string questions() {
    std::string bytes("\x8a\xd8\x34\x01\x01\0\0\0\x04\0\0\0", 12);
    bytes.resize(1024, '\0');
    for (const int label : {0, 1, 2, 3})
        for (const int number :
             {65535, 38, label, label, 4, 2, 97, 98, 1, 50, 2, 60, 70, 2, 80, 90, 2, 91, 92})
            bytes += {static_cast<char>(number & 255), static_cast<char>(number >> 8)};
    return bytes;
}

// The run that nothing breaks off.
struct WholeRun {
    TemporaryDirectory folder;
    fs::path out = folder.path() / "run";
    ProcessResult result = train(out);
};
inline const WholeRun& whole() {
    static const WholeRun kWhole;
    return kWhole;
}

}  // namespace hark::test
