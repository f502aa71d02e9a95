// Communicator between GPUs.
#include <array>

#include "kernels/comm/communicator.h"
#include "kernels/comm/nccl_library.h"
#include "kernels/comm/peer_sums.h"
#include "kernels/runtime/plugin.h"

namespace hark {
namespace {

const NcclOps& nccl_ops() {
    static const Plugin kLibrary(
        {.file = "libhark-nccl.so",
         .abi_name = "hark_nccl_abi",
         .abi = kNcclAbi,
         .without = "several GPUs cannot be used",
         .built = "it is built where CUDA's compiler nvcc and NCCL are installed",
         .needs = "NCCL's library must be installed where the loader finds it"});
    static const NcclOps* ops = kLibrary.symbol<const NcclOps* (*)()>("hark_nccl_ops")();
    return *ops;
}

// Larger sums are NCCL's if their order does not matter.
constexpr size_t kMostPeerBytes = size_t{16} << 20;

class NcclRanks : public Communicator {
  public:
    NcclRanks(Context& ctx, std::unique_ptr<Transport> linked) : Communicator(std::move(linked)) {
        std::array<std::byte, kNcclIdBytes> id{};
        if (first()) nccl_ops().make_id(id.data());
        share(id, 0);
        communicator_ = nccl_ops().connect(id.data(), rank(), size(), ctx.device_index);
        if (auto sums = PeerSums::connect(ctx, *this)) peer_sums_.push_back(std::move(sums));
    }

    bool has_independent_sums() const override { return size() <= 2 || !peer_sums_.empty(); }

  private:
    void do_all_reduce(Context& ctx, Tensor x) override {
        if (PeerSums* sums = peer_sums(ctx, x)) return sums->all_reduce(ctx, x);
        nccl_ops().all_reduce(communicator_.get(), ctx.stream, x.data, elements(x), x.dtype);
    }
    void do_reduce_scatter(Context& ctx, Tensor x) override {
        nccl_ops().reduce_scatter(communicator_.get(), ctx.stream, x.as<float>(), elements(x));
    }
    void do_all_gather(Context& ctx, Tensor x) override {
        nccl_ops().all_gather(communicator_.get(), ctx.stream, static_cast<std::byte*>(x.data),
                              own_part(x).bytes());
    }
    void do_broadcast(Context& ctx, Tensor x, int root) override {
        nccl_ops().broadcast(communicator_.get(), ctx.stream, static_cast<std::byte*>(x.data),
                             x.bytes(), root);
    }
    static size_t elements(const Tensor& x) { return static_cast<size_t>(x.size()); }

    // What adds x up on the context's stream; nullptr: NCCL.
    PeerSums* peer_sums(Context& ctx, const Tensor& x) {
        const bool fits = x.bytes() <= kMostPeerBytes || (size() > 2 && ctx.has_independent_rows());
        const bool aligned = reinterpret_cast<uintptr_t>(x.data) % 16 == 0;
        // A side stream has no handles.
        if (peer_sums_.empty() || !fits || !aligned || !ctx.handles) return nullptr;
        for (const auto& sums : peer_sums_)
            if (sums->belongs_to(ctx)) return sums.get();
        // All ranks' contexts come and go in the same order.
        peer_sums_.push_back(PeerSums::connect(ctx, *this));
        require(peer_sums_.back() != nullptr, "the GPUs' memory cannot be shared any more");
        return peer_sums_.back().get();
    }

    std::shared_ptr<void> communicator_;
    std::vector<std::unique_ptr<PeerSums>> peer_sums_;  // per context; empty: NCCL has all sums
};

}  // namespace

std::unique_ptr<Communicator> nccl_communicator(Context& ctx, std::unique_ptr<Transport> links) {
    return std::make_unique<NcclRanks>(ctx, std::move(links));
}

}  // namespace hark
