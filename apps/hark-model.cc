// hark-model COMMAND: downloads, lists, chooses, removes, describes, converts and verifies models.
#include "core/cli/cli.h"
#include "hub/commands/commands.h"

using namespace hark::models;

namespace {

constexpr hark::ToolHelp kHelp = {
    .name = "hark-model",
    .summary = "Downloads, lists, chooses, removes, describes, converts and verifies models.",
    .description = "hark model COMMAND is the same as hark-model COMMAND.",
    .examples =
        "# download Whisper small (967 MB); the first model becomes the default\n"
        "hark model get small\n"
        "# one GGUF file of a repository\n"
        "hark model get modularai/Llama-3.1-8B-Instruct-GGUF:Q4_K_M\n"
        "# the installed models; * marks the defaults\n"
        "hark model list\n"
        "# take another default\n"
        "hark model use tiny.en",
    .files = "~/.local/share/hark/models  the user's models"};

constexpr hark::Command kCommands[] = {
    {"get", "download a model", get_command},
    {"list", "list the installed models", list_command},
    {"use", "make a model the default of its kind", use_command},
    {"rm", "remove an installed model", remove_command},
    {"info", "show a model's shape, types and memory", info_command},
    {"convert", "write a model in another format or type", convert_command},
    {"verify", "read every tensor; with recordings, compare transcripts", verify_command}};

}  // namespace

int main(int argc, char** argv) { return hark::commands_main(kHelp, kCommands, argc, argv); }
