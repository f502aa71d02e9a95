#include "gpt/embed/embedder.h"

#include <cmath>

#include "core/error.h"
#include "core/tensor_value.h"
#include "gpt/decoder/model.h"
#include "kernels/runtime/transfer.h"

namespace hark::gpt {

Embedder::Embedder(Context& ctx, const Model& model, const EmbedOptions& options)
    : ctx_(ctx),
      rows_(ctx, model),
      options_(options),
      dimensions_(options.dimensions > 0 ? options.dimensions : model.config.n_embd) {
    require(dimensions_ <= model.config.n_embd, "dimensions: the model has ", model.config.n_embd,
            " (got ", dimensions_, "); give fewer with --dimensions");
}

// Rows whose outputs make the text's vector have a target.
PackedRows Embedder::pack(std::span<const std::vector<int32_t>> texts) const {
    PackedRows rows;
    for (const std::vector<int32_t>& ids : texts) {
        require(!ids.empty(), "internal error: a text without tokens");
        for (size_t i = 0; i < ids.size(); ++i) {
            const bool wanted =
                options_.pooling == Pooling::mean ||
                (options_.pooling == Pooling::first_token ? i == 0 : i + 1 == ids.size());
            rows.push(ids[i], wanted ? 0 : -1);
        }
        rows.end_sequence();
    }
    return rows;
}

std::vector<std::vector<float>> Embedder::operator()(std::span<const std::vector<int32_t>> texts) {
    const PackedRows rows = pack(texts);
    std::vector<std::vector<double>> sums(texts.size());
    for (std::vector<double>& sum : sums) sum.resize(static_cast<size_t>(dimensions_), 0);
    std::vector<size_t> text_of_row;
    for (size_t i = 0; i < texts.size(); ++i)
        text_of_row.resize(text_of_row.size() + texts[i].size(), i);
    rows_.states(rows, [&](std::span<const int32_t> numbers, Tensor states) {
        const Tensor host = to_host(ctx_, states);
        for (size_t i = 0; i < numbers.size(); ++i) {
            std::vector<double>& sum = sums[text_of_row[static_cast<size_t>(numbers[i])]];
            const int64_t row = static_cast<int64_t>(i) * host.dim(1);
            for (int64_t c = 0; c < dimensions_; ++c)
                sum[static_cast<size_t>(c)] += value_at(host, row + c);
        }
    });
    std::vector<std::vector<float>> vectors;
    for (size_t i = 0; i < texts.size(); ++i) {
        const auto n = static_cast<double>(texts[i].size());
        if (options_.pooling == Pooling::mean)
            for (double& x : sums[i]) x /= n;
        vectors.push_back(vector_of(sums[i]));
    }
    return vectors;
}

std::vector<float> Embedder::vector_of(const std::vector<double>& sum) const {
    double squares = 0;
    for (const double x : sum) squares += x * x;
    require(std::isfinite(squares),
            "the model's outputs are not finite: its weights, or --dtype, "
            "do not fit");
    const double scale = options_.normalize && squares > 0 ? 1 / std::sqrt(squares) : 1;
    std::vector<float> vector;
    for (const double x : sum) vector.push_back(static_cast<float>(scale * x));
    return vector;
}

}  // namespace hark::gpt
