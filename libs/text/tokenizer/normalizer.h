// What a tokenizer does to a text before it is cut into words.
// Source: huggingface/tokenizers, tokenizers/src/normalizers.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/pattern.h"

namespace hark {

// Changes valid UTF-8, which stays valid.
using NormalizeStep = std::function<void(std::string& text)>;
using Normalizer = std::vector<NormalizeStep>;

// `text` with all steps applied.
std::string normalized(const Normalizer& normalizer, std::string_view text);

NormalizeStep nfc_step();
NormalizeStep nfd_step();
NormalizeStep nfkc_step();
NormalizeStep nfkd_step();
// Puts a text before what is not empty.
NormalizeStep prepend_step(std::string text);
// Each match of a pattern becomes `content`.
NormalizeStep replace_step(Pattern pattern, std::string content);
// Each character by itself, whatever is next to it.
NormalizeStep lowercase_step();
// Takes white space off the ends.
NormalizeStep strip_step(bool left, bool right);

}  // namespace hark
