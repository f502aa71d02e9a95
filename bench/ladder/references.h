// What the ladder's forms are checked against: sums in double of sampled rows, on the host. Each
// returns the largest error of a sampled value as a share of the largest sampled value.
#pragma once

#include <vector>

namespace hark::ladder {

using Values = std::vector<float>;

// y (m, n) of x (m, k) and w (n, k).
double product_error(const Values& y, const Values& x, const Values& w, int n, int k);
// out (heads, t, kHeadSize).
double attention_error(const Values& out, const Values& q, const Values& k, const Values& v, int t);
// y (rows, kNormWidth).
double norm_error(const Values& y, const Values& x, const Values& w, const Values& b);
// y (rows, kSoftmaxWidth).
double softmax_error(const Values& y, const Values& x);
// Of all values, not as a share.
double largest_difference(const Values& a, const Values& b);

}  // namespace hark::ladder
