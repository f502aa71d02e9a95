// The installed models: whether each opens and has the files and sizes that it was downloaded with.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "operations/doctor/finding.h"

namespace hark::doctor {

struct ModelReading {
    std::string name;
    std::filesystem::path path;
    std::string problem;  // empty: whole as far as headers, sizes and the tokenizer tell
};

struct ModelsReading {
    std::vector<ModelReading> models;
    int defaults = 0;                             // links to a default that are set
    std::vector<std::filesystem::path> dangling;  // links to a default that lead nowhere
    std::vector<std::string> incomplete;          // names of downloads that have not ended
    std::filesystem::path largest;                // the longest file of a whole model; or empty
};
// Opens all models and the tokenizers of folders; the values of tensors are not read.
ModelsReading read_models();
// models.installed, models.whole (a finding for each model that is not), models.default,
// models.incomplete
void judge_models(const ModelsReading& reading, const Say& say);

}  // namespace hark::doctor
