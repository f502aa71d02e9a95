// mel: Whisper's log-mel front end, from an audio stream, an audio file or raw PCM on stdin.
//
//   stdin -> audio chunks -> MelStream (CPU or GPU) -> mel chunks -> stdout
//
// A recording that broke in the stage before is passed on with its error and does not make this
// tool fail: that stage has named it, and the one that ends the pipe names it again. What breaks
// here makes the exit status 1.
#include <unistd.h>

#include <chrono>

#include "audio/mel_stream.h"
#include "audio/raw.h"
#include "kernels/backend.h"

namespace {

using namespace hark;

struct Options {
    MelOptions mel;
    ReadOptions read;
    std::string raw = "no";
    int64_t rate = kSampleRate, channels = 1;
    std::string device = "auto";
    int64_t threads = 0;

    void flags(Flags& flags) {
        mel.flags(flags);
        flags.add("raw", raw, {"no", "s16le", "f32le"},
                  "FORMAT of PCM without a header on stdin; no: it is an audio stream or file");
        flags.add("rate", rate, "HZ sample rate of that PCM", kMinRate, kMaxRate);
        flags.add("channels", channels, "N channels of that PCM, interleaved", 1, kMaxChannels);
        flags.add_switch("allow-truncated", read.allow_truncated,
                         "warn of a file that lacks a part, instead of failing");
        flags.add(
            "device", device,
            "DEVICE to compute on: auto, cpu, cuda or cuda:N, the same bytes on each; auto is "
            "the CPU, which is done before a GPU is ready unless there are hours of sound");
        flags.add("threads", threads, "N CPU threads; 0 takes all cores", 0, 4096);
    }

    void check() const {
        mel.chunk.check();
        require_usage(raw != "no" || (rate == kSampleRate && channels == 1),
                      "--rate and --channels are for raw PCM: expected --raw FORMAT too");
        require_not_terminal("a mel stream");
        require_piped_stdin("an audio stream or an audio file");
    }

    Context context(Console& console) const {
        ComputeOptions compute;
        compute.device = device == "auto" ? "cpu" : device;
        compute.threads = threads;
        return compute.context(console);
    }
};

// A tensor stream begins with the length of a JSON object, less than 4 GiB. One that was cut may
// end after that length.
bool is_tensor_stream(std::string_view head) {
    return head.size() >= 8 && head.substr(4, 4) == std::string_view("\0\0\0\0", 4) &&
           (head.size() == 8 || head[8] == '{');
}

std::unique_ptr<Decoder> open_raw(const Options& options, Input& input) {
    input.require_content("raw PCM");
    RawFormat format;
    format.format = options.raw == "f32le" ? PcmFormat::f32 : PcmFormat::s16;
    format.rate = static_cast<int>(options.rate);
    format.channels = static_cast<int>(options.channels);
    return std::make_unique<RawDecoder>(input, format);
}

// One recording, decoded from stdin itself.
void run_file(std::unique_ptr<Input> in, const Options& options, Console& console,
              MelStream& stream, const MelStream::Emit& emit) {
    AudioChunks::Open open;
    if (options.raw != "no") open = [&](Input& input) { return open_raw(options, input); };
    // A mel chunk waits for a piece after it, so that is a short one.
    const double seconds = options.mel.chunk.seconds;
    const int64_t piece = ChunkOptions{seconds == 0 ? 30 : seconds}.length(kSampleRate) / 10;
    AudioChunks chunks(std::move(in), "1", options.read, piece, open);
    while (std::optional<Chunk> chunk = chunks.next()) {
        const bool nothing = chunk->start == 0 && chunk->length() == 0;
        if (nothing && !chunk->error.empty()) throw Error(chunk->error);
        if (!chunk->error.empty()) console.error(chunk->error);
        if (!chunk->warning.empty()) console.warning(chunk->warning);
        stream.push(*chunk, emit);
    }
}

void run_stream(ByteReader& in, MelStream& stream, const MelStream::Emit& emit) {
    RecordingReader reader(in, "audio", "mel reads what audio-decode writes");
    try {
        while (std::optional<Chunk> chunk = reader.next()) stream.push(*chunk, emit);
    } catch (const Error& failure) {
        // What has come is not lost: it is passed on with the error before this tool fails.
        stream.abandon(failure.what(), emit);
        throw;
    }
}

void run(const Options& options, Console& console) {
    options.check();
    ByteWriter out(STDOUT_FILENO, "stdout");
    auto began = std::chrono::steady_clock::now();
    const MelStream::Emit emit = [&](Chunk chunk) {
        const auto now = std::chrono::steady_clock::now();
        console.stage("log_mel", describe(chunk.values()),
                      std::chrono::duration<double, std::milli>(now - began).count());
        write_chunk(out, std::move(chunk));
        out.flush();
        began = std::chrono::steady_clock::now();
    };
    Context ctx = options.context(console);
    MelStream stream(options.mel, &ctx);
    auto in = std::make_unique<Input>("-");
    if (options.raw == "no" && is_tensor_stream(in->peek(9))) {
        run_stream(in->reader(), stream, emit);
    } else {
        run_file(std::move(in), options, console, stream, emit);
    }
}

}  // namespace

int main(int argc, char** argv) {
    return hark::tool_main(
        {.name = "mel",
         .summary = "Whisper's log-mel spectra of an audio stream or an audio file."},
        argc, argv, run);
}
