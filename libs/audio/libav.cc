#include "audio/libav.h"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/channel_layout.h>
}

#include <algorithm>
#include <cstring>
#include <exception>
#include <mutex>
#include <type_traits>

#include "core/error.h"

namespace hark {
namespace {

constexpr int kBufferBytes = 1 << 16;
// Noise looks a little like MP3 to libav: what it finds with less than this score is refused.
constexpr int kMinScore = 5;
// A container that promises more than was there by this has been cut.
constexpr double kCutSeconds = 1, kCutFraction = 0.02;

std::string error_text(int code) {
    char text[AV_ERROR_MAX_STRING_SIZE] = "";
    av_strerror(code, text, sizeof text);
    return text;
}

// Sample values of a frame, planar or interleaved, times a power of two.
template <class T>
void append_interleaved(const AVFrame& frame, double scale, std::vector<float>& out) {
    const bool planar = av_sample_fmt_is_planar(static_cast<AVSampleFormat>(frame.format));
    const size_t channels = static_cast<size_t>(frame.ch_layout.nb_channels);
    const size_t frames = static_cast<size_t>(frame.nb_samples), had = out.size();
    out.resize(had + frames * channels);
    // What one plane holds goes to every so many places.
    const size_t planes = planar ? channels : 1, count = frames * channels / planes;
    for (size_t c = 0; c < planes; ++c) {
        const T* from = reinterpret_cast<const T*>(frame.extended_data[c]);
        float* to = out.data() + had + c;
        constexpr bool kSmall = sizeof(T) <= 4;  // a float scales it without rounding twice
        using Real = std::conditional_t<kSmall, float, double>;
        const Real factor = static_cast<Real>(scale);
        const auto value = [&](size_t i) {
            return static_cast<float>(static_cast<Real>(from[i]) * factor);
        };
        if (planes == 1)
            for (size_t i = 0; i < count; ++i) to[i] = value(i);
        else
            for (size_t i = 0; i < count; ++i) to[planes * i] = value(i);
    }
}

void append_frame(const AVFrame& frame, std::vector<float>& out) {
    const size_t had = out.size();
    switch (av_get_packed_sample_fmt(static_cast<AVSampleFormat>(frame.format))) {
        case AV_SAMPLE_FMT_U8:
            append_interleaved<uint8_t>(frame, 1.0 / 128, out);
            for (size_t i = had; i < out.size(); ++i) out[i] -= 1;
            return;
        case AV_SAMPLE_FMT_S16:
            return append_interleaved<int16_t>(frame, 1.0 / 32768, out);
        case AV_SAMPLE_FMT_S32:
            return append_interleaved<int32_t>(frame, 1.0 / (1ll << 31), out);
        case AV_SAMPLE_FMT_S64:
            return append_interleaved<int64_t>(frame, 0.5 / (1ll << 62), out);
        case AV_SAMPLE_FMT_FLT:
            return append_interleaved<float>(frame, 1, out);
        case AV_SAMPLE_FMT_DBL:
            return append_interleaved<double>(frame, 1, out);
        default:
            fail("no such sample format");
    }
}

class LibavDecoder : public Decoder {
  public:
    LibavDecoder(Input& input, int track);
    ~LibavDecoder() override { release(); }
    bool next(AudioBlock& block) override;

  private:
    static int read(void* self, uint8_t* to, int bytes);
    static int64_t seek(void* self, int64_t offset, int whence);
    void open(int track);
    void open_container();
    void choose_stream(int track);
    void release();
    bool receive(AudioBlock& block);
    void send_packet();
    void note_end(const AVPacket& packet);
    void check_whole() const;

    Input& input_;
    std::exception_ptr read_failure_;  // thrown by Input inside libav's callback
    AVIOContext* io_ = nullptr;
    AVFormatContext* format_ = nullptr;
    AVCodecContext* codec_ = nullptr;
    AVPacket* packet_ = nullptr;
    AVFrame* frame_ = nullptr;
    int stream_ = -1;
    bool draining_ = false;
    int broken_ = 0;  // libav's error where reading broke
    int64_t packets_ = 0, bad_packets_ = 0;
    double end_ = 0;      // seconds: where the last packet ends
    double decoded_ = 0;  // seconds
};

LibavDecoder::LibavDecoder(Input& input, int track) : input_(input) {
    silence_libav();
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
    open_container();
    choose_stream(track);
    const AVStream& stream = *format_->streams[stream_];
    const AVCodec* codec = avcodec_find_decoder(stream.codecpar->codec_id);
    require(codec != nullptr, input_.name(), ": no decoder for ",
            avcodec_get_name(stream.codecpar->codec_id));
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
    // A playlist may name anything: no protocol is allowed to follow it.
    AVDictionary* options = nullptr;
    av_dict_set(&options, "protocol_whitelist", "none", 0);
    int code = avformat_open_input(&format_, input_.name().c_str(), nullptr, &options);
    av_dict_free(&options);
    require(code >= 0 && format_->probe_score >= kMinScore, input_.name(),
            ": expected audio, found nothing that can be read as such",
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
    require(found > 0, input_.name(), ": expected audio, found ", format_->iformat->long_name,
            " without an audio track");
    require(stream_ >= 0, input_.name(), ": expected audio track ", track, ", found ", found,
            found == 1 ? " track" : " tracks", " (counted from 0)");
    // Matroska tells the length of all tracks together, so there the others are followed too.
    if (std::strstr(format_->iformat->name, "matroska")) return;
    for (unsigned i = 0; i < format_->nb_streams; ++i)
        if (static_cast<int>(i) != stream_) format_->streams[i]->discard = AVDISCARD_ALL;
}

bool LibavDecoder::next(AudioBlock& block) {
    block.samples.clear();
    while (!receive(block)) {
        if (draining_) {
            check_whole();
            return false;
        }
        send_packet();
    }
    return true;
}

// Takes one frame from the decoder; false where it wants a packet or has ended.
bool LibavDecoder::receive(AudioBlock& block) {
    const int code = avcodec_receive_frame(codec_, frame_);
    if (code == AVERROR(EAGAIN) || code == AVERROR_EOF) return false;
    if (code < 0) {  // a damaged packet: the decoder goes on with the next
        ++bad_packets_;
        return false;
    }
    const AVChannelLayout& layout = frame_->ch_layout;
    block.rate = frame_->sample_rate;
    block.channels = layout.nb_channels;
    block.layout = layout.order == AV_CHANNEL_ORDER_NATIVE ? layout.u.mask : 0;
    require(block.rate >= kMinRate && block.rate <= kMaxRate && block.channels >= 1 &&
                block.channels <= kMaxChannels,
            input_.name(), ": found ", block.channels, " channels at ", block.rate, " Hz");
    append_frame(*frame_, block.samples);
    decoded_ += static_cast<double>(frame_->nb_samples) / block.rate;
    av_frame_unref(frame_);
    return true;
}

void LibavDecoder::send_packet() {
    const int code = av_read_frame(format_, packet_);
    if (code < 0) {
        if (code != AVERROR_EOF) broken_ = code;
        draining_ = true;
        avcodec_send_packet(codec_, nullptr);
        return;
    }
    note_end(*packet_);
    if (packet_->stream_index == stream_) {
        ++packets_;
        if (avcodec_send_packet(codec_, packet_) < 0) ++bad_packets_;
    }
    av_packet_unref(packet_);
}

void LibavDecoder::note_end(const AVPacket& packet) {
    const AVStream& stream = *format_->streams[packet.stream_index];
    if (packet.pts == AV_NOPTS_VALUE) return;
    const double end = static_cast<double>(packet.pts + packet.duration) * av_q2d(stream.time_base);
    end_ = std::max(end_, end);
}

// libav ends many a file that was cut without a word, so what the container promises is compared
// with what was there: only for those that tell the length, not where libav has estimated it.
void LibavDecoder::check_whole() const {
    if (read_failure_) std::rethrow_exception(read_failure_);
    const std::string& name = input_.name();
    require(broken_ == 0, name, ": reading broke after ", decoded_, " s: ", error_text(broken_));
    require(bad_packets_ == 0 || decoded_ > 0, name, ": nothing of it can be decoded");
    require(bad_packets_ <= 2 || bad_packets_ * 10 <= packets_, name, ": damaged: ", bad_packets_,
            " of ", packets_, " packets cannot be decoded");
    const char* container = format_->iformat->name;
    const AVStream& stream = *format_->streams[stream_];
    double promised = 0;
    if (std::strstr(container, "matroska")) {
        if (format_->duration_estimation_method != AVFMT_DURATION_FROM_BITRATE &&
            format_->duration != AV_NOPTS_VALUE)
            promised = static_cast<double>(format_->duration) / AV_TIME_BASE;
    } else if (std::strstr(container, "mp4") || std::strcmp(container, "flac") == 0) {
        if (stream.duration != AV_NOPTS_VALUE)
            promised = static_cast<double>(stream.duration) * av_q2d(stream.time_base);
    }
    const double found = std::max(end_, decoded_);
    require(promised - found <= kCutSeconds + kCutFraction * promised, name,
            ": the input ends too soon: expected ", promised, " s, found ", found, " s");
}

}  // namespace

void silence_libav() {
    static std::once_flag once;
    std::call_once(once, [] { av_log_set_level(AV_LOG_QUIET); });
}

std::unique_ptr<Decoder> open_libav(Input& input, int track) {
    return std::make_unique<LibavDecoder>(input, track);
}

}  // namespace hark
