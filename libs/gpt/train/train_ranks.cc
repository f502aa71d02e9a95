#include "gpt/train/train_ranks.h"

#include <utility>

#include "core/error.h"

namespace hark::gpt {

void with_links(const TrainOptions& options, Console& console,
                const std::function<void(std::unique_ptr<Transport>)>& body) {
    const int launched = launched_processes();
    require(options.gpus == 1 || launched == 1, "--gpus starts a process per GPU, but a launcher ",
            "has started ", launched, "; leave one of them out");
    std::unique_ptr<Transport> links;
    if (launched > 1) links = mpi_transport();
    if (options.gpus > 1) {
        links = spawn_local_ranks(static_cast<int>(options.gpus));
        if (!links) return;  // the parent: its ranks have ended
    }
    if (!links) return body(nullptr);
    const int rank = links->rank();
    if (rank > 0) console.quiet = true;  // all would print the same
    try {
        body(std::move(links));
    } catch (const UsageError&) {
        throw;
    } catch (const Error& error) {
        fail("rank ", rank, ": ", error.what());
    }
}

Context context_of(const TrainOptions& options, Console& console, const Transport* links) {
    if (links == nullptr) return options.compute.context(console);
    if (options.gpus == 1) return options.compute.context_at(links->local_rank());
    return make_cuda_context(links->rank(), options.compute.threads);
}

ParallelMesh::ParallelMesh(Context& ctx, std::unique_ptr<Transport> links, int64_t tensor)
    : all_(make_communicator(ctx, std::move(links))) {
    expect_agreement(*all_, concat("--tensor-parallel ", tensor));
    const auto size = static_cast<int>(tensor);
    require(all_->size() % size == 0, "--tensor-parallel: expected a divisor of the ", all_->size(),
            all_->size() == 1 ? " process" : " processes", ", got ", tensor,
            "; --gpus N, mpirun or srun starts several");
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

void expect_agreement(Communicator& ranks, const std::string& facts) {
    uint64_t size = facts.size();
    ranks.share(std::as_writable_bytes(std::span(&size, 1)), 0);
    std::string first = facts;
    first.resize(size);
    ranks.share(std::as_writable_bytes(std::span(first)), 0);
    const auto [expected, found] = differences(first, facts);
    require(facts == first, "the processes differ (rank 0 has ", expected, "; this one has ", found,
            "); start all of them with the same command and files");
}

}  // namespace hark::gpt
