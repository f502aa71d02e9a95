// A rank's part of a model's parameters, and of what is laid out like them, beside the whole that
// files hold.
#pragma once

#include <functional>
#include <vector>

#include "gpt/train/parameters.h"
#include "kernels/comm/communicator.h"

namespace hark::gpt {

class Shard {
  public:
    // Of one of `tensor`'s ranks, which must outlive it. Throws Error where these do not divide the
    // model's heads and its MLP's channels.
    Shard(const Config& config, Communicator& tensor);

    const ParameterLayout& whole() const { return whole_; }
    const ParameterLayout& own() const { return own_; }

    // Gives `to`, on the context's device, the elements `ranges`, one behind another, of this
    // rank's part of what `write` writes to whole().size() floats on the host; zeros for those
    // behind own().size().
    void fill(Context& ctx, const Tensor& to, const std::vector<Range>& ranges,
              const std::function<void(Tensor)>& write) const;
    // On the host, f32: this rank's part (own().size()) of `whole` (whole().size()).
    void cut(Tensor part, const Tensor& whole) const;
    // The whole, on the host, of the parts (own().size()) that the ranks have on their devices; on
    // other ranks than the first none. For all ranks to call. It stays as what to_host() gives.
    Tensor gather(Context& ctx, const Tensor& part) const;

  private:
    // move(of the whole, of the part, floats) for all that rank `rank` has.
    template <class Move>
    void each_run(int rank, const Move& move) const;

    Communicator& tensor_;
    ParameterLayout whole_, own_;
};

}  // namespace hark::gpt
