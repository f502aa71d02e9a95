#include "core/cli/help_forms.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "support/process.h"

namespace hark {
namespace {

constexpr const char* kScript = R"(Usage: hark do [OPTION]... FILE|-...
   or: hark do --all
Does something with files,
and then stops.

A paragraph
of two lines.

Options:
  -m, --model MODEL      to use, which
                         is small
      --[no-]times       with times [on]
      --show-pipe        print the pipe

Also all options of: mel, audio-decode.

Examples:
  hark do 'a b'
  hark do - < x
)";

TEST(ParseHelp, ReadsAScriptsText) {
    const ScriptHelp script = parse_help(kScript);
    EXPECT_STREQ(script.tool.help.name, "hark do");
    EXPECT_STREQ(script.tool.help.summary, "Does something with files, and then stops.");
    EXPECT_EQ(script.tool.positional, "FILE|-...");
    EXPECT_STREQ(script.tool.help.description,
                 "   or: hark do --all\n\nA paragraph\nof two lines.\n\n"
                 "Also all options of: mel, audio-decode.");
    EXPECT_STREQ(script.tool.help.examples, "hark do 'a b'\nhark do - < x");
    EXPECT_EQ(script.tool.passes_to, (std::vector<std::string>{"mel", "audio-decode"}));
    ASSERT_EQ(script.tool.flags.size(), 3u);
    EXPECT_EQ(script.tool.flags[0].letter, 'm');
    EXPECT_EQ(script.tool.flags[0].help, "to use, which is small");
    EXPECT_EQ(script.tool.flags[1].shown_default, "on");
    EXPECT_EQ(flag_table(script.tool),
              "model\tm\tMODEL\t-\tmodel\t-\tto use, which is small\n"
              "times\t-\t-\tswitch\t-\t-\twith times\n"
              "show-pipe\t-\t-\t-\t-\t-\tprint the pipe\n"
              "-\t-\tFILE|-...\t-\tfile\t-\t-\n");
    const ScriptHelp commands = parse_help(
        "Usage: hark plot COMMAND [OPTION]...\nDraws.\n\n"
        "Commands:\n  run  a run\n  transcript  a talk\n");
    EXPECT_EQ(help_as(commands.tool, "commands"), "run\ta run\ntranscript\ta talk\n");
    EXPECT_EQ(parse_help("").tool.flags.size(), 0u);
}

TEST(ManPage, HasEverySectionAndNoRequestFromText) {
    ToolDescription tool;
    tool.help = {.name = "hark-model get",
                 .summary = "Fetches a model.",
                 .description = ".TH is no request here\n\n  kept -- as it is\n'nor this \\n",
                 .examples = "# fetch\nhark-model get tiny --from 'x'",
                 .files = "/etc/x  a file",
                 .uses_color = true};
    tool.positional = "NAME";
    tool.positional_help = "which one";
    FlagInfo flag;
    flag.name = "from";
    flag.letter = 'u';
    flag.metavar = "URL";
    flag.help = "of a mirror";
    flag.details = "It has the same paths.";
    flag.shown_default = "http://x";
    flag.variable = "HARK_FROM";
    flag.section = "Network";
    tool.flags = {flag};
    tool.passes_to = {"mel"};
    const std::string page = man_page(tool);
    size_t at = 0;
    for (const char* part :
         {".TH HARK\\-MODEL\\-GET 1", ".SH NAME\nhark\\-model\\-get \\- Fetches a model\n",
          ".SH SYNOPSIS\n\\fBhark\\-model get\\fR [\\fIOPTION\\fR]... NAME\n", ".SH DESCRIPTION\n",
          "\n\\&.TH is no request here\n.PP\n.EX\n  kept \\-\\- as it is\n.EE\n\\&'nor this \\en\n",
          ".SH OPTIONS\n.SS Network\n.TP\n\\fB\\-u\\fR, \\fB\\-\\-from\\fR \\fIURL\\fR\n"
          "of a mirror [http://x]. It has the same paths.\n",
          ".SH EXAMPLES\n.EX\n# fetch\nhark\\-model get tiny \\-\\-from 'x'\n.EE\n",
          ".SH ENVIRONMENT\n.TP\n\\fBHARK_FROM\\fR\n",
          "\\fBHARK_\\fR\\fIOPTION\\fR\nsets an option of mel: ", "NO_COLOR",
          ".SH FILES\n.TP\n\\fI/etc/x\\fR\na file\n", ".SH EXIT STATUS\n", ".SH SEE ALSO\n",
          ".BR hark\\-model (1)"}) {
        const size_t found = page.find(part, at);
        ASSERT_NE(found, std::string::npos) << part << "\nis not in order in\n" << page;
        at = found;
    }
    // groff finds nothing wrong with it.
    const test::ProcessResult set = test::run_shell("groff -man -ww -Tutf8", page);
    EXPECT_EQ(set.exit_code, 0);
    EXPECT_EQ(set.err, "");
}

TEST(HelpAs, RefusesAnUnknownForm) {
    EXPECT_THROW(help_as(ToolDescription{}, "html"), UsageError);
    EXPECT_EQ(help_as(ToolDescription{}, "commands"), "");
}

}  // namespace
}  // namespace hark
