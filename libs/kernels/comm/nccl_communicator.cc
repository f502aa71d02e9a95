// Communicator between GPUs.
#include <array>

#include "kernels/comm/communicator.h"
#include "kernels/comm/nccl_library.h"
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

class NcclRanks : public Communicator {
  public:
    NcclRanks(Context& ctx, std::unique_ptr<Transport> linked) : Communicator(std::move(linked)) {
        std::array<std::byte, kNcclIdBytes> id{};
        if (first()) nccl_ops().make_id(id.data());
        share(id, 0);
        communicator_ = nccl_ops().connect(id.data(), rank(), size(), ctx.device_index);
    }

  private:
    void do_all_reduce(Context& ctx, Tensor x) override {
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

    std::shared_ptr<void> communicator_;
};

}  // namespace

std::unique_ptr<Communicator> nccl_communicator(Context& ctx, std::unique_ptr<Transport> links) {
    return std::make_unique<NcclRanks>(ctx, std::move(links));
}

}  // namespace hark
