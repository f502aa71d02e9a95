// Copies of host tensors to a GPU, on a stream of their own, so that they overlap with the launches
// before them.
#pragma once

#include <array>
#include <memory>

#include "core/context.h"

namespace hark {

class UploadAhead {
  public:
    // Of tensors of up to `bytes` bytes.
    UploadAhead(const Context& ctx, int64_t bytes);

    // A copy for launches on the stream of `ctx` until the next call. It does not wait for those
    // since the call before. The host's memory must be pinned, and can be reused once a later
    // result has come back from that stream. On the CPU it is `host` itself.
    Tensor operator()(Context& ctx, const Tensor& host);

  private:
    std::shared_ptr<void> stream_;  // a GPU's
    Context side_;
    Arena memory_;
    std::array<Tensor, 2> buffers_;
    size_t turn_ = 0;
};

}  // namespace hark
