#include "audio/libav/packet_codec.h"

extern "C" {
#include <libavformat/avformat.h>
}

#include <algorithm>
#include <cstring>
#include <utility>

#include "audio/libav/libav_allowed.h"
#include "audio/libav/libav_container.h"
#include "core/error.h"

namespace hark {

void Decoded::clear() {
    packets.clear();
    frames.clear();
    samples.clear();
}

std::span<const float> Decoded::samples_of(size_t frame) const {
    const size_t end = frame + 1 < frames.size() ? frames[frame + 1].first : samples.size();
    return std::span(samples).subspan(frames[frame].first, end - frames[frame].first);
}

void Decoded::append(const Decoded& from, size_t i, bool with_samples) {
    Packet packet = from.packets[i];
    const size_t first = std::exchange(packet.first_frame, frames.size());
    packets.push_back(packet);
    for (size_t f = first; f < first + packet.frames; ++f) {
        Frame frame = from.frames[f];
        frame.first = samples.size();
        frames.push_back(frame);
        const std::span<const float> more = from.samples_of(f);
        if (with_samples) samples.insert(samples.end(), more.begin(), more.end());
    }
}

int64_t Decoded::length() const {
    int64_t sum = 0;
    for (const Frame& frame : frames) sum += frame.length;
    return sum;
}

void Decoded::read(size_t frame, AudioBlock& block) const {
    block.rate = frames[frame].rate;
    block.channels = frames[frame].channels;
    block.layout = frames[frame].layout;
    const std::span<const float> from = samples_of(frame);
    block.samples.assign(from.begin(), from.end());
}

bool Decoded::begins(const Decoded& other) const {
    const auto same_packet = [](const Packet& a, const Packet& b) {
        return a.frames == b.frames && a.refused == b.refused && a.failed == b.failed &&
               a.sample_rate == b.sample_rate;
    };
    const auto same_frame = [](const Frame& a, const Frame& b) {
        return a.rate == b.rate && a.channels == b.channels && a.layout == b.layout &&
               a.pts == b.pts && a.length == b.length && a.first == b.first;
    };
    const auto is_start = [](const auto& a, const auto& b, auto same) {
        return a.size() <= b.size() && std::equal(a.begin(), a.end(), b.begin(), same);
    };
    return is_start(packets, other.packets, same_packet) &&
           is_start(frames, other.frames, same_frame) && samples.size() <= other.samples.size() &&
           (samples.empty() ||
            std::memcmp(samples.data(), other.samples.data(), samples.size() * sizeof(float)) == 0);
}

CodecSetup::CodecSetup(const AVStream& stream, std::string input)
    : input_(std::move(input)),
      codec_(avcodec_find_decoder(stream.codecpar->codec_id)),
      time_base_(stream.time_base) {
    require(codec_ != nullptr, input_, ": no decoder for ",
            avcodec_get_name(stream.codecpar->codec_id));
    require(is_allowed(codec_->name, kAllowedCodecs), input_, ": the codec ", codec_->name,
            " is not among those that are decoded; if you trust the file, convert it with ffmpeg");
    parameters_ = avcodec_parameters_alloc();
    const bool copied = parameters_ && avcodec_parameters_copy(parameters_, stream.codecpar) >= 0;
    if (!copied) avcodec_parameters_free(&parameters_);
    require(copied, input_, ": out of memory");
}

// Not AAC, whose noise comes from a generator, nor Opus and Vorbis, whose books are long to build,
// nor libav's decoders of fixed point ("mp2"), which pass on what they have rounded.
bool CodecSetup::is_divisible() const {
    // Where a packet's samples begin must be known from the packets before it.
    const bool has_lengths =
        parameters_->frame_size > 0 ||
        int64_t{time_base_.num} * parameters_->sample_rate <= int64_t{time_base_.den};
    return has_lengths && is_allowed(codec_->name, "mp3float,flac,alac");
}

bool CodecSetup::has_reservoir() const { return is_allowed(codec_->name, "mp3float"); }

PacketCodec::PacketCodec(const CodecSetup& setup)
    : context_(avcodec_alloc_context3(setup.codec_)), frame_(av_frame_alloc()) {
    int code = context_ && frame_ ? 0 : AVERROR(ENOMEM);
    if (code >= 0) {
        context_->pkt_timebase = setup.time_base_;
        code = avcodec_parameters_to_context(context_, setup.parameters_);
    }
    if (code >= 0) code = avcodec_open2(context_, setup.codec_, nullptr);
    if (code < 0) release();
    require(code >= 0, setup.input_, ": cannot decode ", setup.codec_->name, ": ",
            libav_error(code));
}

void PacketCodec::release() {
    av_frame_free(&frame_);
    avcodec_free_context(&context_);
}

void PacketCodec::decode(const AVPacket* packet, Decoded& out) {
    out.packets.push_back({.first_frame = out.frames.size()});
    Decoded::Packet& made = out.packets.back();
    made.refused = avcodec_send_packet(context_, packet) < 0;
    made.sample_rate = context_->sample_rate;
    try {
        for (;;) {
            const int code = avcodec_receive_frame(context_, frame_);
            made.failed = code < 0 && code != AVERROR(EAGAIN) && code != AVERROR_EOF;
            if (code < 0) return;
            const AVChannelLayout& layout = frame_->ch_layout;
            out.frames.push_back(
                {.rate = frame_->sample_rate,
                 .channels = layout.nb_channels,
                 .layout = layout.order == AV_CHANNEL_ORDER_NATIVE ? layout.u.mask : 0,
                 .pts = frame_->pts,
                 .length = frame_->nb_samples,
                 .first = out.samples.size()});
            append_frame(*frame_, out.samples);
            ++made.frames;
            av_frame_unref(frame_);
        }
    } catch (...) {
        made.failure = std::current_exception();
    }
}

}  // namespace hark
