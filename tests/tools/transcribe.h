// Runs whisper-transcribe with the demo model.
#pragma once

#include <string>
#include <vector>

#include "support/process.h"

namespace hark::test {

inline ProcessResult transcribe_mel(std::vector<std::string> arguments, const std::string& mel) {
    arguments.insert(arguments.begin(), {"--model", "demo", "--threads", "1"});
    return run_tool("whisper-transcribe", arguments, mel);
}

}  // namespace hark::test
