// audio-decode FILE...: any audio or video file to an audio stream, mono float32 at 16 kHz.
//
//   file -> Input -> Decoder (WAV, libav, libsndfile) -> Resampler -> chunks -> stdout
//
// Each thread of ReadAhead runs that chain for one file; here the chunks are written in order.
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "audio/read_ahead.h"

namespace {

using namespace hark;

struct Options {
    std::vector<std::string> files;
    ReadOptions read;
    ChunkOptions chunk;
    int64_t jobs = std::clamp<int64_t>(std::thread::hardware_concurrency(), 1, 8);

    void flags(Flags& flags) {
        flags.positional("FILE...", files, "audio or video files; - is standard input");
        flags.add("jobs", jobs, "N files to decode at a time", 1, 256);
        read.flags(flags);
        chunk.flags(flags);
    }

    void check() const {
        require_usage(!files.empty(), "expected at least one FILE; - reads standard input");
        const int64_t standard_inputs = std::count(files.begin(), files.end(), "-");
        require_usage(standard_inputs <= 1, "expected - at most once");
        chunk.check();
        require_not_terminal("an audio stream");
        if (standard_inputs > 0) require_piped_stdin("an audio file");
    }
};

void run(const Options& options, Console& console) {
    options.check();
    ByteWriter out(STDOUT_FILENO, "stdout");
    ReadAhead input(options.files, options.read, options.chunk.length(kSampleRate),
                    static_cast<int>(options.jobs));
    while (std::optional<Chunk> chunk = input.next()) {
        // The channels of one file break together: it is named once.
        if (chunk->channel == "0") {
            if (!chunk->error.empty()) console.error(chunk->error);
            if (!chunk->warning.empty()) console.warning(chunk->warning);
        }
        write_chunk(out, std::move(*chunk));
        out.flush();
    }
}

}  // namespace

int main(int argc, char** argv) {
    return hark::tool_main(
        {.name = "audio-decode",
         .summary = "Decodes audio and video files to an audio stream, mono at 16 kHz."},
        argc, argv, run);
}
