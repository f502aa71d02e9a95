#include "kernels/comm/rendezvous/trusted_socket.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

namespace hark {
namespace {

constexpr std::string_view kGreeting = "hark-rv1";
constexpr size_t kRandom = 32;
constexpr uint32_t kLongest = 8 << 20;  // bytes of a message: the table of 65,536 ranks

std::span<const std::byte> bytes_of(const std::string& text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}

std::string receive_text(const TcpSocket& socket, size_t size, Deadline deadline) {
    std::string text(size, '\0');
    socket.receive(std::as_writable_bytes(std::span(text.data(), text.size())), deadline);
    return text;
}

}  // namespace

std::string random_bytes(size_t count) {
    std::string bytes(count, '\0');
    const ssize_t got = ::getrandom(bytes.data(), count, 0);
    require(got == static_cast<ssize_t>(count), "getrandom: ", std::strerror(errno));
    return bytes;
}

TrustedSocket::TrustedSocket(TcpSocket socket, Side side, std::string token, Deadline deadline)
    : socket_(std::move(socket)), side_(side), token_(std::move(token)) {
    const std::string own = random_bytes(kRandom);
    socket_.send(bytes_of(std::string(kGreeting) + own), deadline);
    require(receive_text(socket_, kGreeting.size(), deadline) == kGreeting,
            "not a process of a rendezvous");
    const std::string other = receive_text(socket_, kRandom, deadline);
    random_ = side == Side::caller ? own + other : other + own;
}

void TrustedSocket::send(const std::string& text, Deadline deadline) {
    require(text.size() <= kLongest, "internal error: a message of ", text.size(), " bytes");
    const auto size = static_cast<uint32_t>(text.size());
    const Mac mac = mac_of(side_, sent_++, text);
    std::string all(sizeof size + mac.size(), '\0');
    for (size_t i = 0; i < sizeof size; ++i) all[i] = static_cast<char>(size >> 8 * i & 255);
    std::memcpy(all.data() + sizeof size, mac.data(), mac.size());
    socket_.send(bytes_of(all + text), deadline);
}

std::string TrustedSocket::receive(Deadline deadline) {
    const std::string digits = receive_text(socket_, sizeof(uint32_t), deadline);
    uint32_t size = 0;
    for (size_t i = 0; i < sizeof size; ++i)
        size |= static_cast<uint32_t>(static_cast<unsigned char>(digits[i])) << 8 * i;
    require(size <= kLongest, "not a process of a rendezvous");
    Mac mac;
    socket_.receive(mac, deadline);
    const std::string text = receive_text(socket_, size, deadline);
    const Side sender = side_ == Side::caller ? Side::listener : Side::caller;
    const Mac expected = mac_of(sender, received_++, text);
    if (::CRYPTO_memcmp(mac.data(), expected.data(), mac.size()) != 0) {
        if (side_ == Side::listener) send("", deadline);  // the caller's receive() throws it too
        throw WrongToken("the token is another one");
    }
    return text;
}

TrustedSocket::Mac TrustedSocket::mac_of(Side sender, unsigned number,
                                         const std::string& text) const {
    const std::string all = concat(random_, static_cast<char>(sender), number, ' ', text);
    Mac mac;
    unsigned size = 0;
    require(::HMAC(::EVP_sha256(), token_.data(), static_cast<int>(token_.size()),
                   reinterpret_cast<const unsigned char*>(all.data()), all.size(),
                   reinterpret_cast<unsigned char*>(mac.data()), &size) != nullptr &&
                size == mac.size(),
            "internal error: HMAC");
    return mac;
}

}  // namespace hark
