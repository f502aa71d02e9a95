#include "ladder/references.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "ladder/ladder.h"

namespace hark::ladder {
namespace {

// The largest error and the largest value so far.
class Error {
  public:
    void add(float found, double expected) {
        const double error = std::abs(found - expected);
        // A comparison with no number is false: it must not pass.
        if (std::isnan(error) || error > error_) error_ = error;
        largest_ = std::max(largest_, std::abs(expected));
    }
    double share() const { return error_ / largest_; }

  private:
    double error_ = 0, largest_ = 0;
};

// About `samples` of `count`, the first and the last among them.
template <class Use>
void sample(int64_t count, int64_t samples, const Use& use) {
    const int64_t step = std::max<int64_t>((count - 1) / samples, 1) | 1;
    for (int64_t i = 0; i < count; i += step) use(i);
    use(count - 1);
}

const float* at(const Values& values, int64_t i) { return values.data() + i; }

}  // namespace

double product_error(const Values& y, const Values& x, const Values& w, int n, int k) {
    Error error;
    sample(std::ssize(y), 20000, [&](int64_t i) {
        const float *row = at(x, i / n * k), *weights = at(w, i % n * k);
        double sum = 0;
        for (int j = 0; j < k; ++j) sum += double{row[j]} * double{weights[j]};
        error.add(y[static_cast<size_t>(i)], sum);
    });
    return error.share();
}

double attention_error(const Values& out, const Values& q, const Values& k, const Values& v,
                       int t) {
    Error error;
    sample(std::ssize(out) / kHeadSize, 200, [&](int64_t row) {
        const int64_t head = row / t * t * kHeadSize;
        std::vector<double> weights(static_cast<size_t>(t)), sums(kHeadSize);
        double all = 0;
        for (int64_t key = 0; key < t; ++key) {
            double score = 0;
            for (int d = 0; d < kHeadSize; ++d)
                score += double{*at(q, row * kHeadSize + d)} *
                         double{*at(k, head + key * kHeadSize + d)};
            all += weights[static_cast<size_t>(key)] = std::exp(score / 8);
        }
        for (int64_t key = 0; key < t; ++key)
            for (int d = 0; d < kHeadSize; ++d)
                sums[static_cast<size_t>(d)] += weights[static_cast<size_t>(key)] / all *
                                                double{*at(v, head + key * kHeadSize + d)};
        for (int d = 0; d < kHeadSize; ++d)
            error.add(*at(out, row * kHeadSize + d), sums[static_cast<size_t>(d)]);
    });
    return error.share();
}

double norm_error(const Values& y, const Values& x, const Values& w, const Values& b) {
    Error error;
    sample(std::ssize(y) / kNormWidth, 500, [&](int64_t row) {
        const float* values = at(x, row * kNormWidth);
        double mean = 0, variance = 0;
        for (int i = 0; i < kNormWidth; ++i) mean += double{values[i]} / kNormWidth;
        for (int i = 0; i < kNormWidth; ++i) variance += std::pow(values[i] - mean, 2) / kNormWidth;
        for (int i = 0; i < kNormWidth; ++i)
            error.add(*at(y, row * kNormWidth + i),
                      (values[i] - mean) / std::sqrt(variance + 1e-5) * double{*at(w, i)} +
                          double{*at(b, i)});
    });
    return error.share();
}

double softmax_error(const Values& y, const Values& x) {
    Error error;
    sample(std::ssize(y) / kSoftmaxWidth, 500, [&](int64_t row) {
        const float* values = at(x, row * kSoftmaxWidth);
        double sum = 0;
        for (int i = 0; i < kSoftmaxWidth; ++i) sum += std::exp(double{values[i]});
        for (int i = 0; i < kSoftmaxWidth; ++i)
            error.add(*at(y, row * kSoftmaxWidth + i), std::exp(double{values[i]}) / sum);
    });
    return error.share();
}

double largest_difference(const Values& a, const Values& b) {
    double most = 0;
    for (size_t i = 0; i < a.size(); ++i) {
        const double difference = std::abs(double{a[i]} - double{b[i]});
        if (std::isnan(difference)) return difference;
        most = std::max(most, difference);
    }
    return most;
}

}  // namespace hark::ladder
