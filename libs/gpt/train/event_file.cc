#include "gpt/train/event_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "core/error.h"

namespace hark::gpt {
namespace {

namespace fs = std::filesystem;

// The fields of an Event, a Summary, a Summary.Value and a SessionLog that are written.
enum EventField { kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7 };
enum SummaryField { kValue = 1 };
enum ValueField { kTag = 1, kSimpleValue = 2 };
enum SessionLogField { kStatus = 1 };
constexpr uint64_t kStart = 1;  // SessionLog.SessionStatus

// A protocol buffer: protobuf.dev/programming-guides/encoding.
class Message {
  public:
    Message& number(int field, uint64_t value) {
        key(field, 0);
        varint(value);
        return *this;
    }
    Message& real(int field, double value) {
        return fixed(field, 1, std::bit_cast<uint64_t>(value));
    }
    Message& real(int field, float value) {
        return fixed(field, 5, std::bit_cast<uint32_t>(value));
    }
    Message& bytes(int field, std::string_view value) {
        key(field, 2);
        varint(value.size());
        text_ += value;
        return *this;
    }
    const std::string& text() const { return text_; }

  private:
    void key(int field, unsigned wire_type) {
        varint(static_cast<uint64_t>(field) << 3 | wire_type);
    }
    void varint(uint64_t value) {
        for (; value >= 128; value >>= 7) text_ += static_cast<char>(value | 128);
        text_ += static_cast<char>(value);
    }
    template <class T>
    Message& fixed(int field, unsigned wire_type, T value) {
        key(field, wire_type);
        text_.append(reinterpret_cast<const char*>(&value), sizeof value);
        return *this;
    }
    std::string text_;
};

Message event_now() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return Message().real(kWallTime, std::chrono::duration<double>(now).count());
}

// table[i] is the checksum of byte i: polynomial 0x1EDC6F41, bits reversed.
constexpr std::array<uint32_t, 256> crc_table() {
    std::array<uint32_t, 256> table{};
    for (uint32_t i = 0; i < 256; ++i) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0);
        table[i] = crc;
    }
    return table;
}

std::string masked_crc(std::string_view bytes) {
    const uint32_t masked = std::rotr(crc32c(bytes), 15) + 0xa282ead8u;
    return std::string(reinterpret_cast<const char*>(&masked), sizeof masked);
}

// TensorBoard asks for "tfevents" in the name, and reads files in the order of their names.
fs::path new_path(const fs::path& directory) {
    std::error_code failed;
    fs::create_directories(directory, failed);
    require(!failed, directory.string(), ": cannot make the folder: ", failed.message());
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
    char host[256] = "";
    ::gethostname(host, sizeof host - 1);
    const std::string fraction = std::to_string(1000 + ms % 1000).substr(1);
    return directory /
           concat("events.out.tfevents.", ms / 1000, ".", fraction, ".", host, ".", ::getpid());
}

int open_new(const fs::path& path) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    require(fd >= 0, path.string(), ": cannot make the file: ", std::strerror(errno));
    return fd;
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
    static constexpr std::array<uint32_t, 256> kTable = crc_table();
    uint32_t crc = ~uint32_t{0};
    for (const char c : bytes) crc = kTable[(crc ^ static_cast<uint8_t>(c)) & 255] ^ crc >> 8;
    return ~crc;
}

std::string tf_record(std::string_view bytes) {
    const uint64_t size = bytes.size();
    const std::string length(reinterpret_cast<const char*>(&size), sizeof size);
    return length + masked_crc(length) + std::string(bytes) + masked_crc(bytes);
}

EventFile::EventFile(const fs::path& directory, int64_t first_step)
    : path_(new_path(directory)), fd_(open_new(path_)), out_(fd_, path_.string()) {
    write(event_now().bytes(kFileVersion, "brain.Event:2").text());
    if (first_step < 2) return;
    const Message start = Message().number(kStatus, kStart);
    write(event_now()
              .number(kStep, static_cast<uint64_t>(first_step))
              .bytes(kSessionLog, start.text())
              .text());
}

EventFile::~EventFile() { ::close(fd_); }

void EventFile::add(int64_t step, std::span<const Scalar> scalars) {
    Message summary;
    for (const auto& [tag, value] : scalars)
        summary.bytes(
            kValue,
            Message().bytes(kTag, tag).real(kSimpleValue, static_cast<float>(value)).text());
    write(event_now()
              .number(kStep, static_cast<uint64_t>(step))
              .bytes(kSummary, summary.text())
              .text());
}

void EventFile::write(const std::string& event) {
    out_.write(tf_record(event));
    out_.flush();
}

}  // namespace hark::gpt
