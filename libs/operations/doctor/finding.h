// What hark-doctor says of one thing of this machine.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/json/json.h"

namespace hark::doctor {

// skip: the check was not made, and the text says why.
enum class Status { ok, warn, fail, skip };

const char* name_of(Status status);

struct Finding {
    std::string check;  // "cpu.cores"
    Status status = Status::ok;
    std::string text;             // what was found
    std::string remedy;           // what to do about it; empty if nothing is wrong
    std::optional<double> value;  // the figure of the text, if it has one
    std::string unit;             // of `value`
};

// Takes findings as they are made.
using Say = std::function<void(const Finding& finding)>;

// A failure whose text is an error's message. What follows the message's last "; " is the remedy,
// which is `otherwise` if it has none.
Finding failure(const std::string& check, const std::string& message,
                const std::string& otherwise = "");

// "check", "status", "text", "remedy", "value" (or null) and "unit".
nlohmann::ordered_json to_json(const Finding& finding);
// Throws Error if a key is missing.
Finding finding_of(const nlohmann::ordered_json& json);

// "14.2", "312", "0.42": three digits.
std::string figure(double value);
// Bytes as "312 MB", "14.2 GB".
std::string size_text(double bytes);

}  // namespace hark::doctor
