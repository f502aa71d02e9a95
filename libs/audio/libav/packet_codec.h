// libavcodec's decoder of one track, packet by packet.
#pragma once

extern "C" {
#include <libavcodec/avcodec.h>
}

#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <vector>

#include "audio/decoder.h"
#include "audio/libav/libav_frame.h"

struct AVStream;

namespace hark {

// What packets gave, one after another.
struct Decoded {
    struct Frame {
        int rate, channels;
        uint64_t layout;
        int64_t pts;
        int length;    // samples per channel
        size_t first;  // of `samples`
    };
    struct Packet {
        size_t first_frame, frames = 0;
        bool refused = false;          // by avcodec_send_packet
        int sample_rate = 0;           // the decoder's afterwards
        bool failed = false;           // after these frames
        std::exception_ptr failure{};  // thrown after these frames
    };
    std::vector<Packet> packets;
    std::vector<Frame> frames;
    UnfilledSamples samples;  // of all frames, interleaved

    void clear();
    std::span<const float> samples_of(size_t frame) const;
    // Appends packet i of another, with or without its samples.
    void append(const Decoded& from, size_t i, bool with_samples);
    // Samples per channel of all frames.
    int64_t length() const;
    // A frame as a block.
    void read(size_t frame, AudioBlock& block) const;
    // Whether this is what the first packets of `other` gave, samples bit by bit. Not for packets
    // with a failure.
    bool begins(const Decoded& other) const;
};

// Everything that a decoder of the track needs, which the container's reader does not change.
class CodecSetup {
  public:
    // Throws Error naming the input if there is no decoder or it is not allowed (libav_allowed.h).
    CodecSetup(const AVStream& stream, std::string input);
    ~CodecSetup() { avcodec_parameters_free(&parameters_); }
    CodecSetup(const CodecSetup&) = delete;
    CodecSetup& operator=(const CodecSetup&) = delete;

    const AVCodecParameters& parameters() const { return *parameters_; }
    // Whether the decoder forgets all but the last packets: then another one may begin a few
    // packets before any other.
    bool is_divisible() const;
    // Whether a packet may begin in the ones before it.
    bool has_reservoir() const;

  private:
    friend class PacketCodec;
    std::string input_;
    const AVCodec* codec_;
    AVRational time_base_;
    AVCodecParameters* parameters_ = nullptr;
};

class PacketCodec {
  public:
    // Throws Error naming the input if the decoder cannot be opened.
    explicit PacketCodec(const CodecSetup& setup);
    ~PacketCodec() { release(); }
    PacketCodec(const PacketCodec&) = delete;
    PacketCodec& operator=(const PacketCodec&) = delete;

    // Appends what a packet gives; null: what the decoder still has at the end.
    void decode(const AVPacket* packet, Decoded& out);

  private:
    void release();

    AVCodecContext* context_ = nullptr;
    AVFrame* frame_ = nullptr;
};

}  // namespace hark
