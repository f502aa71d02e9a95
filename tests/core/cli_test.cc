#include "core/cli.h"

#include <gtest/gtest.h>

#include "support/process.h"

namespace hark {
namespace {

struct Values {
    std::string name = "x", choice = "a";
    int64_t count = 3;
    double ratio = 0.5;
    std::optional<double> maybe;
    std::string file;
    std::vector<double> list = {1, 2};
    std::vector<std::string> words, repeated, files;
    bool on = false;
};

// Parses as a tool with every kind of flag would; throws what it throws.
Values parse(std::vector<std::string> arguments) {
    Values v;
    Flags flags;
    flags.add("name", v.name, "TEXT of it");
    flags.add_name("file", v.file, "FILE to read");
    flags.add("choice", v.choice, {"a", "b"}, "which");
    flags.add("count", v.count, "N of them", 1, 9);
    flags.add("ratio", v.ratio, "R of them", 0, 1);
    flags.add("maybe", v.maybe, "R or nothing", 0, 1);
    flags.add("list", v.list, "T,T,... of them", 0, 5);
    flags.add("words", v.words, "W,W,... of them");
    flags.add_repeated("stop", v.repeated, "TEXT at which to stop");
    flags.add_switch("on", v.on, "turns it on");
    flags.positional("FILE...", v.files, "files to read");
    std::vector<char*> argv = {const_cast<char*>("tool")};
    for (std::string& argument : arguments) argv.push_back(argument.data());
    EXPECT_TRUE(flags.parse(static_cast<int>(argv.size()), argv.data(), "tool", "A tool."));
    return v;
}

TEST(Flags, DefaultsStay) {
    const Values v = parse({});
    EXPECT_EQ(v.name, "x");
    EXPECT_EQ(v.count, 3);
    EXPECT_EQ(v.ratio, 0.5);
    EXPECT_FALSE(v.maybe.has_value());
    EXPECT_EQ(v.list.size(), 2u);
    EXPECT_FALSE(v.on);
}

TEST(Flags, ValuesAreTaken) {
    const Values v =
        parse({"--name",  "y z",      "--choice=b", "--count", "9",       "--ratio", "1e-1",
               "--maybe", "0",        "--list",     "0,2.5",   "--words", "p,q",     "--stop",
               "a b",     "--stop=,", "--on",       "f",       "-",       "--",      "--g"});
    EXPECT_EQ(v.name, "y z");
    EXPECT_EQ(v.choice, "b");
    EXPECT_EQ(v.count, 9);
    EXPECT_EQ(v.ratio, 0.1);
    EXPECT_EQ(v.maybe, 0.0);
    EXPECT_EQ(v.list, (std::vector<double>{0, 2.5}));
    EXPECT_EQ(v.words, (std::vector<std::string>{"p", "q"}));
    EXPECT_EQ(v.repeated, (std::vector<std::string>{"a b", ","}));
    EXPECT_TRUE(v.on);
    EXPECT_EQ(v.files, (std::vector<std::string>{"f", "-", "--g"}));
}

TEST(Flags, WrongOnesAreUsageErrors) {
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

TEST(Flags, AShortHIsHelp) {
    for (const char* flag : {"-h", "--help"}) {
        std::string name = "tool", given = flag, text;
        char* argv[] = {name.data(), given.data()};
        Flags flags;
        flags.add("name", text, "TEXT of it");
        testing::internal::CaptureStdout();
        EXPECT_FALSE(flags.parse(2, argv, "tool", "A tool."));
        const std::string shown = testing::internal::GetCapturedStdout();
        EXPECT_EQ(shown.rfind("Usage: tool [OPTION]...\nA tool.\n", 0), 0u) << shown;
        EXPECT_NE(shown.find("--name TEXT"), std::string::npos) << shown;
    }
    EXPECT_THROW(parse({"--h"}), UsageError);
    EXPECT_THROW(parse({"-hx"}), UsageError);
}

TEST(Flags, AConfigurationFileHoldsTheSameNamesAndTheCommandLineWins) {
    test::TemporaryDirectory directory;
    const std::string file = (directory.path() / "c").string();
    test::write_text(file, "# a comment\ncount = 5\nname = from file\non = true\n");
    const Values v = parse({"--config", file, "--name", "given"});
    EXPECT_EQ(v.count, 5);
    EXPECT_EQ(v.name, "given");
    EXPECT_TRUE(v.on);
    test::write_text(file, "conut = 5\n");
    EXPECT_THROW(parse({"--config", file}), UsageError);
    EXPECT_THROW(parse({"--config", file + "x"}), Error);
    EXPECT_THROW(parse({"--config", ""}), UsageError);
    EXPECT_THROW(parse({"--positional", "file"}), UsageError);
}

}  // namespace
}  // namespace hark
