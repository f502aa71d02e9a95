#include "core/cli/cli.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <limits>

#include "core/cli/suggest.h"
#include "support/process.h"

namespace hark {
namespace {

constexpr ToolHelp kHelp = {
    .name = "tool", .summary = "A tool.", .examples = "# try it\ntool --on"};

// No variable and no configuration of the user's reaches these tests but what they set.
class Flags : public testing::Test {
  protected:
    void SetUp() override { ::setenv("XDG_CONFIG_HOME", home_.path().c_str(), 1); }
    void TearDown() override {
        for (const char* name : {"XDG_CONFIG_HOME", "HARK_COUNT", "HARK_ON", "HARK_TOOL_CHOICE"})
            ::unsetenv(name);
    }
    void write_user_config(const std::string& text) {
        std::filesystem::create_directories(home_.path() / "hark");
        test::write_text(home_.path() / "hark/config", text);
    }
    test::TemporaryDirectory home_;
};

struct Values {
    std::string name = "x", choice = "alpha";
    int64_t count = 3;
    double ratio = 0.5;
    std::optional<double> maybe;
    std::string file;
    std::vector<double> list = {1, 2};
    std::vector<std::string> words, repeated, files;
    bool on = false, well = true;
};

// Parses as a tool with every kind of flag would; throws what it throws.
Values parse(std::vector<std::string> arguments) {
    Values v;
    hark::Flags flags;
    flags.add("name", v.name, "TEXT of it");
    flags.add_name("file", v.file, "FILE to read");
    flags.add("choice", v.choice, {"alpha", "beta"}, "which").own_variable();
    flags.add("count,c", v.count, "N of them", 1, 9);
    flags.add("ratio", v.ratio, "R of them", 0, 1);
    flags.add("maybe", v.maybe, "R or nothing", 0, 1);
    flags.add("list", v.list, "T,T,... of them", 0, 5);
    flags.add("words", v.words, "W,W,... of them");
    flags.add_repeated("stop", v.repeated, "TEXT at which to stop");
    flags.add_switch("on,o", v.on, "turns it on");
    flags.add_switch("well", v.well, "does it well");
    flags.positional("FILE...", v.files, "files to read");
    std::vector<char*> argv = {const_cast<char*>("tool")};
    for (std::string& argument : arguments) argv.push_back(argument.data());
    EXPECT_TRUE(flags.parse(static_cast<int>(argv.size()), argv.data(), kHelp));
    return v;
}

// What parse() throws, which is no UsageError: the command line is not what is wrong.
std::string error_of(std::vector<std::string> arguments) {
    try {
        parse(std::move(arguments));
    } catch (const UsageError& wrong) {
        return std::string("usage: ") + wrong.what();
    } catch (const Error& wrong) {
        return wrong.what();
    }
    return "nothing";
}

TEST_F(Flags, DefaultsStay) {
    const Values v = parse({});
    EXPECT_EQ(v.name, "x");
    EXPECT_EQ(v.count, 3);
    EXPECT_EQ(v.ratio, 0.5);
    EXPECT_FALSE(v.maybe.has_value());
    EXPECT_EQ(v.list.size(), 2u);
    EXPECT_FALSE(v.on);
}

TEST_F(Flags, ValuesAreTaken) {
    const Values v =
        parse({"--name",  "y z",      "--choice=beta", "--count", "9",       "--ratio", "1e-1",
               "--maybe", "0",        "--list",        "0,2.5",   "--words", "p,q",     "--stop",
               "a b",     "--stop=,", "--on",          "f",       "-",       "--",      "--g"});
    EXPECT_EQ(v.name, "y z");
    EXPECT_EQ(v.choice, "beta");
    EXPECT_EQ(v.count, 9);
    EXPECT_EQ(v.ratio, 0.1);
    EXPECT_EQ(v.maybe, 0.0);
    EXPECT_EQ(v.list, (std::vector<double>{0, 2.5}));
    EXPECT_EQ(v.words, (std::vector<std::string>{"p", "q"}));
    EXPECT_EQ(v.repeated, (std::vector<std::string>{"a b", ","}));
    EXPECT_TRUE(v.on);
    EXPECT_EQ(v.files, (std::vector<std::string>{"f", "-", "--g"}));
}

TEST_F(Flags, WrongOnesAreUsageErrors) {
    for (const std::vector<std::string>& wrong :
         std::vector<std::vector<std::string>>{{"--unknown"},
                                               {"--nam", "y"},
                                               {"--name"},
                                               {"--choice", "c"},
                                               {"--count", "0"},
                                               {"--count", "10"},
                                               {"--count", "3x"},
                                               {"--count", ""},
                                               {"--count", "1.5"},
                                               {"--ratio", "1.1"},
                                               {"--ratio", "nan"},
                                               {"--list", "1,x"},
                                               {"--file", ""},
                                               {"--list", ""},
                                               {"--list", "6"},
                                               {"--on=1"},
                                               {"--name", "a", "--name", "b"},
                                               {"-x"}})
        EXPECT_THROW(parse(wrong), UsageError) << wrong[0];
}

TEST_F(Flags, AShortHIsHelp) {
    for (const char* flag : {"-h", "--help"}) {
        std::string name = "tool", given = flag, text;
        char* argv[] = {name.data(), given.data()};
        hark::Flags flags;
        flags.add("name", text, "TEXT of it");
        testing::internal::CaptureStdout();
        EXPECT_FALSE(flags.parse(2, argv, kHelp));
        const std::string shown = testing::internal::GetCapturedStdout();
        EXPECT_EQ(shown.rfind("Usage: tool [OPTION]...\nA tool.\n", 0), 0u) << shown;
        EXPECT_NE(shown.find("--name TEXT"), std::string::npos) << shown;
    }
    EXPECT_THROW(parse({"--h"}), UsageError);
    EXPECT_THROW(parse({"-hx"}), UsageError);
}

TEST_F(Flags, HelpSaysTheRangesOfNumbers) {
    int64_t count = 3, seed = 0;
    double ratio = 0.5, limit = 2, loss = -1;
    std::optional<int64_t> some;
    std::optional<double> maybe = 0.5;
    std::vector<double> list = {1, 2};
    hark::Flags flags;
    flags.add("count", count, "N of them", 1, 9);
    flags.add("seed", seed, "N seed", 0, INT64_MAX);
    flags.add("ratio", ratio, "R of them", 0.01, 1);
    flags.add("limit", limit, "S most", 0, std::numeric_limits<double>::infinity());
    flags.add("loss", loss, "L least", -1e9, 0);
    flags.add("some", some, "N some", 2, 1 << 20);
    flags.add("maybe", maybe, "R or none", 0, 1);
    flags.add("list", list, "T,T,... of them", 0, 5);
    std::string name = "tool", help = "--help";
    char* argv[] = {name.data(), help.data()};
    testing::internal::CaptureStdout();
    EXPECT_FALSE(flags.parse(2, argv, kHelp));
    const std::string shown = testing::internal::GetCapturedStdout();
    for (const char* line :
         {" of them (1 to 9) [3]\n", " seed [0]\n", " of them (0.01 to 1) [0.5]\n", " most [2]\n",
          " least (0 or less) [-1]\n", " some (2 or more)\n", " or none (0 to 1) [0.5]\n",
          " of them (0 to 5) [1,2]\n"})
        EXPECT_NE(shown.find(line), std::string::npos) << line << shown;
}

TEST_F(Flags, AConfigurationFileHoldsTheSameNamesAndTheCommandLineWins) {
    test::TemporaryDirectory directory;
    const std::string file = (directory.path() / "c").string();
    test::write_text(file, "# a comment\ncount = 5\nname = from file\non = true\n");
    const Values v = parse({"--config", file, "--name", "given"});
    EXPECT_EQ(v.count, 5);
    EXPECT_EQ(v.name, "given");
    EXPECT_TRUE(v.on);
    test::write_text(file, "on = maybe\n");
    EXPECT_EQ(error_of({"--config", file}), file + ":1: on: expected true or false, got 'maybe'");
    EXPECT_THROW(parse({"--config", file + "x"}), Error);
    EXPECT_THROW(parse({"--config", ""}), UsageError);
    EXPECT_THROW(parse({"--positional", "file"}), UsageError);
}

TEST_F(Flags, ShortFormsAndNegations) {
    const Values v = parse({"-c", "4", "-o", "--no-well"});
    EXPECT_EQ(v.count, 4);
    EXPECT_TRUE(v.on);
    EXPECT_FALSE(v.well);
    EXPECT_FALSE(parse({"--no-on"}).on);
    EXPECT_THROW(parse({"--on", "--no-on"}), UsageError);
    EXPECT_THROW(parse({"--no-count"}), UsageError);
}

TEST_F(Flags, TheNearestFlagOrValueIsProposed) {
    EXPECT_EQ(error_of({"--cuont", "1"}),
              "usage: unknown option '--cuont'; did you mean '--count'?");
    EXPECT_EQ(error_of({"--xyzzyx"}), "usage: unknown option '--xyzzyx'");
    EXPECT_EQ(error_of({"-dash.mp3"}), "usage: unknown option '-dash.mp3'");
    EXPECT_EQ(error_of({"-x"}), "usage: unknown option '-x'");
    EXPECT_EQ(error_of({"--x"}), "usage: unknown option '--x'");
    EXPECT_EQ(error_of({"--choice", "bet"}),
              "usage: --choice: expected one of alpha, beta, got 'bet'; did you mean 'beta'?");
}

TEST_F(Flags, TheStrongestSourceWins) {
    test::TemporaryDirectory directory;
    const std::string file = (directory.path() / "c").string();
    write_user_config("count = 2\n[mel]\ncount = 9\n");
    EXPECT_EQ(parse({}).count, 2);
    ::setenv("HARK_COUNT", "3", 1);
    EXPECT_EQ(parse({}).count, 3);
    test::write_text(file, "count = 4\n");
    EXPECT_EQ(parse({"--config", file}).count, 4);
    EXPECT_EQ(parse({"--config", file, "--count", "5"}).count, 5);
}

TEST_F(Flags, VariablesAreChecked) {
    ::setenv("HARK_COUNT", "10", 1);
    EXPECT_EQ(error_of({}), "HARK_COUNT: expected a whole number from 1 to 9, got '10'");
    ::setenv("HARK_COUNT", "", 1);  // the flag's own default
    EXPECT_EQ(parse({}).count, 3);
    write_user_config("count = 5\n");
    EXPECT_EQ(parse({}).count, 3);
    write_user_config("");
    ::setenv("HARK_ON", "yes", 1);
    EXPECT_TRUE(parse({}).on);
    ::setenv("HARK_TOOL_CHOICE", "beta", 1);
    EXPECT_EQ(parse({}).choice, "beta");
}

TEST_F(Flags, AUsersConfigurationMayNameFlagsOfOtherTools) {
    write_user_config(
        "beam-size = 5  # of whisper-transcribe\n[whisper-transcribe]\nbeam-size = 2\n");
    EXPECT_EQ(parse({}).count, 3);
    const std::string path = (home_.path() / "hark/config").string();
    write_user_config("\nbaem-size = 5\n");
    EXPECT_EQ(error_of({}), path + ":2: no tool has an option 'baem-size'");
    write_user_config("[whisper]\n");
    EXPECT_EQ(parse({}).count, 3);  // an empty section says nothing
    write_user_config("[whisper]\ncount = 1\n");
    EXPECT_EQ(error_of({}), path + ":1: no tool has the name 'whisper'");
    write_user_config("[hark-trace]\ncount = 1\n");
    EXPECT_EQ(parse({}).count, 3);
    write_user_config("[mel\n");
    EXPECT_EQ(error_of({}), path + ":1: a section lacks its ']' (got '[mel')");
    write_user_config("count\n");
    EXPECT_EQ(error_of({}), path + ":1: not a line of the form `key = value` (got 'count')");
    write_user_config("config = x\n");
    EXPECT_EQ(error_of({}), path + ":1: 'config' belongs on the command line");
}

TEST(Suggest, NearestNames) {
    const std::vector<std::string> known = {"model", "format", "output-dir", "demo", "small"};
    EXPECT_EQ(nearest("modle", known), "model");
    EXPECT_EQ(nearest("output_dri", known), "output-dir");
    EXPECT_EQ(nearest("dem", known), "demo");
    EXPECT_EQ(nearest("SMALL", known), "small");
    EXPECT_EQ(nearest("large", known), "");
    EXPECT_EQ(nearest("", known), "");
    EXPECT_EQ(edit_distance("ab", "ba"), 1u);
    EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
}

TEST(Printable, ControlBytesAreEscapedAndLongTextsCut) {
    EXPECT_EQ(printable("a\x1b[2J\nb\x7f\t"), "a\\x1b[2J\\nb\\x7f\\t");
    EXPECT_EQ(printable("\xc3\xa9 \xf0\x9f\x98\x80"), "\xc3\xa9 \xf0\x9f\x98\x80");
    EXPECT_EQ(printable("\xc2\x9b\xff"), "\\xc2\\x9b\\xff");
    EXPECT_EQ(printable(std::string("\0", 1)), "\\x00");
    EXPECT_LT(printable(std::string(100'000, 'x')).size(), 2100u);
}

TEST(Help, EssentialsFirstAndLinesFit) {
    const ToolDescription tool = {kHelp,
                                  "FILE...",
                                  "files to read",
                                  {{.name = "model",
                                    .letter = 'm',
                                    .metavar = "MODEL",
                                    .help = "the model",
                                    .section = "Input",
                                    .essential = true},
                                   {.name = "times",
                                    .help = std::string(70, 'x'),
                                    .details = "More.",
                                    .section = "Input",
                                    .is_switch = true,
                                    .is_on = true}},
                                  {},
                                  Completes::nothing,
                                  {}};
    const std::string some = help_text(tool, false), all = help_text(tool, true);
    EXPECT_NE(some.find("  -m, --model MODEL  the model\n"), std::string::npos) << some;
    EXPECT_EQ(some.find("times"), std::string::npos) << some;
    EXPECT_NE(some.find("Examples:\n  # try it\n  tool --on\n"), std::string::npos) << some;
    EXPECT_NE(some.find("tool --help-all shows all options"), std::string::npos) << some;
    EXPECT_NE(all.find("    --[no-]times"), std::string::npos) << all;
    EXPECT_NE(all.find("More."), std::string::npos) << all;
    EXPECT_EQ(wrapped("one two three", 2, 9), "one two\n  three");
}

}  // namespace
}  // namespace hark
