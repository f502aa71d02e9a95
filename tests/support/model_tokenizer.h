// The small tokenizers of families in tests/golden/model_tokenizers/.
#pragma once

#include <string>

#include "core/json/json.h"
#include "support/process.h"
#include "text/tokenizer.h"

namespace hark::test {

inline Tokenizer model_tokenizer(const std::string& name) {
    const auto file = nlohmann::ordered_json::parse(
        read_text(source_dir() / "tests/golden/model_tokenizers" / (name + ".json")));
    return Tokenizer::parse_json(file["tokenizer"].dump(), file["config"].dump(), name);
}

}  // namespace hark::test
