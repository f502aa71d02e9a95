// The command line of hark-serve.
#pragma once

#include <string>
#include <vector>

#include "core/cli/cli.h"
#include "serve/api_options.h"
#include "serve/audio/audio_model_options.h"
#include "serve/text/text_model_options.h"
#include "serve/web/web_server.h"

namespace hark::serve {

struct ServeOptions {
    std::vector<std::string> models;
    bool only_named = false;       // requests may name no other models
    double keep_seconds = 300;     // for which other models stay that nobody uses
    double memory_fraction = 0.9;  // of the memory that is free at the start, for all models
    int64_t gpus = 1;              // processes that compute the language model
    std::string api_keys;          // file; empty: no key is needed
    int64_t port = 8080, most_waiting = 256, most_live = 4, most_request_mb = 16,
            most_upload_mb = 512;
    WebServerOptions web;
    TextModelOptions text;
    AudioModelOptions audio;
    ComputeOptions compute;

    void flags(Flags& flags);
    void check() const;  // throws UsageError
    // Takes the socket of a service manager, if one was passed, in place of host and port. Throws
    // Error as take_passed_socket() does, and if there is a --socket too.
    void take_passed();
    // Whether other machines may use the server without a key.
    bool is_open() const;
    WebServerOptions web_options() const;
    TextModelOptions text_options() const;
    AudioModelOptions audio_options() const;
    ApiOptions api_options() const;  // throws Error if the keys cannot be read

  private:
    void model_flags(Flags& flags);
    void address_flags(Flags& flags);
    void limit_flags(Flags& flags);
    void text_flags(Flags& flags);
};

}  // namespace hark::serve
