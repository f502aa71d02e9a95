#include "support/audio.h"

#include <unistd.h>

#include <cstdio>
#include <stdexcept>

#include "support/recordings.h"

namespace hark::test {
namespace {

// A file of these bytes, open at its start and gone once it is closed.
class ByteFile {
  public:
    explicit ByteFile(const std::string& bytes) : file_(std::tmpfile()) {
        if (!file_ || std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size() ||
            std::fflush(file_) != 0)
            throw std::runtime_error("cannot write a temporary file");
        ::lseek(fd(), 0, SEEK_SET);
    }
    ~ByteFile() { std::fclose(file_); }
    int fd() const { return ::fileno(file_); }

  private:
    std::FILE* file_;
};

}  // namespace

std::string little_endian(uint64_t value, size_t bytes) {
    std::string text;
    for (size_t i = 0; i < bytes; ++i, value >>= 8) text += static_cast<char>(value);
    return text;
}

std::string riff_chunk(const std::string& id, const std::string& data, int64_t size) {
    const uint64_t shown = size < 0 ? data.size() : static_cast<uint64_t>(size);
    return id + little_endian(shown, 4) + data + (data.size() % 2 ? std::string(1, '\0') : "");
}

std::string wav_file(int tag, int bytes, int rate, int channels, const std::string& data,
                     int64_t data_size) {
    const auto field = [](int64_t value, size_t count) {
        return little_endian(static_cast<uint64_t>(value), count);
    };
    const std::string format = field(tag, 2) + field(channels, 2) + field(rate, 4) +
                               field(int64_t{rate} * channels * bytes, 4) +
                               field(int64_t{channels} * bytes, 2) + field(8 * bytes, 2);
    return riff_chunk("RIFF",
                      "WAVE" + riff_chunk("fmt ", format) + riff_chunk("data", data, data_size));
}

std::string noise_wav(uint64_t seed, int64_t samples) {
    SplitMix64 generator(seed);
    std::string data(static_cast<size_t>(samples) * 2, '\0');
    for (char* to = data.data(); to < data.data() + data.size(); to += 2) {
        const uint64_t sample = generator.draw() >> 50;
        to[0] = static_cast<char>(sample & 0xff);
        to[1] = static_cast<char>(sample >> 8);
    }
    return wav_file(1, 2, kSampleRate, 1, data);
}

std::vector<Chunk> read_chunks(const std::string& stream, const std::string& kind) {
    const ByteFile file(stream);
    ByteReader in(file.fd(), "stream");
    RecordingReader reader(in, kind, "");
    std::vector<Chunk> chunks;
    while (std::optional<Chunk> chunk = reader.next()) chunks.push_back(std::move(*chunk));
    return chunks;
}

std::map<std::string, Whole> join(const std::vector<Chunk>& chunks) {
    std::map<std::string, Whole> recordings;
    for (const Chunk& chunk : chunks) {
        Whole& whole = recordings[chunk.recording];
        whole.source = chunk.source;
        whole.channel = chunk.channel;
        whole.error = chunk.error;
        whole.last = chunk.document.header.metadata;
        ++whole.chunks;
        const Tensor values = chunk.values();
        const int64_t rows = values.rank == 1 ? 1 : values.dim(0), columns = values.dim(-1);
        whole.n_mels = values.rank == 1 ? 0 : rows;
        for (int64_t i = 0; i < columns; ++i)
            for (int64_t row = 0; row < rows; ++row)
                whole.values.push_back(values.as<float>()[row * columns + i]);
    }
    return recordings;
}

std::string audio_document(const std::string& recording, int64_t start,
                           const std::vector<float>& samples, bool last, const Metadata& more,
                           const std::string& error) {
    Chunk chunk;
    chunk.kind = "audio";
    chunk.recording = recording;
    chunk.source = recording + ".wav";
    chunk.start = start;
    chunk.last = last;
    chunk.error = error;
    chunk.document.header.metadata = more;
    chunk.document.add("samples", Tensor(const_cast<float*>(samples.data()), Dtype::f32,
                                         {static_cast<int64_t>(samples.size())}));
    const ByteFile file("");
    ByteWriter out(file.fd(), "document");
    write_chunk(out, std::move(chunk));
    out.flush();
    ::lseek(file.fd(), 0, SEEK_SET);
    std::string bytes(1 << 16, '\0'), all;
    ByteReader in(file.fd(), "document");
    while (size_t got = in.read_some(bytes.data(), bytes.size())) all.append(bytes, 0, got);
    return all;
}

}  // namespace hark::test
