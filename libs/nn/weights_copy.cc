// How weights reach a GPU.
#include <algorithm>
#include <utility>
#include <vector>

#include "core/files/mapped_file.h"
#include "nn/finite_weights.h"
#include "nn/weight_pieces.h"
#include "nn/weights.h"

namespace hark {
namespace {

// Bytes for a GPU that keep all threads busy: 28 to 36 GB/s, of 8 MB at a time 10.
constexpr size_t kCopiedAtOnce = size_t{256} << 20;

}  // namespace

// Checks and copies them, or lets them wait; those without a target are only checked.
void WeightStore::copy(const std::vector<Piece>& pieces) {
    if (gathers_) {
        waiting_.insert(waiting_.end(), pieces.begin(), pieces.end());
        for (const Piece& piece : pieces) waiting_bytes_ += piece.bytes;
        return;
    }
    for_pieces(threads_, std::ssize(pieces), [&](int64_t, int64_t i) {
        const Piece& piece = pieces[static_cast<size_t>(i)];
        if (piece.n > 0) check_finite(piece.from, piece.dtype, piece.n);
        if (piece.to) memory_.write(piece.to, piece.from, piece.bytes);
        // Here, since one thread takes 0.3 s to free 16 GB.
        if (piece.is_mapped) forget_pages(piece.from, piece.bytes);
    });
}

void WeightStore::copy_waiting() {
    gathers_ = false;
    waiting_bytes_ = 0;
    copy(std::exchange(waiting_, {}));
    for (const void* host : std::exchange(waiting_hosts_, {})) drop_host(host);
}

bool WeightStore::copy_enough() {
    if (waiting_bytes_ >= kCopiedAtOnce) {
        copy_waiting();
        gather();
    }
    return waiting_bytes_ == 0;
}

void WeightStore::drop_host(const void* data) {
    std::erase_if(blocks_, [&](const Block& block) { return block.get() == data; });
}

Tensor WeightStore::to_device(Tensor host) {
    if (!host || memory_.device == Device::cpu) return host;
    const Tensor device = take(memory_, host);
    const auto* from = static_cast<const std::byte*>(host.data);
    auto* to = static_cast<std::byte*>(device.data);
    const size_t bytes = host.bytes(), most = static_cast<size_t>(kPieceBytes);
    std::vector<Piece> pieces;
    for (size_t begin = 0; begin < bytes; begin += most)
        pieces.push_back({to + begin, from + begin, std::min(most, bytes - begin), host.dtype, 0});
    copy(pieces);
    if (gathers_)
        waiting_hosts_.push_back(host.data);
    else
        drop_host(host.data);
    std::erase_if(tensors_, [&](const Tensor& tensor) { return tensor.data == host.data; });
    bytes_ -= host.bytes();
    return device;
}

}  // namespace hark
