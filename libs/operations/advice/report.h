// What hark-advise writes: tables, or JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/json/json.h"
#include "operations/advice/advice.h"
#include "operations/advice/prices.h"
#include "operations/advice/proof.h"

namespace hark::advice {

// A GPU of --compare; without a prediction the model does not fit.
struct Offer {
    Machine machine;
    std::optional<Prediction> prediction;  // of the fastest batch of `auto`, or of what fits
};

struct Report {
    const Shape& shape;
    Analysis analysis;
    double audio_hours = 1000;  // that costs are of; of a language model a million tokens
    std::string prices;         // where they are from; empty: the machine has none
    std::vector<Offer> offers;  // the cheapest first
    std::optional<Proof> proof;
};

// What the report's amount of work costs.
struct Cost {
    double seconds = 0;
    std::optional<double> dollars, joules;
};
Cost cost_of(const Report& report, const Machine& machine, double speed);

// The model on every known GPU with a price; those without one come last, the fastest first.
std::vector<Offer> compare(const Shape& shape, const Load& load, const Prices& prices);

std::string as_text(const Report& report);
nlohmann::ordered_json as_json(const Report& report);

}  // namespace hark::advice
