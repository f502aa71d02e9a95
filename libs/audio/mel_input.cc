#include "audio/mel_input.h"

#include "audio/raw.h"
#include "audio/wav.h"
#include "core/error.h"
#include "core/files/files.h"
#include "core/files/reader_queue.h"

namespace hark {
namespace {

constexpr size_t kMostChunksAhead = 64, kMostBytesAhead = size_t{8} << 20;

// A tensor stream begins with the length of a JSON object, less than 4 GiB. One that was cut may
// end after that length.
bool is_tensor_stream(std::string_view head) {
    return head.size() >= 8 && head.substr(4, 4) == std::string_view("\0\0\0\0", 4) &&
           (head.size() == 8 || head[8] == '{');
}

// Chunks are read and checked on a thread of their own, a few ahead.
void read_stream(ByteReader& in, MelStream& stream, const MelStream::Emit& emit) {
    ReaderQueue<Chunk> queue(
        [&](const ReaderQueue<Chunk>::Put& put, const Interrupt& interrupt) {
            in.interrupt_by(interrupt);
            RecordingReader reader(in, "audio", "mel reads what audio-decode writes");
            while (std::optional<Chunk> chunk = reader.next()) {
                const size_t bytes = chunk->document.data->size();
                if (!put(std::move(*chunk), bytes)) return;
            }
        },
        kMostChunksAhead, kMostBytesAhead);
    try {
        while (const std::optional<Chunk> chunk = queue.next(true)) stream.push(*chunk, emit);
        queue.check();
    } catch (const Error& failure) {
        stream.abandon(failure.what(), emit);  // the next stage gets what was read, and the error
        throw;
    }
}

}  // namespace

void MelInput::flags(Flags& flags) {
    flags.section("Input");
    flags.add("raw", raw, {"no", "s16le", "f32le"}, "FORMAT of PCM without a header on stdin")
        .essential()
        .details("Without it, stdin is an audio stream or an audio file.");
    flags.add("sample-rate", sample_rate, "HZ samples per second of that PCM", kMinRate, kMaxRate)
        .essential();
    flags.add("channels", channels, "N channels of that PCM, interleaved", 1, kMaxChannels)
        .essential();
    read.trust_flags(flags);
    sandbox.flags(flags);
}

void MelInput::check() const {
    require_usage(raw != "no" || (sample_rate == kSampleRate && channels == 1),
                  "--sample-rate and --channels are for PCM without a header; add --raw s16le");
}

std::unique_ptr<Decoder> MelInput::open_raw(Input& input) const {
    input.require_content("raw PCM");
    RawFormat format;
    format.format = raw == "f32le" ? PcmFormat::f32 : PcmFormat::s16;
    format.rate = static_cast<int>(sample_rate);
    format.channels = static_cast<int>(channels);
    return std::make_unique<RawDecoder>(input, format);
}

// The file on stdin is one recording.
void MelInput::read_file(std::unique_ptr<Input> in, MelStream& stream, const ChunkOptions& chunk,
                         const MelStream::Emit& emit, Console& console) const {
    AudioChunks::Open open;
    ReadOptions options = read;
    if (raw != "no") {
        open = [this](Input& input) { return open_raw(input); };
        options.max_hours.reset();  // its bytes bound its length
    }
    // A mel chunk needs samples of the next piece: short pieces delay it less.
    const double seconds = chunk.seconds == 0 ? ChunkOptions{}.seconds : chunk.seconds;
    const int64_t piece = ChunkOptions{seconds}.length(kSampleRate) / 10;
    AudioChunks chunks(std::move(in), "1", options, piece, open);
    while (const std::optional<Chunk> audio = chunks.next()) {
        const bool empty = audio->start == 0 && audio->length() == 0;
        if (empty && !audio->error.empty()) throw Error(audio->error);
        if (!audio->error.empty()) console.error(audio->error);
        if (!audio->warning.empty()) console.warning(audio->warning);
        stream.push(*audio, emit);
    }
}

void MelInput::enter_sandbox(Input& input, bool on_gpu, Console& console) const {
    if (sandbox.mode == "off") return;
    if (!on_gpu) {
        if (!is_pcm_wav(input)) {
            load_decoders();
            if (!input.seekable()) reserve_unlinked_file();  // a pipe may have to be copied
        }
        return sandbox.enter({}, console);
    }
    require(sandbox.mode != "require",
            "--sandbox require: mel has none with a GPU; decode with audio-decode before it");
    console.warning(
        "the file is decoded without a sandbox, which is not there with a GPU; decode "
        "it with audio-decode before mel");
}

void MelInput::read_all(MelStream& stream, const ChunkOptions& chunk, bool on_gpu,
                        const MelStream::Emit& emit, Console& console) const {
    auto in = std::make_unique<Input>("-");
    if (raw == "no" && is_tensor_stream(in->peek(9)))
        return read_stream(in->reader(), stream, emit);
    if (raw == "no") enter_sandbox(*in, on_gpu, console);
    read_file(std::move(in), stream, chunk, emit, console);
}

}  // namespace hark
