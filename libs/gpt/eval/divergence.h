// How far a model's distributions are from another's, over the same rows: those of its quantised
// form from the original's.
#pragma once

#include "gpt/engine/model_rows.h"
#include "gpt/eval/mean.h"

namespace hark::gpt {

struct Divergence {
    Mean divergence;  // Kullback-Leibler, in nats: sum of p (log p - log q), p the reference's
    double largest = 0;
    Mean changed;               // 1 where the likeliest token is another one
    Mean loss, reference_loss;  // -log of the target's probability, in nats
};

// Adds the rows whose target is not -1. Both models must have the vocabulary of the targets: of the
// longer table only the shorter's tokens are compared. Runs on the context of the models.
void add_divergence(Context& ctx, ModelRows& model, ModelRows& reference, const PackedRows& rows,
                    Divergence& sum);

}  // namespace hark::gpt
