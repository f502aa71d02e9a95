// The processes of a training run: who starts them, and what they must agree on.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "gpt/train/train_options.h"
#include "kernels/comm/communicator.h"

namespace hark::gpt {

// Calls `body` in each of the run's processes with its links: those of a launcher, or those started
// here for --gpus; none if the process is alone. An Error of one of several names its rank. Throws
// as mpi_transport() and spawn_local_ranks() do, and Error if both are asked for.
void with_links(const TrainOptions& options, Console& console,
                const std::function<void(std::unique_ptr<Transport>)>& body);

// The context of the process that has these links (none: it is alone).
Context context_of(const TrainOptions& options, Console& console, const Transport* links);

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

// Throws Error unless `facts` are those of rank 0: ranks on several machines must find the same
// files.
void expect_agreement(Communicator& ranks, const std::string& facts);

}  // namespace hark::gpt
