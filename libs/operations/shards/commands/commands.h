// The commands of hark-shard: each parses its own command line and returns the exit status.
#pragma once

#include <string>
#include <vector>

#include "core/cli/cli.h"

namespace hark::shards {

int plan_command(int argc, char** argv);
int check_command(int argc, char** argv);
int merge_command(int argc, char** argv);
int job_command(int argc, char** argv);
int collect_command(int argc, char** argv);

// The folders of a plan and of its results, which are the arguments.
struct ShardFolders {
    std::vector<std::string> words;

    void flags(Flags& flags);
    void check() const;  // throws UsageError
    const std::string& plan() const { return words[0]; }
    const std::string& results() const { return words[1]; }
};

}  // namespace hark::shards
