#include "audio/sndfile.h"

#include <sndfile.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <iterator>
#include <utility>

#include "audio/coverage.h"
#include "core/error.h"
#include "formats/recordings.h"

namespace hark {
namespace {

constexpr sf_count_t kFrames = 1 << 14;  // per read

// As for libav (libav_allowed.h): what people have.
bool is_allowed_type(int format) {
    constexpr int kTypes[] = {SF_FORMAT_WAV,  SF_FORMAT_WAVEX, SF_FORMAT_RF64, SF_FORMAT_W64,
                              SF_FORMAT_AIFF, SF_FORMAT_AU,    SF_FORMAT_CAF,  SF_FORMAT_FLAC,
                              SF_FORMAT_OGG,  SF_FORMAT_NIST,  SF_FORMAT_VOC,  SF_FORMAT_IRCAM,
                              SF_FORMAT_HTK};
    return std::count(std::begin(kTypes), std::end(kTypes), format & SF_FORMAT_TYPEMASK) > 0;
}

// libsndfile's input. An exception may not cross C code: it is kept here until the library returns.
struct Source {
    Input& input;
    std::exception_ptr failure;

    void rethrow() {
        if (failure) std::rethrow_exception(std::exchange(failure, nullptr));
    }
};

// Runs a callback. Keeps what it throws, and returns `failed` to libsndfile.
template <class Action>
sf_count_t guarded(void* user, sf_count_t failed, Action action) {
    Source& source = *static_cast<Source*>(user);
    try {
        return static_cast<sf_count_t>(action(source.input));
    } catch (...) {
        source.failure = std::current_exception();
        return failed;
    }
}

sf_count_t input_size(void* user) {
    return guarded(user, -1, [](Input& input) { return input.size(); });
}
sf_count_t input_tell(void* user) { return static_cast<Source*>(user)->input.position(); }
sf_count_t input_seek(sf_count_t offset, int whence, void* user) {
    return guarded(user, -1, [&](Input& input) -> sf_count_t {
        if (whence == SEEK_CUR) offset += input.position();
        if (whence == SEEK_END) offset += input.size();
        try {
            input.seek(offset);
        } catch (const Error&) {
            return -1;  // a damaged header asks for any position: not a failure of the input
        }
        return offset;
    });
}
sf_count_t input_read(void* to, sf_count_t bytes, void* user) {
    return guarded(user, 0,
                   [&](Input& input) { return input.read(to, static_cast<size_t>(bytes)); });
}
sf_count_t input_write(const void*, sf_count_t, void*) { return 0; }

class SndfileDecoder : public Decoder {
  public:
    explicit SndfileDecoder(Input& input) : source_{input, nullptr} {
        SF_VIRTUAL_IO io = {input_size, input_seek, input_read, input_write, input_tell};
        file_ = sf_open_virtual(&io, SFM_READ, &info_, &source_);
        if (file_) sf_command(file_, SFC_SET_NORM_FLOAT, nullptr, SF_TRUE);
    }
    ~SndfileDecoder() override {
        if (file_) sf_close(file_);
    }
    SndfileDecoder(const SndfileDecoder&) = delete;
    SndfileDecoder& operator=(const SndfileDecoder&) = delete;

    // Returns whether libsndfile knows the format, and hark allows it. Throws the input's failure.
    bool open() {
        source_.rethrow();
        if (!file_ || !is_allowed_type(info_.format)) return false;
        require(info_.samplerate >= kMinRate && info_.samplerate <= kMaxRate &&
                    info_.channels >= 1 && info_.channels <= kMaxChannels,
                source_.input.name(), ": unlikely format (got ", info_.channels, " channels at ",
                info_.samplerate, " Hz); the file may be damaged");
        return true;
    }

    bool next(AudioBlock& block) override {
        block.rate = info_.samplerate;
        block.channels = info_.channels;
        block.layout = 0;
        block.samples.resize(static_cast<size_t>(kFrames * info_.channels));
        const sf_count_t got = sf_readf_float(file_, block.samples.data(), kFrames);
        source_.rethrow();
        require(sf_error(file_) == SF_ERR_NO_ERROR, source_.input.name(),
                ": cannot be read: ", sf_strerror(file_));
        block.samples.resize(static_cast<size_t>(std::max<sf_count_t>(0, got) * info_.channels));
        frames_ += std::max<sf_count_t>(0, got);
        ended_ = got <= 0;
        return !ended_;
    }

    Loss loss() const override {
        const auto seconds = [&](sf_count_t frames) {
            return static_cast<double>(frames) / info_.samplerate;
        };
        const bool cut =
            ended_ && info_.frames < SF_COUNT_MAX && seconds(info_.frames - frames_) > kMaxMissing;
        if (!cut) return {};
        return {ends_at(seconds(frames_), seconds(info_.frames)), true};
    }

  private:
    Source source_;
    SF_INFO info_{};
    SNDFILE* file_ = nullptr;
    sf_count_t frames_ = 0;  // read
    bool ended_ = false;
};

}  // namespace

std::unique_ptr<Decoder> open_sndfile(Input& input) {
    auto decoder = std::make_unique<SndfileDecoder>(input);
    if (!decoder->open()) return nullptr;
    return decoder;
}

}  // namespace hark
