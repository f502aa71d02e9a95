// Configuration files, and what messages show of the values in them.
#include "core/cli/settings.h"

#include <cstdlib>

#include "core/cli/cli.h"
#include "core/cli/suggest.h"
#include "fuzz/memory_file.h"
#include "fuzz/target.h"

using namespace hark;
using namespace hark::fuzz;

static std::vector<std::string> settings_seeds() {
    return {"# a comment\nmodel = small\nquiet = true\n",
            "threads = 4\n[whisper-transcribe]\nbeam-size = 5 # wide\n\n[gpt-train]\nseed=1\n",
            "[mel]\r\nmels = 128\r\n", "language = \xc3\xa9\xc2\x9b\x1b[2J\n"};
}

static int settings_input(const uint8_t* data, size_t size) {
    const fuzz::MemoryFile file(data, size);
    const std::string home = size % 2 == 0 ? "/" : "";  // what environment variables may hold
    ::setenv("XDG_CONFIG_HOME", (home + std::string(data, data + size / 2)).c_str(), 1);
    user_config();
    data_home();
    try {
        for (const Setting& setting : read_settings(file.path())) {
            const std::string shown = printable(setting.value);
            for (const char c : shown)
                if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) std::abort();
            is_any_flag(setting.key);
            is_any_tool(setting.section);
            if (setting.key.size() < 256)
                did_you_mean(setting.key, {"model", "threads", "beam-size"});
        }
    } catch (const Error&) {
    }
    return 0;
}

static const hark::fuzz::Target kSettings{"settings", settings_seeds, settings_input};
