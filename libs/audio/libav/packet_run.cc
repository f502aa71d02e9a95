#include "audio/libav/packet_run.h"

#include <algorithm>
#include <new>

namespace hark {
namespace {

// An MP3 packet may begin 511 bytes before it, and its samples overlap those of the packet before:
// with one granule per packet, those of two. Header, checksum and side information have 38 bytes at
// most. Source: ISO/IEC 11172-3:1993, section 2.4.
constexpr int64_t kReservoir = 512, kOtherBytes = 38;
constexpr size_t kOverlapped = 2;  // packets

// How many of the last packets have a whole reservoir before two more; 0 if all are too few.
size_t settling_packets(std::span<const SharedPacket> packets) {
    int64_t bytes = 0;
    for (size_t count = kOverlapped + 1; count <= packets.size(); ++count) {
        bytes += std::max<int64_t>(0, packets[packets.size() - count]->size - kOtherBytes);
        if (bytes >= kReservoir) return count;
    }
    return 0;
}

}  // namespace

std::shared_ptr<AVPacket> make_packet() {
    AVPacket* const packet = av_packet_alloc();
    if (!packet) throw std::bad_alloc();
    return {packet, [](AVPacket* p) { av_packet_free(&p); }};
}

bool PacketRun::choose_lead_in(std::span<const SharedPacket> before) {
    const size_t compared = settling_packets(before);
    const size_t settling = settling_packets(before.first(before.size() - compared));
    if (compared == 0 || settling == 0) return false;
    const std::span<const SharedPacket> chosen = before.last(compared + settling);
    lead_in_.assign(chosen.begin(), chosen.end());
    compared_ = compared;
    return true;
}

void PacketRun::decode() {
    State expected = State::open;
    if (!state_.compare_exchange_strong(expected, State::begun)) return;
    State end = State::decoded;
    try {
        codec_ = std::make_unique<PacketCodec>(*setup_);
        for (size_t i = 0; i < lead_in_.size(); ++i) {
            if (i + compared_ <= lead_in_.size()) results.clear();
            codec_->decode(lead_in_[i].get(), results);
        }
        for (const SharedPacket& packet : packets) codec_->decode(packet.get(), results);
        for (const Decoded::Packet& packet : results.packets)
            if (packet.failure) end = State::failed;
    } catch (...) {
        end = State::failed;
    }
    state_ = end;
    state_.notify_all();
}

bool PacketRun::is_decoded(const Decoded& expected) {
    State state = State::open;
    if (state_.compare_exchange_strong(state, State::taken)) return false;
    state_.wait(State::begun);
    return state_ == State::decoded && expected.packets.size() == compared_ &&
           expected.begins(results);
}

}  // namespace hark
