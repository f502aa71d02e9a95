#include "gpt/train/train_ranks.h"

#include <utility>

#include "core/error.h"

namespace hark::gpt {

ParallelMesh::ParallelMesh(Context& ctx, std::unique_ptr<Transport> links, int64_t tensor)
    : all_(make_communicator(ctx, std::move(links))) {
    expect_agreement(*all_, concat("--tensor-parallel ", tensor));
    const auto size = static_cast<int>(tensor);
    require(all_->size() % size == 0, "--tensor-parallel: expected a divisor of the ", all_->size(),
            all_->size() == 1 ? " process" : " processes", ", got ", tensor,
            "; --gpus N, mpirun, srun and --rendezvous have several");
    if (size == 1) return;
    const int own = all_->rank(), row = own / size * size;
    std::vector<int> neighbours, peers;
    for (int rank = 0; rank < all_->size(); ++rank) {
        if (rank / size * size == row) neighbours.push_back(rank);
        if (rank % size == own % size) peers.push_back(rank);
    }
    tensor_ = all_->group(ctx, neighbours);
    data_ = all_->group(ctx, peers);
}

}  // namespace hark::gpt
