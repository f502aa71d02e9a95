// The processes of a training run, in rows and columns.
#pragma once

#include <memory>

#include "kernels/comm/processes.h"

namespace hark::gpt {

// The processes of a run, data x tensor. A tensor group, `tensor` neighbours, computes the same
// sequences, each with its slice of the model. A data group has equal slices and takes turns at the
// sequences.
class ParallelMesh {
  public:
    // All ranks must call it, with the links to the others (none: it is alone). Throws Error if
    // `tensor` does not divide their number or is not equal on all.
    ParallelMesh(Context& ctx, std::unique_ptr<Transport> links, int64_t tensor);

    Communicator& all() { return *all_; }
    Communicator& tensor() { return tensor_ ? *tensor_ : alone_; }  // of this rank
    Communicator& data() { return data_ ? *data_ : *all_; }         // of this rank

  private:
    Communicator alone_;
    std::unique_ptr<Communicator> all_, tensor_, data_;  // the last two are groups of the first
};

}  // namespace hark::gpt
