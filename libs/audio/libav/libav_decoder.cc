#include "audio/libav/libav.h"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/channel_layout.h>
}

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <limits>
#include <utility>

#include "audio/coverage.h"
#include "audio/declared_length.h"
#include "audio/libav/libav_allowed.h"
#include "audio/libav/libav_frame.h"
#include "audio/libav/libav_length.h"
#include "core/error.h"
#include "kernels/runtime/plugin.h"

namespace hark {
namespace {

constexpr int kBufferBytes = 1 << 16;
// libav takes noise for MP3 with a low score.
constexpr int kMinScore = 5;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

std::string error_text(int code) {
    char text[AV_ERROR_MAX_STRING_SIZE] = "";
    av_strerror(code, text, sizeof text);
    return text;
}

class LibavDecoder : public Decoder {
  public:
    LibavDecoder(Input& input, int track);
    ~LibavDecoder() override { release(); }
    bool next(AudioBlock& block) override;
    std::string loss() const override;

  private:
    static int read(void* self, uint8_t* to, int bytes);
    static int64_t seek(void* self, int64_t offset, int whence);
    void open(int track);
    void open_container();
    void choose_stream(int track);
    void release();
    bool receive(AudioBlock& block);
    void send_packet();
    void decode_packet();
    double found_end() const;

    Input& input_;
    std::exception_ptr read_failure_;  // thrown by Input inside libav's callback
    AVIOContext* io_ = nullptr;
    AVFormatContext* format_ = nullptr;
    AVCodecContext* codec_ = nullptr;
    AVPacket* packet_ = nullptr;
    AVFrame* frame_ = nullptr;
    int stream_ = -1;
    double declared_ = 0;  // seconds, by our own look at the header; 0 if unknown
    bool draining_ = false, ended_ = false;
    int broken_ = 0;  // libav's error that ended reading
    int64_t packets_ = 0, bad_packets_ = 0;
    int64_t retried_at_ = -1;   // byte of the input at which libav asked to be called again
    double longest_frame_ = 0;  // seconds
    double packet_seconds_ = 0;
    double packet_at_ = kNone;         // timestamp of the newest packet, in seconds
    std::vector<double> stream_ends_;  // seconds: the last packet of each stream
    Coverage coverage_;
};

LibavDecoder::LibavDecoder(Input& input, int track) : input_(input) {
    prepare_libav();
    try {
        open(track);
    } catch (...) {
        release();
        if (read_failure_) std::rethrow_exception(read_failure_);
        throw;
    }
}

void LibavDecoder::release() {
    av_frame_free(&frame_);
    av_packet_free(&packet_);
    avcodec_free_context(&codec_);
    avformat_close_input(&format_);
    if (io_) av_freep(&io_->buffer);
    avio_context_free(&io_);
}

int LibavDecoder::read(void* self, uint8_t* to, int bytes) {
    LibavDecoder& decoder = *static_cast<LibavDecoder*>(self);
    try {
        const size_t got = decoder.input_.read_some(to, static_cast<size_t>(bytes));
        return got == 0 ? AVERROR_EOF : static_cast<int>(got);
    } catch (...) {
        decoder.read_failure_ = std::current_exception();
        return AVERROR(EIO);
    }
}

int64_t LibavDecoder::seek(void* self, int64_t offset, int whence) {
    Input& input = static_cast<LibavDecoder*>(self)->input_;
    try {
        if (whence == AVSEEK_SIZE) return input.size();
        if (whence == SEEK_CUR) offset += input.position();
        if (whence == SEEK_END) offset += input.size();
        input.seek(offset);
        return offset;
    } catch (const Error&) {
        return AVERROR(EINVAL);
    }
}

void LibavDecoder::open(int track) {
    packet_ = av_packet_alloc();
    frame_ = av_frame_alloc();
    uint8_t* buffer = static_cast<uint8_t*>(av_malloc(kBufferBytes));
    if (buffer)
        io_ = avio_alloc_context(buffer, kBufferBytes, 0, this, read, nullptr,
                                 input_.seekable() ? seek : nullptr);
    require(packet_ && frame_ && io_, input_.name(), ": out of memory");
    declared_ = declared_seconds(input_);
    open_container();
    choose_stream(track);
    const AVStream& stream = *format_->streams[stream_];
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
    require(code >= 0, input_.name(), ": cannot decode ", codec->name, ": ", error_text(code));
}

void LibavDecoder::open_container() {
    format_ = avformat_alloc_context();
    require(format_ != nullptr, input_.name(), ": out of memory");
    format_->pb = io_;
    format_->flags |= AVFMT_FLAG_CUSTOM_IO;  // closing it leaves io_ alone
    const AVInputFormat* found = nullptr;
    int code = av_probe_input_buffer2(io_, &found, input_.name().c_str(), format_, 0, 0);
    require(
        code < kMinScore || is_allowed(found->name, kAllowedFormats), input_.name(), ": ",
        found ? found->long_name : "",
        " is not among the formats that are read; if you trust the file, convert it with ffmpeg");
    // What a file contains may not be of another format, nor name files or URLs.
    AVDictionary* options = nullptr;
    av_dict_set(&options, "protocol_whitelist", "none", 0);
    av_dict_set(&options, "format_whitelist", kAllowedFormats, 0);
    av_dict_set(&options, "codec_whitelist", kAllowedCodecs, 0);
    if (code >= kMinScore)
        code = avformat_open_input(&format_, input_.name().c_str(), found, &options);
    else if (code >= 0)
        code = AVERROR_INVALIDDATA;
    av_dict_free(&options);
    require(code >= 0, input_.name(), ": this is no audio in a format that hark reads",
            code < 0 ? " (" + error_text(code) + ")" : "");
    code = avformat_find_stream_info(format_, nullptr);
    require(code >= 0, input_.name(), ": cannot read ", format_->iformat->long_name, ": ",
            error_text(code));
}

void LibavDecoder::choose_stream(int track) {
    int found = 0;
    for (unsigned i = 0; i < format_->nb_streams; ++i) {
        const bool audio = format_->streams[i]->codecpar->codec_type == AVMEDIA_TYPE_AUDIO;
        if (audio && found++ == track) stream_ = static_cast<int>(i);
    }
    require(found > 0, input_.name(), ": no audio track (got ", format_->iformat->long_name, ")");
    require(stream_ >= 0, input_.name(), ": no audio track ", track, " (got ", found,
            found == 1 ? " track" : " tracks", ", counted from 0)");
    if ((format_->iformat->flags & AVFMT_GENERIC_INDEX) && !is_container(*format_, "ogg"))
        coverage_.set_counted();
    const bool alone = format_->nb_streams == 1;
    const char* const kCounted[] = {"matroska", "flac"};
    for (const char* name : kCounted)
        if (alone && is_container(*format_, name)) coverage_.begin_at_zero();
    // A length of all streams together can only be checked against all of them.
    if (!is_container(*format_, "mp4")) return;
    for (unsigned i = 0; i < format_->nb_streams; ++i)
        if (static_cast<int>(i) != stream_) format_->streams[i]->discard = AVDISCARD_ALL;
}

bool LibavDecoder::next(AudioBlock& block) {
    block.samples.clear();
    while (!receive(block)) {
        if (draining_) {
            if (read_failure_) std::rethrow_exception(read_failure_);
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
    coverage_.add_frame(seconds_of(frame_->pts, *format_->streams[stream_]), length);
    av_frame_unref(frame_);
    return true;
}

void LibavDecoder::send_packet() {
    const int code = av_read_frame(format_, packet_);
    if (code == AVERROR(EAGAIN)) {  // MPEG-TS looks for its next packet 64 KiB at a time
        const int64_t before = std::exchange(retried_at_, input_.position());
        if (before != retried_at_) return;
    }
    if (code < 0) {
        // GXF ends with EPERM.
        if (code != AVERROR_EOF && code != AVERROR(EPERM)) broken_ = code;
        draining_ = true;
        avcodec_send_packet(codec_, nullptr);
        return;
    }
    const AVStream& stream = *format_->streams[packet_->stream_index];
    const double end = seconds_of(packet_->pts, stream) + seconds_of(packet_->duration, stream);
    stream_ends_.resize(std::max<size_t>(stream_ends_.size(), format_->nb_streams));
    double& last_end = stream_ends_[static_cast<size_t>(packet_->stream_index)];
    if (end > last_end) last_end = end;
    if (packet_->stream_index == stream_) decode_packet();
    av_packet_unref(packet_);
}

void LibavDecoder::decode_packet() {
    ++packets_;
    const AVStream& stream = *format_->streams[stream_];
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
    const bool of_stream = states_each_stream(*format_, stream_);
    // WMA's decoder gives a frame the timestamp of the packet after it.
    const bool early =
        codec_->codec_id == AV_CODEC_ID_WMAV1 || codec_->codec_id == AV_CODEC_ID_WMAV2;
    const double end = coverage_.end() - (early ? longest_frame_ : 0);
    if (of_stream || stream_ends_.empty()) return end;
    return std::max(end, *std::max_element(stream_ends_.begin(), stream_ends_.end()));
}

std::string LibavDecoder::loss() const {
    const double stated =
        declared_ > 0 ? declared_ : stated_end(*format_, stream_, stream_ends_, longest_frame_);
    std::string text = coverage_.loss(ended_ ? stated : 0, found_end());
    const auto add = [&](const std::string& more) { text += (text.empty() ? "" : "; ") + more; };
    if (broken_ != 0)
        add(concat("cannot be read after ", coverage_.end(), " s: ", error_text(broken_)));
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
