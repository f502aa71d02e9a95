// The command line of hark-advise.
#pragma once

#include <string>
#include <vector>

#include "core/cli/cli.h"
#include "operations/advice/report.h"

namespace hark::advice {

struct AdviseOptions {
    std::string model, gpu, prices, device = "auto", format = "text";
    int64_t threads = 0;
    double audio_hours = 1000;
    Load load;
    bool compare = false, run = false;
    std::vector<std::string> inputs;

    void flags(Flags& flags);
    void check() const;  // throws UsageError

    Prices price_list() const;
    // With the tokens of an answer. Throws Error if they do not fit into the model's context.
    Load load_of(const Shape& shape) const;
    // The GPU of --gpu, or this machine, measured. `ctx` is --device's, and is not used for a GPU
    // that is only named.
    Machine machine(Context* ctx, const Shape& shape, const Prices& prices) const;
};

}  // namespace hark::advice
