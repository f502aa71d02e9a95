// What would make a model faster on a machine, and by how much: at most three sentences.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operations/advice/prediction.h"

namespace hark::advice {

// How a model is run.
struct Choice {
    std::string type = "auto";
    int64_t batch = 0;
};

struct Advice {
    std::string text;            // "--batch-size 128 instead of 32"
    std::optional<double> gain;  // times the speed without it; none: it does not fit without it
};

// Everything that is predicted of a model on a machine.
struct Analysis {
    Machine machine;
    Load load;
    std::vector<Memory> memories;         // by type
    std::vector<Prediction> predictions;  // by type, then by batch
    // Without flags; the fastest; the fastest that flags alone choose. batch 0: it does not fit.
    Choice standard, best, best_flags;
    std::vector<Advice> advice;  // the largest gain first

    const Prediction* find(const Choice& choice) const;  // nullptr: not predicted
    const Prediction& of(const Choice& choice) const;    // throws Error if there is none
};

// The default batch, or else the smallest one, that is nearly as fast as the type's fastest; batch
// 0: the type does not fit.
Choice fastest_batch(const Analysis& analysis, const std::string& type);

Analysis analyse(const Machine& machine, const Shape& shape, const Load& load);

// A type as a user sets it: "--dtype int8", "hark model convert ... --type q8_0".
std::string type_flag(const std::string& type);
bool is_file_type(const std::string& type);  // a conversion's, not --dtype's

}  // namespace hark::advice
