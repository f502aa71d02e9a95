#include "audio/libav/libav.h"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavutil/channel_layout.h>
}

#include <algorithm>
#include <cmath>
#include <limits>

#include "audio/coverage.h"
#include "audio/declared_length.h"
#include "audio/libav/libav_allowed.h"
#include "audio/libav/libav_container.h"
#include "audio/libav/libav_frame.h"
#include "audio/libav/libav_length.h"
#include "core/error.h"
#include "kernels/runtime/plugin.h"

namespace hark {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

class LibavDecoder : public Decoder {
  public:
    LibavDecoder(Input& input, int track);
    ~LibavDecoder() override { release(); }
    bool next(AudioBlock& block) override;
    std::string loss() const override;

  private:
    void open_codec();
    void begin_coverage();
    void release();
    bool receive(AudioBlock& block);
    void send_packet();
    void decode_packet();
    double found_end() const;

    Input& input_;
    double declared_;  // seconds, by our own look at the header; 0 if unknown
    LibavContainer container_;
    AVCodecContext* codec_ = nullptr;
    AVPacket* packet_ = nullptr;
    AVFrame* frame_ = nullptr;
    bool draining_ = false, ended_ = false;
    int64_t packets_ = 0, bad_packets_ = 0;
    double longest_frame_ = 0;  // seconds
    double packet_seconds_ = 0;
    double packet_at_ = kNone;  // timestamp of the newest packet, in seconds
    Coverage coverage_;
};

LibavDecoder::LibavDecoder(Input& input, int track)
    : input_(input), declared_(declared_seconds(input)), container_(input, track) {
    try {
        packet_ = av_packet_alloc();
        frame_ = av_frame_alloc();
        require(packet_ && frame_, input_.name(), ": out of memory");
        begin_coverage();
        open_codec();
    } catch (...) {
        release();
        container_.rethrow();
        throw;
    }
}

void LibavDecoder::release() {
    av_frame_free(&frame_);
    av_packet_free(&packet_);
    avcodec_free_context(&codec_);
}

void LibavDecoder::begin_coverage() {
    const AVFormatContext& format = container_.format();
    if ((format.iformat->flags & AVFMT_GENERIC_INDEX) && !is_container(format, "ogg"))
        coverage_.set_counted();
    const char* const kCounted[] = {"matroska", "flac"};
    for (const char* name : kCounted)
        if (format.nb_streams == 1 && is_container(format, name)) coverage_.begin_at_zero();
}

void LibavDecoder::open_codec() {
    const AVStream& stream = container_.stream();
    const AVCodec* codec = avcodec_find_decoder(stream.codecpar->codec_id);
    require(codec != nullptr, input_.name(), ": no decoder for ",
            avcodec_get_name(stream.codecpar->codec_id));
    require(is_allowed(codec->name, kAllowedCodecs), input_.name(), ": the codec ", codec->name,
            " is not among those that are decoded; if you trust the file, convert it with ffmpeg");
    codec_ = avcodec_alloc_context3(codec);
    require(codec_ != nullptr, input_.name(), ": out of memory");
    codec_->pkt_timebase = stream.time_base;
    int code = avcodec_parameters_to_context(codec_, stream.codecpar);
    if (code >= 0) code = avcodec_open2(codec_, codec, nullptr);
    require(code >= 0, input_.name(), ": cannot decode ", codec->name, ": ", libav_error(code));
}

bool LibavDecoder::next(AudioBlock& block) {
    block.samples.clear();
    while (!receive(block)) {
        if (draining_) {
            container_.rethrow();
            require(bad_packets_ == 0 || coverage_.decoded() > 0, input_.name(),
                    ": nothing of it can be decoded");
            ended_ = true;
            return false;
        }
        send_packet();
    }
    return true;
}

// Takes one frame from the decoder; false if it needs a packet or has ended.
bool LibavDecoder::receive(AudioBlock& block) {
    const int code = avcodec_receive_frame(codec_, frame_);
    if (code == AVERROR(EAGAIN) || code == AVERROR_EOF) return false;
    if (code < 0) {  // a damaged packet: the decoder continues with the next
        ++bad_packets_;
        coverage_.add_damage(packet_at_, packet_seconds_);
        return false;
    }
    const AVChannelLayout& layout = frame_->ch_layout;
    block.rate = frame_->sample_rate;
    block.channels = layout.nb_channels;
    block.layout = layout.order == AV_CHANNEL_ORDER_NATIVE ? layout.u.mask : 0;
    require(block.rate >= kMinRate && block.rate <= kMaxRate && block.channels >= 1 &&
                block.channels <= kMaxChannels,
            input_.name(), ": unlikely format (got ", block.channels, " channels at ", block.rate,
            " Hz); the file may be damaged");
    append_frame(*frame_, block.samples);
    const double length = static_cast<double>(frame_->nb_samples) / block.rate;
    longest_frame_ = std::max(longest_frame_, length);
    coverage_.add_frame(seconds_of(frame_->pts, container_.stream()), length);
    av_frame_unref(frame_);
    return true;
}

void LibavDecoder::send_packet() {
    if (container_.next(*packet_)) {
        decode_packet();
        av_packet_unref(packet_);
    } else {
        draining_ = true;
        avcodec_send_packet(codec_, nullptr);
    }
}

void LibavDecoder::decode_packet() {
    ++packets_;
    const AVStream& stream = container_.stream();
    packet_at_ = seconds_of(packet_->pts, stream);
    packet_seconds_ =
        packet_->duration > 0 ? seconds_of(packet_->duration, stream) : longest_frame_;
    if (packet_->flags & AV_PKT_FLAG_CORRUPT) coverage_.add_damage(packet_at_, packet_seconds_);
    size_t bytes = 0;
    const uint8_t* skip = av_packet_get_side_data(packet_, AV_PKT_DATA_SKIP_SAMPLES, &bytes);
    uint32_t padding = 0;  // samples that the decoder drops at the end, little-endian
    for (size_t i = 8; skip && bytes >= 8 && i-- > 4;) padding = padding << 8 | skip[i];
    if (avcodec_send_packet(codec_, packet_) < 0) {
        ++bad_packets_;
        coverage_.add_damage(packet_at_, packet_seconds_);
    }
    coverage_.set_padding(
        codec_->sample_rate > 0 ? static_cast<double>(padding) / codec_->sample_rate : 0);
}

// The end that is compared with it: of this stream, or of any if the length is that of all.
double LibavDecoder::found_end() const {
    const bool of_stream = states_each_stream(container_.format(), container_.track());
    // WMA's decoder gives a frame the timestamp of the packet after it.
    const bool early =
        codec_->codec_id == AV_CODEC_ID_WMAV1 || codec_->codec_id == AV_CODEC_ID_WMAV2;
    const double end = coverage_.end() - (early ? longest_frame_ : 0);
    const std::vector<double>& all = container_.stream_ends();
    if (of_stream || all.empty()) return end;
    return std::max(end, *std::max_element(all.begin(), all.end()));
}

std::string LibavDecoder::loss() const {
    const double stated = declared_ > 0 ? declared_
                                        : stated_end(container_.format(), container_.track(),
                                                     container_.stream_ends(), longest_frame_);
    std::string text = coverage_.loss(ended_ ? stated : 0, found_end());
    const auto add = [&](const std::string& more) { text += (text.empty() ? "" : "; ") + more; };
    if (container_.broken() != 0)
        add(concat("cannot be read after ", coverage_.end(),
                   " s: ", libav_error(container_.broken())));
    if (bad_packets_ > 2 && bad_packets_ * 10 > packets_)
        add(concat("damaged: ", bad_packets_, " of ", packets_, " packets cannot be decoded"));
    return text;
}

}  // namespace
}  // namespace hark

HARK_EXPORT int hark_av_abi() { return hark::kLibavAbi; }
HARK_EXPORT hark::Decoder* hark_av_open(hark::Input& input, int track) {
    return new hark::LibavDecoder(input, track);
}
