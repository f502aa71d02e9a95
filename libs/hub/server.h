// The server that models are fetched from, and the user's token for it.
#pragma once

#include <string>

#include "hub/download.h"

namespace hark::models {

inline constexpr const char* kHuggingFace = "https://huggingface.co";

struct Server {
    std::string url;           // without a slash at its end
    std::string token;         // empty: requests have none
    bool takes_token = false;  // of the user, if there is one
    // The address of one more page or file: path begins with a slash.
    std::string at(const std::string& path) const { return url + path; }
    // Gives the token to the downloader.
    void authorize(Downloader& downloader) const;
};

// Returns the server at `from`; if that is empty the one at $HF_ENDPOINT, else Hugging Face. The
// token is $HF_TOKEN, else what is in the file $HF_TOKEN_PATH, else $HF_HOME/token, else
// ~/.cache/huggingface/token. Only the server of $HF_ENDPOINT or Hugging Face itself has it: a
// `from` at another address has none. Throws UsageError for a `from` that is no http or https
// address, Error for another $HF_ENDPOINT than https or this machine itself, and for a token or
// file that is none; no message has the token.
// Source: huggingface_hub's constants.py and utils/_auth.py.
Server hub_server(const std::string& from);

}  // namespace hark::models
