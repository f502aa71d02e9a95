// The page at "/" and its style and scripts, which are in the program.
#pragma once

#include <string>

#include "serve/web/message.h"

namespace hark::serve {

// The file at that path: "/" or "/page/NAME". Its headers keep the page from requests to others,
// and others from showing it as part of theirs. Throws WebError 404.
WebResponse page_file(const std::string& path);

}  // namespace hark::serve
