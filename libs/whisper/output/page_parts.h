// What the page of --format html and that of hark-serve share: files of page/.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace hark::whisper {

struct PageScript {
    std::string_view name, text;
};

// HTML of a transcript with its recording: within <main>, of which it takes the whole.
std::string_view page_recording();
std::string_view page_style();
// In this order: each uses those before it.
std::span<const PageScript> page_scripts();

// The page with part(name) in place of each {{name}}.
std::string filled_page(std::string_view page,
                        const std::function<std::string(std::string_view name)>& part);

}  // namespace hark::whisper
