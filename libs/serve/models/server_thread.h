// How what the models' threads tell reaches the server's thread.
#pragma once

#include <functional>
#include <string>

namespace hark::serve {

// As ModelPoolOptions and TextService have it.
struct ServerThread {
    std::function<void(std::function<void()>)> post;
    std::function<void(double seconds, std::function<void()>)> post_later;
    std::function<void(const std::string&)> broken;
};

}  // namespace hark::serve
