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
// Without a reservoir: three.
size_t settling_packets(std::span<const SharedPacket> packets, bool has_reservoir) {
    if (!has_reservoir) return packets.size() > kOverlapped ? kOverlapped + 1 : 0;
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

bool PacketRun::choose_pre_roll(std::span<const SharedPacket> before) {
    const bool has_reservoir = setup_->has_reservoir();
    const size_t compared = settling_packets(before, has_reservoir);
    const size_t settling = settling_packets(before.first(before.size() - compared), has_reservoir);
    if (compared == 0 || settling == 0) return false;
    const std::span<const SharedPacket> chosen = before.last(compared + settling);
    pre_roll_.assign(chosen.begin(), chosen.end());
    compared_ = compared;
    state_ = State::open;
    return true;
}

void PacketRun::decode() {
    State expected = State::open;
    if (!state_.compare_exchange_strong(expected, State::begun)) return;
    State end = State::decoded;
    try {
        decode_all();
    } catch (...) {
        end = State::failed;
    }
    state_ = end;
    state_.notify_all();
}

void PacketRun::decode_all() {
    codec_ = std::make_unique<PacketCodec>(*setup_);
    Decoded one;
    AudioBlock block;
    const auto decode_packet = [&](const SharedPacket& packet) {
        one.clear();
        codec_->decode(packet.get(), one);
        if (one.packets[0].failure) std::rethrow_exception(one.packets[0].failure);
    };
    const auto push = [&] {
        for (size_t f = 0; f < one.frames.size(); ++f) {
            one.read(f, block);
            sink->push(block);
        }
    };
    for (const SharedPacket& packet : std::span(pre_roll_).first(pre_roll_.size() - compared_))
        decode_packet(packet);
    for (const SharedPacket& packet : compared()) {
        decode_packet(packet);
        push();
        results.append(one, 0, true);
    }
    sink->begin();
    const size_t kept = packets.back() ? settling_packets(packets, setup_->has_reservoir()) : 0;
    for (size_t i = 0; i < packets.size(); ++i) {
        decode_packet(packets[i]);
        push();
        results.append(one, 0, i + kept >= packets.size());
    }
}

bool PacketRun::take() {
    State state = State::open;
    if (state_.compare_exchange_strong(state, State::taken) || state == State::joined) return true;
    state_.wait(State::begun);
    return false;
}

bool PacketRun::is_usable(const Decoded& compared, int64_t at) const {
    return state_ == State::decoded && at == position && compared.packets.size() == compared_ &&
           compared.begins(results);
}

}  // namespace hark
