#include "kernels/comm/transport.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <utility>

#include "core/error.h"
#include "kernels/comm/mpi_library.h"
#include "kernels/runtime/plugin.h"

namespace hark {
namespace {

class GroupLinks : public Transport {
  public:
    GroupLinks(Transport& all, int rank, std::vector<int> members)
        : Transport(rank, static_cast<int>(members.size()), all.local_rank()),
          all_(all),
          members_(std::move(members)) {}

    void exchange(int to, std::span<const std::byte> out, int from,
                  std::span<std::byte> in) override {
        all_.exchange(at(to), out, at(from), in);
    }
    void finish() override {}

  private:
    int at(int rank) const { return members_[static_cast<size_t>(rank)]; }

    Transport& all_;
    std::vector<int> members_;
};

// The launcher's number in a variable; none if it is not set.
std::optional<int> number_in(const char* name) {
    const char* text = std::getenv(name);
    if (text == nullptr) return std::nullopt;
    int number = 0;
    const char* end = text + std::strlen(text);
    const auto [stop, error] = std::from_chars(text, end, number);
    require(error == std::errc() && stop == end && number >= 0, name,
            ": expected a launcher's number, found '", text, "'");
    return number;
}

}  // namespace

std::unique_ptr<Transport> sub_transport(Transport& all, std::vector<int> members) {
    const auto own = std::lower_bound(members.begin(), members.end(), all.rank());
    require(own != members.end() && *own == all.rank() && members.front() >= 0 &&
                members.back() < all.size() &&
                std::adjacent_find(members.begin(), members.end(), std::greater_equal<>()) ==
                    members.end(),
            "links: expected rising ranks below ", all.size(), " with rank ", all.rank(),
            " among them");
    const auto rank = static_cast<int>(own - members.begin());
    return std::make_unique<GroupLinks>(all, rank, std::move(members));
}

std::optional<Launched> launched_place() {
    constexpr std::pair<const char*, const char*> kNames[] = {
        {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
        {"PMI_RANK", "PMI_SIZE"},
        {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
        {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};
    for (const auto& [rank_name, size_name] : kNames) {
        const std::optional<int> size = number_in(size_name);
        if (!size) continue;
        const int rank = number_in(rank_name).value_or(0);
        require(rank < *size, rank_name, ": expected a number below ", *size, ", found ", rank);
        return Launched{rank, *size};
    }
    return std::nullopt;
}

int launched_processes() {
    const std::optional<Launched> launched = launched_place();
    return launched ? launched->size : 1;
}

std::unique_ptr<Transport> mpi_transport() {
    const Plugin library({.file = "libhark-mpi.so",
                          .abi_name = "hark_mpi_abi",
                          .abi = kMpiAbi,
                          .without = "a launcher has started several processes, which cannot be "
                                     "linked",
                          .built = "it is built where MPI (libopenmpi-dev) is installed",
                          .needs = "MPI's libraries must be installed where the loader finds them",
                          .global = true});
    std::unique_ptr<Transport> links(library.symbol<MpiLinks>("hark_mpi_links")());
    require(links->size() == launched_processes(), "the launcher has started ",
            launched_processes(), " processes, but MPI finds ", links->size(),
            ": libhark-mpi.so must be built with the launcher's MPI (srun may need --mpi=pmix, "
            "and gpt-train can do without it by --rendezvous)");
    return links;
}

}  // namespace hark
