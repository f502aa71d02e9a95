// One vector per text, from a language model's final norm.
#pragma once

#include "gpt/engine/model_rows.h"
#include "gpt/families/embedding_settings.h"

namespace hark::gpt {

struct EmbedOptions {
    Pooling pooling = Pooling::last_token;
    int64_t dimensions = 0;  // the first ones that are kept; 0: all
    bool normalize = true;   // to length 1, after that
};

class Embedder {
  public:
    // Throws Error for more dimensions than the model has. Holds references.
    Embedder(Context& ctx, const Model& model, const EmbedOptions& options);

    int64_t dimensions() const { return dimensions_; }
    // A vector per text of 1 token or more. Throws Error for a text that does not fit the model's
    // context, and for a model whose outputs are not finite.
    std::vector<std::vector<float>> operator()(std::span<const std::vector<int32_t>> texts);

  private:
    PackedRows pack(std::span<const std::vector<int32_t>> texts) const;
    std::vector<float> vector_of(const std::vector<double>& sum) const;

    Context& ctx_;
    ModelRows rows_;
    EmbedOptions options_;
    int64_t dimensions_;
};

}  // namespace hark::gpt
