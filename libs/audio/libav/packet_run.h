// Packets of a track that follow one another, which a thread of its own may decode.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "audio/helpers.h"
#include "audio/libav/packet_codec.h"

namespace hark {

using SharedPacket = std::shared_ptr<const AVPacket>;

// Throws std::bad_alloc.
std::shared_ptr<AVPacket> make_packet();

class PacketRun : public SharedPart {
  public:
    explicit PacketRun(std::shared_ptr<const CodecSetup> setup) : setup_(std::move(setup)) {}

    std::vector<SharedPacket> packets;  // null, the last one: the end of the track

    // Chooses the packets before this run that another decoder begins with, at the end of
    // `before`. Returns false if these are too few: only the decoder of `before` can continue then.
    bool choose_pre_roll(std::span<const SharedPacket> before);
    // The last packets of the pre-roll, whose results are compared.
    std::span<const SharedPacket> compared() const { return std::span(pre_roll_).last(compared_); }
    int64_t expected = 0;  // samples per channel, by what the packets state
    // Which of the recording's samples is the first of the compared packets: expected.
    int64_t position = 0;
    std::shared_ptr<PartSink> sink;  // of the samples

    // Any thread's, with a decoder of its own; the first one's call decodes. Nothing happens if the
    // run has no pre-roll, or has been taken.
    bool is_open() const override { return state_ == State::open; }
    void decode() override;

    // Whether a thread decodes it so now.
    bool is_begun() const { return state_ == State::begun; }
    // The recording's own thread takes the run for the recording's decoder, or waits for the thread
    // that has begun it. Returns whether it has taken it.
    bool take();
    // Of a run that has been decoded apart: whether its results can be used, since it began where
    // `compared`, what its compared packets gave, begins: at sample `at`.
    bool is_usable(const Decoded& compared, int64_t at) const;
    // Of the compared packets and the run's, these without samples except for the last ones, with
    // which the next run's pre-roll is compared.
    Decoded results;
    // The decoder after the last packet of a decoded run.
    std::unique_ptr<PacketCodec> take_codec() { return std::move(codec_); }

  private:
    void decode_all();

    // joined: only the recording's decoder can continue with it.
    enum class State { joined, open, taken, begun, decoded, failed };

    std::shared_ptr<const CodecSetup> setup_;
    std::vector<SharedPacket> pre_roll_;
    size_t compared_ = 0;
    std::atomic<State> state_ = State::joined;
    std::unique_ptr<PacketCodec> codec_;
};

}  // namespace hark
