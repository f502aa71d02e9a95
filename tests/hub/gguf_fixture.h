// A test that converts folders to GGUF.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "hub/convert.h"
#include "support/process.h"

namespace hark::models {

class GgufConversion : public testing::Test {
  protected:
    // The file that the folder becomes in `type`. Fails where the conversion has something to say.
    std::filesystem::path written(const std::filesystem::path& from, const std::string& type) {
        const std::filesystem::path path = directory_.path() / (type + ".gguf");
        std::filesystem::remove(path);
        convert_model(from, path, {"", type, ""}, [](const std::string&) { FAIL(); });
        return path;
    }
    test::TemporaryDirectory directory_;
};

}  // namespace hark::models
