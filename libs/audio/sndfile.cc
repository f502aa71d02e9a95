#include "audio/sndfile.h"

#include <sndfile.h>

#include <algorithm>
#include <cstdio>

#include "core/error.h"

namespace hark {
namespace {

constexpr sf_count_t kFrames = 1 << 14;  // read at once

Input& input_of(void* user) { return *static_cast<Input*>(user); }

// Runs what may throw inside a C callback; -1 tells libsndfile that it failed.
template <class Action>
sf_count_t guarded(Action action) {
    try {
        return static_cast<sf_count_t>(action());
    } catch (const Error&) {
        return -1;
    }
}

sf_count_t input_size(void* user) {
    return guarded([&] { return input_of(user).size(); });
}
sf_count_t input_tell(void* user) { return input_of(user).position(); }
sf_count_t input_seek(sf_count_t offset, int whence, void* user) {
    Input& input = input_of(user);
    return guarded([&] {
        if (whence == SEEK_CUR) offset += input.position();
        if (whence == SEEK_END) offset += input.size();
        input.seek(offset);
        return offset;
    });
}
sf_count_t input_read(void* to, sf_count_t bytes, void* user) {
    return std::max<sf_count_t>(
        0, guarded([&] { return input_of(user).read(to, static_cast<size_t>(bytes)); }));
}
sf_count_t input_write(const void*, sf_count_t, void*) { return 0; }

class SndfileDecoder : public Decoder {
  public:
    SndfileDecoder(SNDFILE* file, const SF_INFO& info, std::string name)
        : file_(file), info_(info), name_(std::move(name)) {
        sf_command(file_, SFC_SET_NORM_FLOAT, nullptr, SF_TRUE);
    }
    ~SndfileDecoder() override { sf_close(file_); }

    bool next(AudioBlock& block) override {
        block.rate = info_.samplerate;
        block.channels = info_.channels;
        block.layout = 0;
        block.samples.resize(static_cast<size_t>(kFrames * info_.channels));
        const sf_count_t got = sf_readf_float(file_, block.samples.data(), kFrames);
        require(sf_error(file_) == SF_ERR_NO_ERROR, name_, ": reading broke: ", sf_strerror(file_));
        block.samples.resize(static_cast<size_t>(std::max<sf_count_t>(0, got) * info_.channels));
        return got > 0;
    }

  private:
    SNDFILE* file_;
    SF_INFO info_;
    std::string name_;
};

}  // namespace

std::unique_ptr<Decoder> open_sndfile(Input& input) {
    SF_VIRTUAL_IO io = {input_size, input_seek, input_read, input_write, input_tell};
    SF_INFO info{};
    SNDFILE* file = sf_open_virtual(&io, SFM_READ, &info, &input);
    if (!file) return nullptr;
    auto decoder = std::make_unique<SndfileDecoder>(file, info, input.name());
    require(info.samplerate >= kMinRate && info.samplerate <= kMaxRate && info.channels >= 1 &&
                info.channels <= kMaxChannels,
            input.name(), ": found ", info.channels, " channels at ", info.samplerate, " Hz");
    return decoder;
}

}  // namespace hark
