// A tensor-parallel rank's slice of a model's parameters, and of tensors with their layout; files
// have the full ones.
#pragma once

#include <functional>
#include <vector>

#include "gpt/train/parameters.h"
#include "kernels/comm/communicator.h"

namespace hark::gpt {

class Shard {
  public:
    // The slice of one of `tensor`'s ranks; `tensor` must outlive it. Throws Error if the ranks do
    // not divide the model's heads and its MLP's channels.
    Shard(const DecoderConfig& config, Communicator& tensor);

    const ParameterLayout& full() const { return full_; }
    const ParameterLayout& local() const { return local_; }

    // Fills `to`, on the context's device, with the elements `ranges` of this rank's slice, one
    // range after another; elements after local().size() are zeros. `write` fills full().size()
    // floats on the host.
    void fill(Context& ctx, const Tensor& to, const std::vector<Range>& ranges,
              const std::function<void(Tensor)>& write) const;
    // part = this rank's slice (local().size()) of `full` (full().size()); f32, on the host.
    void slice(Tensor part, const Tensor& full) const;
    // The full tensor, on the first rank's host, of the ranks' slices on their devices; none on
    // other ranks. All ranks must call it. The result is valid as long as to_host()'s.
    Tensor gather(Context& ctx, const Tensor& part) const;

  private:
    // Calls move(offset in full, offset in local, floats) for each run of rank `rank`.
    template <class Move>
    void each_run(int rank, const Move& move) const;

    Communicator& tensor_;
    ParameterLayout full_, local_;
};

}  // namespace hark::gpt
