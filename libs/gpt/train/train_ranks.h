// The processes of a training run: who starts them, and what they must agree on.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "gpt/train/train_options.h"
#include "kernels/comm/communicator.h"

namespace hark::gpt {

// Calls `body` in each of the run's processes with its links: those that a launcher has started, or
// those that are started here for --gpus; in this one with none where there are no others. An Error
// of one of several names its rank. Throws as mpi_transport and spawn_local_ranks do, and
// UsageError where both are asked for.
void with_links(const TrainOptions& options, Console& console,
                const std::function<void(std::unique_ptr<Transport>)>& body);

// The context of the process that has these links (none: it is alone).
Context context_of(const TrainOptions& options, Console& console, const Transport* links);

// The processes of a run in rows of `tensor` neighbours. Those of a row each have a part of the
// model and compute the same sequences together; those of a column have the same part and take
// turns at the sequences.
class Grid {
  public:
    // For all ranks to call, with the links to the others (none: it is alone). Throws UsageError
    // where `tensor` does not divide their number, Error where it is not the same on all.
    Grid(Context& ctx, std::unique_ptr<Transport> links, int64_t tensor);

    Communicator& all() { return *all_; }
    Communicator& tensor() { return tensor_ ? *tensor_ : alone_; }  // this rank's row
    Communicator& data() { return data_ ? *data_ : *all_; }         // this rank's column

  private:
    Communicator alone_;
    std::unique_ptr<Communicator> all_, tensor_, data_;  // the last two over the first
};

// Throws Error where `facts` are not those of rank 0: ranks on several machines must find the same
// files.
void expect_agreement(Communicator& ranks, const std::string& facts);

}  // namespace hark::gpt
