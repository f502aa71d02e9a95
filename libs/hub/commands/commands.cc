#include "hub/commands/commands.h"

namespace hark::models {

const std::string& only_model(const std::vector<std::string>& names) {
    require_usage(names.size() == 1, names.empty() ? "a model is required" : "too many models",
                  " (got ", names.size(), " arguments)");
    require_usage(!names[0].empty(), "the model's name is empty");
    return names[0];
}

}  // namespace hark::models
