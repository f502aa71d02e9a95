#include "kernels/comm/processes.h"

#include <algorithm>
#include <vector>

#include "core/error.h"

namespace hark {
namespace {

// All ranks but the first are silent, until what ends one of them is said.
class SilentRank {
  public:
    SilentRank(Console& console, int rank) : console_(console) {
        console.quiet = console.quiet || rank > 0;
        console.silent = rank > 0;
    }
    ~SilentRank() { console_.silent = false; }
    SilentRank(const SilentRank&) = delete;
    SilentRank& operator=(const SilentRank&) = delete;

  private:
    Console& console_;
};

// The first rank tells of the run: --stats and --metrics.
void tell_nothing(Console& console) {
    console.stats = false;
    console.metrics.clear();
}

// The links of one of `size` ranks; none in the process that has started them, once they have
// ended.
std::unique_ptr<Transport> started_ranks(int size, Console& console) {
    try {
        return spawn_local_ranks(size);
    } catch (const RanksFailed& why) {
        console.silent = why.alike;
        throw;
    }
}

}  // namespace

void with_links(int64_t gpus, Console& console,
                const std::function<void(std::unique_ptr<Transport>)>& body,
                const std::function<std::unique_ptr<Transport>()>& meet) {
    const int launched = meet ? 1 : launched_processes();
    require(gpus == 1 || launched == 1, "--gpus starts a process per GPU, but a launcher ",
            "has started ", launched, "; leave one of them out");
    std::unique_ptr<Transport> links;
    if (meet) links = meet();
    if (launched > 1) links = mpi_transport();
    if (gpus > 1) {
        links = started_ranks(static_cast<int>(gpus), console);
        if (!links) {
            tell_nothing(console);
            return;
        }
    }
    if (!links) return body(nullptr);
    const int rank = links->rank();
    const SilentRank silent(console, rank);
    if (rank > 0) tell_nothing(console);
    try {
        body(std::move(links));
    } catch (const UsageError&) {
        throw;
    } catch (const Error& error) {
        fail("rank ", rank, ": ", error.what());
    }
}

Context context_of(int64_t gpus, const ComputeOptions& compute, Console& console,
                   const Transport* links) {
    if (links == nullptr) return compute.context(console);
    if (gpus == 1) return compute.context_at(links->local_rank());
    return make_cuda_context(links->rank(), compute.threads);
}

void check_gpus(int64_t gpus, const ComputeOptions& compute) {
    require_usage(gpus == 1 || compute.device == "auto" || compute.device == "cuda",
                  "--gpus needs --device cuda (got ", compute.device, ")");
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

std::pair<std::string, std::string> differences(const std::string& a, const std::string& b) {
    const auto parts_of = [](const std::string& list) {
        std::vector<std::string> parts;
        for (size_t at = 0; at <= list.size();) {
            const size_t end = std::min(list.find(", ", at), list.size());
            parts.push_back(list.substr(at, end - at));
            at = end + 2;
        }
        return parts;
    };
    const std::vector<std::string> as = parts_of(a), bs = parts_of(b);
    if (as.size() != bs.size()) return {a, b};
    std::pair<std::string, std::string> apart;
    for (size_t i = 0; i < as.size(); ++i) {
        if (as[i] == bs[i]) continue;
        apart.first += concat(apart.first.empty() ? "" : ", ", as[i]);
        apart.second += concat(apart.second.empty() ? "" : ", ", bs[i]);
    }
    return apart;
}

}  // namespace hark
