// Chooses the reader of an input by its first bytes.
#include "audio/decoder.h"

#include "audio/byte_order.h"
#include "audio/libav/libav.h"
#include "audio/sndfile.h"
#include "audio/wav.h"
#include "core/error.h"

namespace hark {
namespace {

constexpr size_t kMaxBoxes = size_t{1} << 20;  // bytes of an MP4 looked through for its index

// Whether an MP4's index is before its data: then a pipe can be decoded while it is read.
bool index_comes_first(Input& input) {
    for (size_t at = 0; at < kMaxBoxes;) {
        const std::string_view head = input.peek(at + 8);
        if (head.size() < at + 8) return false;
        const std::string_view type = head.substr(at + 4, 4);
        if (type == "moov") return true;
        const uint64_t size = big_endian(head, at, 4);
        if (type == "mdat" || size < 8 || size > kMaxBoxes) return false;
        at += size;
    }
    return false;
}

// Whether libav reads this format from a pipe without seeking.
bool streams(Input& input) {
    const std::string head(input.peek(12));
    const auto begins = [&](std::string_view magic) { return head.rfind(magic, 0) == 0; };
    for (const char* magic : {"RIFF", "RF64", "OggS", "fLaC", "ID3", "\x1a\x45\xdf\xa3", ".snd"})
        if (begins(magic)) return true;
    // MPEG audio and ADTS both begin with eleven set bits.
    if (head.size() >= 2 && (big_endian(head, 0, 2) & 0xffe0) == 0xffe0) return true;
    return head.size() >= 8 && head.substr(4, 4) == "ftyp" && index_comes_first(input);
}

}  // namespace

void load_decoders() { load_libav(); }

std::unique_ptr<Decoder> open_decoder(Input& input, int track, Helpers* helpers) {
    input.require_content("audio");
    std::unique_ptr<Decoder> decoder = open_wav(input);
    if (decoder) {
        require(track == 0, input.name(), ": no audio track ", track,
                " (got 1 track, counted from 0)");
        return decoder;
    }
    if (!input.seekable() && !streams(input)) input.spool();
    try {
        return open_libav(input, track, helpers);
    } catch (const Error&) {
        if (!input.seekable() || track != 0) throw;
        input.seek(0);
        decoder = open_sndfile(input);
        if (!decoder) throw;
        return decoder;
    }
}

}  // namespace hark
