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
    bool choose_lead_in(std::span<const SharedPacket> before);
    // Of the lead-in, the last packets, whose results are compared.
    size_t compared() const { return compared_; }

    // Another thread's.
    bool is_open() const override { return state_ == State::open; }
    void decode() override;

    // The recording's own thread takes the run, or waits for the thread that has begun it. Returns
    // whether the run is decoded, and the compared packets gave `expected`.
    bool is_decoded(const Decoded& expected);
    // Of the compared packets and the run's. Before: memory that it may use.
    Decoded results;
    // The decoder after the last packet of a decoded run.
    std::unique_ptr<PacketCodec> take_codec() { return std::move(codec_); }

  private:
    enum class State { open, taken, begun, decoded, failed };

    std::shared_ptr<const CodecSetup> setup_;
    std::vector<SharedPacket> lead_in_;
    size_t compared_ = 0;
    std::atomic<State> state_ = State::open;
    std::unique_ptr<PacketCodec> codec_;
};

}  // namespace hark
