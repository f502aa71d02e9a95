// Keys that requests must have.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace hark::serve {

class ApiKeys {
  public:
    // No key is needed.
    ApiKeys() = default;
    // The keys of a file, one per line; lines that are empty or begin with # are none. Throws Error
    // naming the file if it has no key.
    static ApiKeys read(const std::filesystem::path& file);

    // Whether the value of a header Authorization is "Bearer KEY". The time does not depend on
    // where a key differs.
    bool accept(std::string_view authorization) const;
    // Whether one of the subprotocols that a WebSocket offers is "hark-key.KEY", with %XX for what
    // no subprotocol may have: a browser's script can set no header Authorization.
    bool accept_any(const std::vector<std::string>& protocols) const;
    bool empty() const { return keys_.empty(); }  // no key is needed

  private:
    bool has(std::string_view sent) const;

    std::vector<std::string> keys_;
};

}  // namespace hark::serve
