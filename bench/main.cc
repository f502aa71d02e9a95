// bench SUBCOMMAND: measurements as TSV on stdout.
#include <cstdio>
#include <cstring>

#include "commands.h"

namespace {

struct Command {
    const char* name;
    const char* summary;
    int (*run)(int argc, char** argv);
};

constexpr Command kCommands[] = {
    {"kernels", "products, attention and norms of Whisper's shapes", hark::bench::bench_kernels},
    {"mel", "log-mel spectra, times real time", hark::bench::bench_mel},
    {"whisper", "a Whisper model of an official size with random weights",
     hark::bench::bench_whisper},
    {"gpt", "a language model of a published shape, or of files", hark::bench::bench_gpt},
    {"gpt-batch", "many texts of a language model at once", hark::bench::bench_gpt_batch},
    {"constrain", "masks of tokens of constrained answers", hark::bench::bench_constrain},
};

}  // namespace

int main(int argc, char** argv) {
    for (const Command& command : kCommands)
        if (argc > 1 && std::strcmp(argv[1], command.name) == 0)
            return command.run(argc - 1, argv + 1);
    const bool help = argc > 1 && std::strcmp(argv[1], "--help") == 0;
    std::FILE* out = help ? stdout : stderr;
    if (!help)
        std::fprintf(out, "bench: expected a subcommand, found %s\n", argc > 1 ? argv[1] : "none");
    std::fprintf(out, "Usage: bench SUBCOMMAND [FLAGS], and bench SUBCOMMAND --help\n");
    for (const Command& command : kCommands)
        std::fprintf(out, "  %-10s %s\n", command.name, command.summary);
    return help ? 0 : 2;
}
