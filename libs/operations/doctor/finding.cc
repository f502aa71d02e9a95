#include "operations/doctor/finding.h"

#include <cmath>
#include <cstdio>

#include "core/error.h"

namespace hark::doctor {
namespace {

constexpr const char* kStatusNames[] = {"ok", "warn", "fail", "skip"};

}  // namespace

const char* name_of(Status status) { return kStatusNames[static_cast<size_t>(status)]; }

Finding failure(const std::string& check, const std::string& message,
                const std::string& otherwise) {
    const size_t end = message.rfind("; ");
    if (end == message.npos) return {check, Status::fail, message, otherwise};
    return {check, Status::fail, message.substr(0, end), message.substr(end + 2)};
}

nlohmann::ordered_json to_json(const Finding& finding) {
    nlohmann::ordered_json json = {{"check", finding.check}, {"status", name_of(finding.status)},
                                   {"text", finding.text},   {"remedy", finding.remedy},
                                   {"value", nullptr},       {"unit", finding.unit}};
    if (finding.value) json["value"] = *finding.value;
    return json;
}

Finding finding_of(const nlohmann::ordered_json& json) {
    const auto text = [&](const char* key) {
        require(json.is_object() && json.contains(key) && json[key].is_string(),
                "expected a finding with the text '", key, "'");
        return json[key].get<std::string>();
    };
    Finding finding{.check = text("check"),
                    .text = text("text"),
                    .remedy = text("remedy"),
                    .unit = text("unit")};
    const std::string status = text("status");
    for (const Status one : {Status::ok, Status::warn, Status::fail, Status::skip})
        if (status == name_of(one)) finding.status = one;
    if (json.contains("value") && json["value"].is_number())
        finding.value = json["value"].get<double>();
    return finding;
}

std::string figure(double value) {
    char text[32];
    const double size = std::abs(value);
    const int digits = size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
    std::snprintf(text, sizeof text, "%.*f", digits, value);
    return text;
}

std::string size_text(double bytes) {
    return bytes < 1e9 ? figure(bytes * 1e-6) + " MB" : figure(bytes * 1e-9) + " GB";
}

}  // namespace hark::doctor
