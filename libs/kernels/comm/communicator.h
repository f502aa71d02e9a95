// Communicator: the processes that compute or train one model together, and the collectives between
// them. All ranks call them in the same order and with the same shapes. A single process skips
// them.
//
// The sums have the same bits in every run and on all ranks: each element is added in the order of
// the ranks, or by NCCL's rings in an order that the GPUs' places fix.
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

    // A rank's part of x (n): elements [r n / size(), (r + 1) n / size()). Throws Error if n is not
    // a multiple of size().
    Tensor part(const Tensor& x, int rank) const;
    Tensor own_part(const Tensor& x) const { return part(x, rank()); }

    // Collectives on tensors of the context's device, in the order of its stream. On a GPU they can
    // be recorded and return before they are done. x (n):
    // x f32, f16 or bf16 = the sum of all ranks' x, added in f32 in the order of the ranks and
    // rounded once. NCCL, which has large sums and those of GPUs that cannot access one another's
    // memory, may add in another order and round after each addition.
    void all_reduce(Context& ctx, Tensor x);
    // Whether all_reduce() on a context with has_independent_rows() gives a row of x the same bits
    // whatever the other rows are.
    virtual bool has_independent_sums() const { return true; }
    // own_part(x) = that part of the sum of all ranks' x, f32. The rest of x is undefined
    // afterwards.
    void reduce_scatter(Context& ctx, Tensor x);
    // x = all ranks' own_part(x), in the order of the ranks.
    void all_gather(Context& ctx, Tensor x);
    // x = rank `root`'s x.
    void broadcast(Context& ctx, Tensor x, int root);

    // Collectives on host memory, done when they return:
    // values = their sums over the ranks, added in the order of the ranks.
    void sum(std::span<double> values);
    double sum(double value);
    // The smallest of the ranks' values.
    double least(double value);
    // bytes = rank `root`'s bytes.
    void share(std::span<std::byte> bytes, int root);
    // Waits until all ranks are here.
    void barrier();
    // Called by all ranks at the end of the run (Transport::finish).
    void finish();

    // Makes ranks of `members` of these, in rising order and with this one; all members call it.
    // These must outlive them, and any two ranks must call both in the same order.
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

// A process that computes alone.
Communicator& no_other_ranks();

// Communicator over `links` (none: this process alone), for tensors of the context's device: over
// the links on the CPU, over NCCL between GPUs. Throws Error if the ranks' kinds of device differ.
std::unique_ptr<Communicator> make_communicator(Context& ctx, std::unique_ptr<Transport> links);

// The two implementations. NCCL needs libhark-nccl.so, which is opened here; throws Error if it is
// not available. `links` carry NCCL's id and the sums of host memory.
std::unique_ptr<Communicator> cpu_ranks(std::unique_ptr<Transport> links);
std::unique_ptr<Communicator> nccl_communicator(Context& ctx, std::unique_ptr<Transport> links);

}  // namespace hark
