// The shapes of some published language models, for figures that need no weights.
#pragma once

#include <span>
#include <string_view>

namespace hark::gpt {

struct PublishedShape {
    const char* name;    // "llama-3.1-8b"
    const char* config;  // its config.json: the sizes and no more
};

std::span<const PublishedShape> published_shapes();
// nullptr if there is none of this name.
const PublishedShape* find_shape(std::string_view name);

}  // namespace hark::gpt
