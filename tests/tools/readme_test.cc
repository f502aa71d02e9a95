// README.md: every command of its ```sh blocks runs, from top to bottom in one shell, and what is
// shown as output (a ```text block after one of them) is what is written. A block after a comment
// <!-- not run: REASON --> is not run; the reasons are listed here. Models come from a mirror on
// loopback, where the demonstration model is whisper-small.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "support/http_server.h"
#include "support/process.h"

namespace hark::test {
namespace {

namespace fs = std::filesystem;

struct Block {
    int line;             // of README.md
    std::string skipped;  // why it is not run; empty: it is
    std::string commands;
    std::string output;  // shown after it, or empty
};

std::vector<Block> blocks_of(const std::string& page) {
    constexpr std::string_view kSkip = "<!-- not run: ";
    std::vector<Block> blocks;
    std::string line, skipped;
    std::string* inside = nullptr;
    std::istringstream lines(page);
    for (int number = 1; std::getline(lines, line); ++number) {
        if (line == "```") {
            inside = nullptr;
        } else if (inside) {
            *inside += line + "\n";
        } else if (line.starts_with(kSkip)) {
            skipped = line.substr(kSkip.size(), line.find(" -->") - kSkip.size());
        } else if (line == "```sh") {
            blocks.push_back({number + 1, skipped, "", ""});
            inside = &blocks.back().commands;
            skipped.clear();
        } else if (line == "```text") {
            inside = &blocks.back().output;
        }
    }
    return blocks;
}

// Hugging Face's paths of openai/whisper-small, with the demonstration model's files.
HttpResponse mirror(const HttpRequest& request) {
    const std::string folder = "/openai/whisper-small/resolve/main/";
    const fs::path file = source_dir() / "models/whisper-demo" / fs::path(request.path).filename();
    if (!request.path.starts_with(folder) || !fs::exists(file)) return {404};
    HttpResponse response = in_parts(request, read_text(file));
    response.headers["ETag"] = "\"v1\"";
    return response;
}

// The files that README's commands name.
void write_inputs(const fs::path& folder) {
    const auto copy = [&](const std::string& sample, const std::string& name) {
        fs::create_directories((folder / name).parent_path());
        fs::copy_file(samples_dir() / sample, folder / name);
    };
    copy("story.mp3", "samples/story.mp3");
    copy("company.mp3", "talk.mp3");
    copy("news.mp4", "film.mkv");
    copy("company.mp3", "meeting.mp3");
    copy("story.mp3", "lectures/first.mp3");
    copy("company.mp3", "lectures/second.mp3");
    copy("company.mp3", "meetings/monday.mp3");
    write_text(folder / "references.jsonl",
               "{\"source\": \"first.mp3\", \"text\": \"He was a very old man\"}\n"
               "{\"source\": \"second.mp3\", \"text\": \"The company sold more cars\"}\n");
    std::string book;
    for (const auto& page : fs::directory_iterator(source_dir() / "docs"))
        if (page.is_regular_file()) book += read_text(page.path());
    write_text(folder / "book.txt", book);
}

TEST(Readme, EveryCommandRuns) {
    const std::vector<Block> blocks = blocks_of(read_text(source_dir() / "README.md"));
    ASSERT_GE(blocks.size(), 10u);
    const TemporaryDirectory folder;
    write_inputs(folder.path());
    fs::create_directories(folder.path() / "home");
    const HttpServer server(mirror);
    std::string script = "set -euo pipefail; cd '" + folder.path().string() +
                         "'; export HOME=\"$PWD/home\" HARK_FROM='" + server.url() +
                         "'; unset XDG_DATA_HOME XDG_CONFIG_HOME; mkdir out.d\n" +
                         "trap '[ $? = 0 ] || echo \"README.md:$line fails\" >&2' EXIT\n";
    for (const Block& block : blocks)
        if (block.skipped.empty())
            script += "line=" + std::to_string(block.line) + "\n{\n" + block.commands +
                      "} > out.d/$line\n";
    const ProcessResult run = run_shell(script);
    ASSERT_EQ(run.exit_code, 0) << run.err;
    for (const Block& block : blocks) {
        if (block.output.empty()) continue;
        EXPECT_EQ(read_text(folder.path() / "out.d" / std::to_string(block.line)), block.output)
            << "README.md:" << block.line;
    }
}

TEST(Readme, WhatIsNotRunIsListed) {
    std::vector<std::string> skipped;
    for (const Block& block : blocks_of(read_text(source_dir() / "README.md")))
        if (!block.skipped.empty()) skipped.push_back(block.skipped);
    std::sort(skipped.begin(), skipped.end());
    const std::vector<std::string> expected = {"builds everything",
                                               "builds from nothing",
                                               "needs a GPU",
                                               "needs a microphone",
                                               "needs a model that is not in the tree",
                                               "needs a model that is not in the tree",
                                               "needs a model that is not in the tree",
                                               "needs a model that is not in the tree",
                                               "needs files that are not in the tree"};
    EXPECT_EQ(skipped, expected);
}

}  // namespace
}  // namespace hark::test
