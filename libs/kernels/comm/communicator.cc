#include "kernels/comm/communicator.h"

#include <algorithm>

#include "core/error.h"
#include "core/half.h"
#include "kernels/checks.h"
#include "kernels/runtime/parallel.h"

namespace hark {
namespace {

// Elements per message: the buffers of the sums, one per rank, stay in the cache.
constexpr int64_t kAtOnce = 1 << 16;

std::span<std::byte> bytes_of(const Tensor& x) {
    return {static_cast<std::byte*>(x.data), x.bytes()};
}

template <class T>
std::span<T> slice(std::span<T> all, int64_t begin, int64_t end) {
    return all.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
}

// The pieces of n elements cut into `size` pieces; the last ones may be shorter or empty.
struct Pieces {
    int64_t n, size;
    int64_t begin(int64_t r) const { return std::min(n, r * ((n + size - 1) / size)); }
    int64_t end(int64_t r) const { return begin(r + 1); }
};

// In round k rank r sends to rank r + k and receives from rank r - k, so all links are used in both
// directions at once.
template <class Body>
void each_round(const Transport& links, const Body& body) {
    for (int k = 1; k < links.size(); ++k)
        body((links.rank() + k) % links.size(), (links.rank() + links.size() - k) % links.size());
}

// Piece r of `all` goes from rank r to all others.
void gather_pieces(Transport& links, std::span<std::byte> all, int64_t element, int64_t count) {
    const Pieces pieces = {count, links.size()};
    const auto piece = [&](int64_t r) {
        return slice(all, pieces.begin(r) * element, pieces.end(r) * element);
    };
    each_round(links, [&](int to, int from) {
        links.exchange(to, piece(links.rank()), from, piece(from));
    });
}

// A binomial tree: the number of ranks that have the bytes doubles per round.
void broadcast_bytes(Transport& links, std::span<std::byte> bytes, int root) {
    const int size = links.size(), place = (links.rank() - root + size) % size;
    const auto rank_at = [&](int p) { return (p + root) % size; };
    int round = 1;
    for (; round < size; round *= 2)
        if (place & round) {
            links.exchange(0, {}, rank_at(place - round), bytes);
            break;
        }
    for (round /= 2; round > 0; round /= 2)
        if (place + round < size) links.exchange(rank_at(place + round), bytes, 0, {});
}

class CpuRanks : public Communicator {
  public:
    explicit CpuRanks(std::unique_ptr<Transport> links) : Communicator(std::move(links)) {}

  private:
    // Both halves of the sum move each element over each link once, as a ring does, but always add
    // in the order of the ranks.
    void do_all_reduce(Context& ctx, Tensor x) override {
        if (x.dtype == Dtype::bf16)
            sum_pieces<bf16_t>(ctx, x, to_bf16);
        else if (x.dtype == Dtype::f16)
            sum_pieces<f16_t>(ctx, x, to_f16);
        else
            do_reduce_scatter(ctx, x);
        do_all_gather(ctx, x);
    }
    void do_reduce_scatter(Context& ctx, Tensor x) override {
        sum_pieces<float>(ctx, x, [](float sum) { return sum; });
    }
    void do_all_gather(Context&, Tensor x) override {
        gather_pieces(links(), bytes_of(x), static_cast<int64_t>(size_of(x.dtype)), x.size());
    }
    void do_broadcast(Context&, Tensor x, int root) override {
        broadcast_bytes(links(), bytes_of(x), root);
    }

    // Own piece of x = the sum of all ranks' piece in f32, converted to T by `rounded`.
    template <class T, class Rounded>
    void sum_pieces(Context& ctx, Tensor x, const Rounded& rounded) {
        const std::span<T> values(x.as<T>(), static_cast<size_t>(x.size()));
        const Pieces pieces = {x.size(), size()};
        received_.resize(static_cast<size_t>(size() * kAtOnce) * sizeof(T));
        const auto buffer = [&](int64_t r) {
            return reinterpret_cast<T*>(received_.data()) + r * kAtOnce;
        };
        const int64_t longest = pieces.end(0) - pieces.begin(0);
        for (int64_t done = 0; done < longest; done += kAtOnce) {
            const auto part = [&](int64_t r) {  // the part of rank r's piece that is added now
                const int64_t begin = std::min(pieces.end(r), pieces.begin(r) + done);
                return slice(values, begin, std::min(pieces.end(r), begin + kAtOnce));
            };
            const std::span<T> own = part(rank());
            each_round(links(), [&](int to, int from) {
                links().exchange(to, std::as_bytes(part(to)), from,
                                 std::as_writable_bytes(std::span(buffer(from), own.size())));
            });
            std::copy(own.begin(), own.end(), buffer(rank()));
            parallel_for(ctx.threads, std::ssize(own), [&](int64_t i) {
                float sum = to_float(buffer(0)[i]);
                for (int r = 1; r < size(); ++r) sum += to_float(buffer(r)[i]);
                own[static_cast<size_t>(i)] = rounded(sum);
            });
        }
    }

    std::vector<std::byte> received_;
};

}  // namespace

Communicator::Communicator() = default;
Communicator::Communicator(std::unique_ptr<Transport> links) : links_(std::move(links)) {}
Communicator::~Communicator() = default;

Tensor Communicator::part(const Tensor& x, int rank) const {
    require(x.rank == 1 && x.size() % size() == 0, "ranks: expected (n), n a multiple of ", size(),
            ", found ", x);
    const int64_t each = x.size() / size();
    return x.slice(rank * each, (rank + 1) * each);
}

void Communicator::all_reduce(Context& ctx, Tensor x) {
    require(is_float(x.dtype) && x.device == ctx.device,
            "all_reduce: expected f32, f16 or bf16 on the context's device, found ", x);
    if (!alone() && x.size() > 0) do_all_reduce(ctx, x);
}

void Communicator::reduce_scatter(Context& ctx, Tensor x) {
    require(x.dtype == Dtype::f32 && x.device == ctx.device,
            "reduce_scatter: expected f32 on the context's device, found ", x);
    own_part(x);  // checks x
    if (!alone() && x.size() > 0) do_reduce_scatter(ctx, x);
}

void Communicator::all_gather(Context& ctx, Tensor x) {
    require(x.device == ctx.device, "all_gather: expected a tensor on the context's device, found ",
            x);
    own_part(x);  // checks x
    if (!alone() && x.size() > 0) do_all_gather(ctx, x);
}

void Communicator::broadcast(Context& ctx, Tensor x, int root) {
    require(x.device == ctx.device && root >= 0 && root < size(),
            "broadcast: expected a tensor on the context's device and a rank below ", size(),
            ", found ", x, " and ", root);
    if (!alone() && x.size() > 0) do_broadcast(ctx, x, root);
}

void Communicator::sum(std::span<double> values) {
    if (alone() || values.empty()) return;
    const size_t n = values.size();
    std::vector<double> all(n * static_cast<size_t>(size()));
    std::copy(values.begin(), values.end(), all.begin() + static_cast<std::ptrdiff_t>(n) * rank());
    gather_pieces(*links_, std::as_writable_bytes(std::span(all)), sizeof(double), std::ssize(all));
    for (size_t i = 0; i < n; ++i) {
        values[i] = all[i];
        for (size_t at = i + n; at < all.size(); at += n) values[i] += all[at];
    }
}

double Communicator::sum(double value) {
    sum(std::span(&value, 1));
    return value;
}

double Communicator::least(double value) {
    std::vector<double> all(static_cast<size_t>(size()));
    all[static_cast<size_t>(rank())] = value;
    sum(all);
    return *std::min_element(all.begin(), all.end());
}

void Communicator::share(std::span<std::byte> bytes, int root) {
    if (!alone()) broadcast_bytes(*links_, bytes, root);
}

void Communicator::barrier() { sum(0); }

void Communicator::finish() {
    if (links_) links_->finish();
}

std::unique_ptr<Communicator> Communicator::group(Context& ctx, const std::vector<int>& members) {
    return make_communicator(ctx, links_ ? sub_transport(*links_, members) : nullptr);
}

// Not reached: without other ranks the public functions return before.
void Communicator::do_all_reduce(Context&, Tensor) {}
void Communicator::do_reduce_scatter(Context&, Tensor) {}
void Communicator::do_all_gather(Context&, Tensor) {}
void Communicator::do_broadcast(Context&, Tensor, int) {}

Communicator& no_other_ranks() {
    static Communicator alone;
    return alone;
}

std::unique_ptr<Communicator> cpu_ranks(std::unique_ptr<Transport> links) {
    return std::make_unique<CpuRanks>(std::move(links));
}

std::unique_ptr<Communicator> make_communicator(Context& ctx, std::unique_ptr<Transport> links) {
    if (!links || links->size() == 1) return std::make_unique<Communicator>();
    std::vector<std::byte> devices(static_cast<size_t>(links->size()));
    const auto own = static_cast<std::byte>(ctx.device);
    devices[static_cast<size_t>(links->rank())] = own;
    gather_pieces(*links, devices, 1, links->size());
    for (const std::byte device : devices)
        require(device == own,
                "some ranks compute on the CPU and some on a GPU: expected the same device on all");
    return ctx.on_cuda() ? nccl_communicator(ctx, std::move(links)) : cpu_ranks(std::move(links));
}

}  // namespace hark
