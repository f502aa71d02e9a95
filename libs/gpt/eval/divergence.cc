#include "gpt/eval/divergence.h"

#include <algorithm>
#include <cmath>

#include "gpt/decoder/model.h"
#include "kernels/runtime/parallel.h"
#include "kernels/runtime/transfer.h"

namespace hark::gpt {
namespace {

// The final norm's outputs of all rows that have a target, on the host in their own type.
class KeptStates {
  public:
    KeptStates(Context& ctx, ModelRows& model, const PackedRows& rows) : model_(model.model()) {
        model.states(rows, [&](std::span<const int32_t> numbers, Tensor states) {
            const Tensor host = to_host(ctx, states);
            const auto* from = static_cast<const std::byte*>(host.data);
            bytes_.insert(bytes_.end(), from, from + host.bytes());
            dtype_ = host.dtype;
            rows_.insert(rows_.end(), numbers.begin(), numbers.end());
        });
    }
    // The logits (n, V) of [begin, end), on the host.
    Tensor logits(Context& ctx, int64_t begin, int64_t end) {
        const Tensor all(bytes_.data(), dtype_, {std::ssize(rows_), model_.config.n_embd});
        Tensor logits = ctx.arena.tensor(Dtype::f32, {end - begin, model_.config.n_vocab});
        model_.head(ctx, logits, to_device(ctx, all.slice(begin, end)));
        return to_host(ctx, logits);
    }
    const std::vector<int32_t>& rows() const { return rows_; }

  private:
    const Model& model_;
    std::vector<std::byte> bytes_;
    Dtype dtype_ = Dtype::f32;
    std::vector<int32_t> rows_;
};

struct Distribution {
    Distribution(const float* logits, int64_t n) : logits(logits) {
        const float* largest = std::max_element(logits, logits + n);
        best = largest - logits;
        double sum = 0;
        for (int64_t i = 0; i < n; ++i) sum += std::exp(double{logits[i]} - *largest);
        log_sum = std::log(sum) + *largest;
    }
    double log_probability(int64_t i) const { return double{logits[i]} - log_sum; }

    const float* logits;
    int64_t best;  // the first of the likeliest
    double log_sum;
};

double divergence(const Distribution& p, const Distribution& q, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) {
        const double log_p = p.log_probability(i);
        sum += std::exp(log_p) * (log_p - q.log_probability(i));
    }
    return sum;
}

struct RowDivergence {
    double divergence = 0, loss = 0, reference_loss = 0;
    bool changed = false;
};

}  // namespace

void add_divergence(Context& ctx, ModelRows& model, ModelRows& reference, const PackedRows& rows,
                    Divergence& sum) {
    KeptStates own(ctx, model, rows), other(ctx, reference, rows);
    const int64_t n = std::ssize(own.rows()),
                  vocabulary =
                      std::min(model.model().config.n_vocab, reference.model().config.n_vocab);
    const int64_t most = logits_at_once(ctx, vocabulary, n);
    for (int64_t begin = 0; begin < n; begin += most) {
        const Scratch scratch(ctx);
        const int64_t end = std::min(n, begin + most);
        const Tensor q = own.logits(ctx, begin, end), p = other.logits(ctx, begin, end);
        std::vector<RowDivergence> found(static_cast<size_t>(end - begin));
        parallel_for(ctx.threads, end - begin, [&](int64_t i) {
            const auto row = static_cast<size_t>(own.rows()[static_cast<size_t>(begin + i)]);
            const Distribution of_q(q.as<float>() + i * q.dim(1), vocabulary);
            const Distribution of_p(p.as<float>() + i * p.dim(1), vocabulary);
            found[static_cast<size_t>(i)] = {
                divergence(of_p, of_q, vocabulary), -of_q.log_probability(rows.targets[row]),
                -of_p.log_probability(rows.targets[row]), of_q.best != of_p.best};
        });
        for (const RowDivergence& row : found) {
            sum.divergence.add(row.divergence);
            sum.largest = std::max(sum.largest, row.divergence);
            sum.changed.add(row.changed);
            sum.loss.add(row.loss);
            sum.reference_loss.add(row.reference_loss);
        }
    }
}

}  // namespace hark::gpt
