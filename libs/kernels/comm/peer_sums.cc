#include "kernels/comm/peer_sums.h"

#include <span>

#include "core/profile/process_info.h"
#include "kernels/comm/communicator.h"
#include "kernels/runtime/cuda_library.h"

namespace hark {
namespace {

// Linux's id of this start of the machine, which its containers share; empty if it has none.
std::array<char, 40> machine_id() {
    std::array<char, 40> id{};
    boot_id().copy(id.data(), id.size() - 1);
    return id;
}

}  // namespace

const CudaPeers& cuda_peers() {
    static const CudaPeers* peers =
        reinterpret_cast<const CudaPeers* (*)()>(cuda_symbol("hark_cuda_peers"))();
    return *peers;
}

PeerSums::PeerSums(Context& ctx, const Communicator& ranks)
    : context_(ctx.handles),
      pinned_(ctx.host_arena.source()),
      stop_(pinned_.tensor(Dtype::i32, {1}).as<int32_t>()),
      opened_(static_cast<size_t>(ranks.size())),
      own_(cuda_peers().make_memory(ctx, ranks.size())) {
    *stop_ = 0;
    peers_.rank = ranks.rank(), peers_.size = ranks.size();
    peers_.memory[ranks.rank()] = static_cast<std::byte*>(own_.get());
    peers_.stop = stop_;
}

// Not std::atomic_ref, which emscripten's library lacks.
PeerSums::~PeerSums() { __atomic_store_n(stop_, 1, __ATOMIC_SEQ_CST); }

bool PeerSums::belongs_to(const Context& ctx) const {
    return !context_.owner_before(ctx.handles) && !ctx.handles.owner_before(context_);
}

std::unique_ptr<PeerSums> PeerSums::connect(Context& ctx, Communicator& ranks) {
    if (ranks.size() > kMostPeers) return nullptr;
    std::unique_ptr<PeerSums> made(new PeerSums(ctx, ranks));
    std::vector<PeerAddress> addresses(static_cast<size_t>(ranks.size()));
    const auto own = static_cast<size_t>(ranks.rank());
    addresses[own].machine = machine_id();
    cuda_peers().find(ctx, made->own_.get(), addresses[own]);
    for (size_t r = 0; r < addresses.size(); ++r)
        ranks.share(std::as_writable_bytes(std::span(&addresses[r], 1)), static_cast<int>(r));
    bool all = true;
    for (size_t r = 0; r < addresses.size(); ++r) {
        if (r == own) continue;
        if (addresses[r].machine == addresses[own].machine && addresses[r].machine[0] != 0)
            made->opened_[r] = cuda_peers().open(ctx, addresses[r]);
        made->peers_.memory[r] = static_cast<std::byte*>(made->opened_[r].get());
        all = all && made->opened_[r];
    }
    return ranks.least(all ? 1 : 0) > 0 ? std::move(made) : nullptr;
}

}  // namespace hark
