#include "audio/libav/libav_container.h"

#include <algorithm>
#include <utility>

#include "audio/libav/libav_allowed.h"
#include "audio/libav/libav_length.h"
#include "core/error.h"

namespace hark {
namespace {

constexpr int kBufferBytes = 1 << 16;
// libav takes noise for MP3 with a low score.
constexpr int kMinScore = 5;

}  // namespace

std::string libav_error(int code) {
    char text[AV_ERROR_MAX_STRING_SIZE] = "";
    av_strerror(code, text, sizeof text);
    return text;
}

LibavContainer::LibavContainer(Input& input, int track) : input_(input) {
    prepare_libav();
    try {
        uint8_t* buffer = static_cast<uint8_t*>(av_malloc(kBufferBytes));
        if (buffer)
            io_ = avio_alloc_context(buffer, kBufferBytes, 0, this, read, nullptr,
                                     input_.seekable() ? seek : nullptr);
        require(io_ != nullptr, input_.name(), ": out of memory");
        open();
        choose_stream(track);
    } catch (...) {
        release();
        rethrow();
        throw;
    }
}

void LibavContainer::release() {
    avformat_close_input(&format_);
    if (io_) av_freep(&io_->buffer);
    avio_context_free(&io_);
}

int LibavContainer::read(void* self, uint8_t* to, int bytes) {
    LibavContainer& container = *static_cast<LibavContainer*>(self);
    try {
        const size_t got = container.input_.read_some(to, static_cast<size_t>(bytes));
        return got == 0 ? AVERROR_EOF : static_cast<int>(got);
    } catch (...) {
        container.read_failure_ = std::current_exception();
        return AVERROR(EIO);
    }
}

int64_t LibavContainer::seek(void* self, int64_t offset, int whence) {
    Input& input = static_cast<LibavContainer*>(self)->input_;
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

void LibavContainer::open() {
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
            code < 0 ? " (" + libav_error(code) + ")" : "");
    code = avformat_find_stream_info(format_, nullptr);
    require(code >= 0, input_.name(), ": cannot read ", format_->iformat->long_name, ": ",
            libav_error(code));
}

void LibavContainer::choose_stream(int track) {
    int found = 0;
    for (unsigned i = 0; i < format_->nb_streams; ++i) {
        const bool audio = format_->streams[i]->codecpar->codec_type == AVMEDIA_TYPE_AUDIO;
        if (audio && found++ == track) stream_ = static_cast<int>(i);
    }
    require(found > 0, input_.name(), ": no audio track (got ", format_->iformat->long_name, ")");
    require(stream_ >= 0, input_.name(), ": no audio track ", track, " (got ", found,
            found == 1 ? " track" : " tracks", ", counted from 0)");
    // A length of all streams together can only be checked against all of them.
    if (!is_container(*format_, "mp4")) return;
    for (unsigned i = 0; i < format_->nb_streams; ++i)
        if (static_cast<int>(i) != stream_) format_->streams[i]->discard = AVDISCARD_ALL;
}

bool LibavContainer::next(AVPacket& packet) {
    for (;;) {
        const int code = av_read_frame(format_, &packet);
        if (code == AVERROR(EAGAIN)) {  // MPEG-TS looks for its next packet 64 KiB at a time
            const int64_t before = std::exchange(retried_at_, input_.position());
            if (before != retried_at_) continue;
        }
        if (code < 0) {
            // GXF ends with EPERM.
            if (code != AVERROR_EOF && code != AVERROR(EPERM)) broken_ = code;
            return false;
        }
        const AVStream& stream = *format_->streams[packet.stream_index];
        const double end = seconds_of(packet.pts, stream) + seconds_of(packet.duration, stream);
        stream_ends_.resize(std::max<size_t>(stream_ends_.size(), format_->nb_streams));
        double& last_end = stream_ends_[static_cast<size_t>(packet.stream_index)];
        if (end > last_end) last_end = end;
        if (packet.stream_index == stream_) return true;
        av_packet_unref(&packet);
    }
}

}  // namespace hark
