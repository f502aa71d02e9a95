// Communicator: the processes that train one model together, and the collectives between them. They
// are called by all ranks, in the same order and with the same shapes. Without other processes they
// do nothing.
//
// The sums are the same bits run after run, and on all ranks. On the CPU each element is added up
// in the order of the ranks. NCCL's rings add in an order that the GPUs' places fix, so that the
// same GPUs give the same bits.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/context.h"
#include "core/tensor.h"
#include "kernels/comm/transport.h"

namespace hark {

class Communicator {
  public:
    Communicator();  // this process alone
    virtual ~Communicator();
    Communicator(const Communicator&) = delete;
    Communicator& operator=(const Communicator&) = delete;

    int rank() const { return links_ ? links_->rank() : 0; }
    int size() const { return links_ ? links_->size() : 1; }
    bool alone() const { return size() == 1; }
    bool first() const { return rank() == 0; }

    // A rank's part of x (n): elements [r n / size(), (r + 1) n / size()). Throws Error where n is
    // no multiple of size().
    Tensor part(const Tensor& x, int rank) const;
    Tensor own_part(const Tensor& x) const { return part(x, rank()); }

    // Of tensors on the context's device, behind what is on its stream; on a GPU they may be
    // recorded and need not be done when they return. x (n):
    // x f32 or bf16 = the sum of all ranks' x. On the CPU bf16 is added up in f32 and rounded once;
    // NCCL may round after each addition.
    void all_reduce(Context& ctx, Tensor x);
    // own_part(x) = that part of the sum of all ranks' x, f32. What the rest of x holds then is
    // open.
    void reduce_scatter(Context& ctx, Tensor x);
    // x = all ranks' own_part(x), laid end to end.
    void all_gather(Context& ctx, Tensor x);
    // x = that of rank `root`.
    void broadcast(Context& ctx, Tensor x, int root);

    // Of the host's memory, done when they return:
    // values = their sums over the ranks, added up in the ranks' order.
    void sum(std::span<double> values);
    double sum(double value);
    // bytes = those of rank `root`.
    void share(std::span<std::byte> bytes, int root);
    // Waits until all ranks have come here.
    void barrier();
    // To be called where the run has come to its end on all ranks (Transport::finish).
    void finish();

    // `members` of these ranks, in rising order, this one among them, as ranks of their own: for
    // all members to call. These must outlive them, and any two ranks must call both in the same
    // order.
    std::unique_ptr<Communicator> group(Context& ctx, const std::vector<int>& members);

  protected:
    explicit Communicator(std::unique_ptr<Transport> links);
    Transport& links() { return *links_; }

  private:
    virtual void do_all_reduce(Context& ctx, Tensor x);
    virtual void do_reduce_scatter(Context& ctx, Tensor x);
    virtual void do_all_gather(Context& ctx, Tensor x);
    virtual void do_broadcast(Context& ctx, Tensor x, int root);

    std::unique_ptr<Transport> links_;
};

// Communicator over `links` (none: this process alone), for tensors of the context's device: over
// the links themselves on the CPU, over NCCL between GPUs. Throws Error where the ranks' devices
// are not alike.
std::unique_ptr<Communicator> make_communicator(Context& ctx, std::unique_ptr<Transport> links);

// The two of them. NCCL comes with libhark-nccl.so, which is opened only here; throws Error where
// it is not available. `links` carry its id and the host's sums.
std::unique_ptr<Communicator> cpu_ranks(std::unique_ptr<Transport> links);
std::unique_ptr<Communicator> nccl_communicator(Context& ctx, std::unique_ptr<Transport> links);

}  // namespace hark
