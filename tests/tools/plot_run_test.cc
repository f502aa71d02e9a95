// pipelines/plot-run.sh and plot-roofline.sh: pictures where gnuplot is installed, and what it says
// of what it cannot draw.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>

#include "support/expect.h"
#include "support/process.h"

using namespace hark::test;
namespace fs = std::filesystem;

namespace {

ProcessResult plot(const std::string& arguments, const std::string& input = "") {
    return run_shell("'" + (source_dir() / "pipelines/plot-run.sh").string() + "' " + arguments,
                     input);
}

const std::string kHeading =
    "step\tloss\tval_loss\trate\tnorm\tms\ttokens/s\tfraction\thellaswag\n";

// The steps [begin, end) of a run whose loss falls.
std::string steps(int begin, int end, double lower = 0) {
    std::string text;
    for (int step = begin; step < end; ++step) {
        char line[160];
        const double loss = 2 + 4.0 / (1 + step * 0.05) + (step * 37 % 11) * 0.02 - lower;
        const std::string val = step % 20 == 0 ? std::to_string(loss - 0.1) : "";
        std::snprintf(line, sizeof line, "%d\t%.6f\t%s\t%.6g\t1.2\t10.0\t4000\t0.5\t\n", step, loss,
                      val.c_str(), 1e-3 * (1 - step / 400.0));
        text += line;
    }
    return text;
}

}  // namespace

TEST(PlotRun, DrawsTheCurveOfARun) {
    if (!has_command("gnuplot")) GTEST_SKIP() << "gnuplot is not installed";
    const TemporaryDirectory folder;
    const auto picture = [&](const std::string& table) {
        const fs::path out = folder.path() / "a run's.png";
        const ProcessResult result = plot("- \"" + out.string() + "\"", table);
        EXPECT_EQ(result.exit_code, 0) << result.err;
        EXPECT_EQ(result.err + result.out, "");
        return read_text(out);
    };
    const std::string whole = picture(kHeading + steps(1, 201));
    ASSERT_GT(whole.size(), 10'000u);
    EXPECT_EQ(whole.substr(0, 8), "\x89PNG\r\n\x1a\n");
    EXPECT_EQ(whole.substr(16, 8), std::string("\0\0\x05\0\0\0\x02\xd0", 8));  // 1280 x 720
    // Parts of a run that was broken off, with steps that are there twice; no heading.
    EXPECT_EQ(picture(kHeading + steps(1, 120, 0.5) + steps(81, 201)),
              picture(kHeading + steps(1, 81, 0.5) + steps(81, 201)));
    EXPECT_EQ(picture(steps(1, 201)), whole);
    EXPECT_NE(picture(steps(1, 201, 0.5)), whole);
    EXPECT_FALSE(picture(steps(1, 3)).empty());  // without a validation

    write_text(folder.path() / "run.tsv", kHeading + steps(1, 201));
    const ProcessResult named = plot("'" + (folder.path() / "run.tsv").string() + "' '" +
                                     (folder.path() / "b.png").string() + "'");
    EXPECT_EQ(named.exit_code, 0) << named.err;
    // Its title is the folder's name.
    EXPECT_NE(read_text(folder.path() / "b.png"), whole);
    EXPECT_EQ(read_text(folder.path() / "b.png").substr(16, 8), whole.substr(16, 8));
}

TEST(PlotRun, NamesWhatItCannotDraw) {
    if (!has_command("gnuplot")) GTEST_SKIP() << "gnuplot is not installed";
    const TemporaryDirectory folder;
    const fs::path out = folder.path() / "out.png";
    const std::string to = " '" + out.string() + "'";
    expect_fails(plot("-" + to, kHeading), 1,
                 "stdin: expected two steps of a run or more, found 0");
    expect_fails(plot("-" + to), 1, "found 0");
    expect_fails(plot("-" + to, steps(1, 2)), 1, "found 1");
    expect_fails(plot("-" + to, kHeading + "some text\n"), 1, "stdin: line 2: expected a line of");
    expect_fails(plot("-" + to, "x\ty\t\t1\t2\n"), 1, "found \"x\" and \"y\"");
    expect_fails(plot("-" + to, "1\tnan\t\t1\t2\n"), 1, "found \"1\" and \"nan\"");
    expect_fails(plot("'" + (folder.path() / "none.tsv").string() + "'" + to), 1, "none.tsv");
    EXPECT_FALSE(fs::exists(out));
    expect_fails(plot("- '" + (folder.path() / "none/out.png").string() + "'", steps(1, 9)), 1,
                 "none/out.png");
}

TEST(PlotRun, RefusesAPictureThatIsNotPng) {
    const TemporaryDirectory folder;
    const fs::path table = folder.path() / "run.tsv", other = folder.path() / "other.tsv";
    write_text(table, kHeading + steps(1, 9));
    write_text(other, "a table");
    expect_fails(plot("'" + table.string() + "' '" + other.string() + "'"), 2,
                 "other.tsv: expected a name that ends in .png");
    EXPECT_EQ(read_text(other), "a table");
}

TEST(PlotRun, SaysWhichPackageIsMissing) {
    const TemporaryDirectory bare;
    fs::create_symlink("/usr/bin/dirname", bare.path() / "dirname");
    const ProcessResult result =
        run_shell("PATH='" + bare.path().string() + "' /bin/bash '" +
                  (source_dir() / "pipelines/plot-run.sh").string() + "' - out.png");
    expect_fails(result, 1, "gnuplot-nox");
    expect_fails(plot(""), 2, "try hark plot run --help");
    expect_fails(plot("a b c"), 2, "try hark plot run --help");
    expect_fails(plot("--steps b"), 2, "try hark plot run --help");
}

TEST(PlotRoofline, DrawsKernelsBelowTheirRoofs) {
    if (!has_command("gnuplot")) GTEST_SKIP() << "gnuplot is not installed";
    const TemporaryDirectory folder;
    const std::string script = (source_dir() / "pipelines/plot-roofline.sh").string(),
                      out = (folder.path() / "roof.png").string();
    const std::string limits =
        "what\tdtype\tthreads\tms\trate\tunit\tlimit\tfraction\tgflop\tmb\n"
        "read 64 MB\t\t2\t3.2\t20.0\tGB/s\t\t\t\t\n"
        "product 2048 cubed\tf32\t2\t100\t170.0\tGFLOP/s\t\t\t\t\n";
    const std::string rows =
        "linear\tf32\t2\t9.0\t147.0\tGFLOP/s\t170.0\t0.87\t1.327\t11\n"
        "token\tint8\t2\t4.0\t19.0\tGB/s\t20.0\t0.95\t0.058\t29\n";
    const ProcessResult drawn = run_shell("'" + script + "' - " + out, limits + rows);
    EXPECT_EQ(drawn.exit_code, 0) << drawn.err;
    EXPECT_EQ(drawn.err + drawn.out, "");
    EXPECT_EQ(read_text(out).substr(0, 8), "\x89PNG\r\n\x1a\n");
    for (const auto& [table, error] :
         {std::pair(limits, "no row"), {"step\tloss\n", "found \"step"}}) {
        const ProcessResult wrong = run_shell("'" + script + "' - " + out, table);
        EXPECT_EQ(wrong.exit_code, 1);
        expect_contains(wrong.err, error);
    }
}
