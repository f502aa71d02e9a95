// The fields of a request's JSON object.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/json/json.h"
#include "serve/web/web_error.h"

namespace hark::serve {

// Every error is a WebError 400 that names the field. A field that is null is not there.
class Fields {
  public:
    // Throws if the text is not a JSON object.
    explicit Fields(const std::string& body);

    // nullptr if there is none.
    const nlohmann::ordered_json* find(const char* name);
    bool flag(const char* name, bool otherwise);
    // Throws if there is none and `otherwise` is nullptr.
    std::string text(const char* name, const char* otherwise = nullptr);
    std::optional<int64_t> whole(const char* name, int64_t min, int64_t max);
    // The fields of these names are known: somebody else reads them, or they change nothing.
    void know(std::initializer_list<const char*> names);
    // Throws if there is a field that nobody has asked for: it may change what is meant.
    void check_known() const;
    // All that was sent.
    const nlohmann::ordered_json& object() const { return object_; }

  private:
    nlohmann::ordered_json object_;
    std::set<std::string, std::less<>> known_;
};

[[noreturn]] void refuse_field(const std::string& name, const std::string& why);

}  // namespace hark::serve
