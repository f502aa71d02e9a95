// The subcommands of bench. A new one: a file with such a function, a line in main.cc's table.
#pragma once

namespace hark::bench {

// argv[0] is the subcommand's name. Returns the exit status.
int bench_kernels(int argc, char** argv);
int bench_mel(int argc, char** argv);
int bench_whisper(int argc, char** argv);
int bench_gpt(int argc, char** argv);
int bench_gpt_batch(int argc, char** argv);
int bench_constrain(int argc, char** argv);

}  // namespace hark::bench
