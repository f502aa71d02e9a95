// The processes of a run that several compute together: who starts them, what each computes on, and
// what they must agree on.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "core/cli/cli.h"
#include "kernels/comm/communicator.h"
#include "kernels/runtime/backend.h"

namespace hark {

// Calls `body` in each of the run's processes with its links: those of a launcher, those started
// here for --gpus `gpus`, or those that `meet` returns, if it is given; none if the process is
// alone. Only the first one's console says anything: all would say the same. An Error that ends one
// of several names its rank. Throws as mpi_transport(), spawn_local_ranks() and `meet` do, and
// Error if both of the first are asked for.
void with_links(int64_t gpus, Console& console,
                const std::function<void(std::unique_ptr<Transport>)>& body,
                const std::function<std::unique_ptr<Transport>()>& meet = nullptr);

// The context of the process that has these links (none: it is alone), for the same `gpus`.
Context context_of(int64_t gpus, const ComputeOptions& compute, Console& console,
                   const Transport* links);

// Throws UsageError if --gpus does not go with --device.
void check_gpus(int64_t gpus, const ComputeOptions& compute);

// Throws Error unless `facts` are those of rank 0: ranks on several machines must find the same
// files and options.
void expect_agreement(Communicator& ranks, const std::string& facts);

// The parts in which two lists "a 1, b 2" differ; all parts if their lengths differ.
std::pair<std::string, std::string> differences(const std::string& a, const std::string& b);

}  // namespace hark
