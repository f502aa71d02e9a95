// The cases of JSON-Schema-Test-Suite for draft 2020-12, which are not committed:
// HARK_JSON_SCHEMA_SUITE names its folder. A schema may be refused, and a value that fits may have
// no text of the form that is written; but no text may be a value that does not fit.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "core/files/files.h"
#include "support/grammar_texts.h"

namespace hark::test {
namespace {

using nlohmann::ordered_json;

struct SuiteCounts {
    int schemas = 0, refused = 0, fitting = 0, written = 0, others = 0;
};

// Whether the grammar has a text of the value; of an object of few properties in any order.
bool has_text_of(GrammarTexts& texts, const ordered_json& value) {
    constexpr size_t kFew = 6;
    if (!value.is_object()) return texts.has(json_text(value));
    std::vector<std::string> names;
    for (const auto& item : value.items()) names.push_back(item.key());
    std::sort(names.begin(), names.end());
    do {
        ordered_json ordered = ordered_json::object();
        for (const std::string& name : names) ordered[name] = value[name];
        if (texts.has(json_text(ordered))) return true;
    } while (names.size() <= kFew && std::next_permutation(names.begin(), names.end()));
    return false;
}

void check_group(const ordered_json& group, SuiteCounts& counts) {
    const std::string schema = json_text(group["schema"]);
    ++counts.schemas;
    if (schema_error(schema) != "none") {
        ++counts.refused;
        return;
    }
    GrammarTexts texts = schema_texts(schema);
    for (const ordered_json& one : group["tests"]) {
        const bool fits = one["valid"].get<bool>(), has_text = has_text_of(texts, one["data"]);
        ++(fits ? counts.fitting : counts.others);
        if (fits) counts.written += has_text;
        EXPECT_TRUE(fits || !has_text) << schema << ": " << one["data"];
    }
}

}  // namespace

TEST(JsonSchemaSuite, NoTextIsAValueThatDoesNotFit) {
    const char* const suite = std::getenv("HARK_JSON_SCHEMA_SUITE");
    if (!suite) GTEST_SKIP() << "HARK_JSON_SCHEMA_SUITE names no folder of JSON-Schema-Test-Suite";
    SuiteCounts counts;
    const auto folder = std::filesystem::path(suite) / "tests/draft2020-12";
    for (const auto& file : std::filesystem::recursive_directory_iterator(folder)) {
        if (file.path().extension() != ".json") continue;
        SCOPED_TRACE(file.path());
        for (const ordered_json& group : ordered_json::parse(read_file(file.path())))
            check_group(group, counts);
    }
    std::printf("%d schemas, %d refused; %d values fit, %d of them have a text; %d do not fit\n",
                counts.schemas, counts.refused, counts.fitting, counts.written, counts.others);
    EXPECT_GT(counts.written, counts.fitting / 2);
}

}  // namespace hark::test
