#include "whisper/model/alignment_heads.h"

#include <algorithm>
#include <sstream>

#include "core/error.h"
#include "core/json/json.h"

namespace hark::whisper {
namespace {

using nlohmann::json;

struct Official {
    int64_t state, layers, vocab;  // of the decoder; together they identify a model
    const char* heads;             // layer:head
};

constexpr Official kOfficial[] = {
    // tiny.en, tiny
    {384, 4, 51864, "1:0 2:0 2:5 3:0 3:1 3:2 3:3 3:4"},
    {384, 4, 51865, "2:2 3:0 3:2 3:3 3:4 3:5"},
    // base.en, base
    {512, 6, 51864, "3:3 4:7 5:1 5:5 5:7"},
    {512, 6, 51865, "3:1 4:2 4:3 4:7 5:1 5:2 5:4 5:6"},
    // small.en, small
    {768, 12, 51864,
     "6:6 7:0 7:3 7:8 8:2 8:5 8:7 9:0 9:4 9:8 9:10 10:0 10:1 10:2 10:3 10:6 10:11 11:2 11:4"},
    {768, 12, 51865, "5:3 5:9 8:0 8:4 8:7 8:8 9:0 9:7 9:9 10:5"},
    // medium.en, medium
    {1024, 24, 51864,
     "11:4 14:1 14:12 14:14 15:4 16:0 16:4 16:9 17:12 17:14 18:7 18:10 18:15 20:0 20:3 20:9 20:14 "
     "21:12"},
    {1024, 24, 51865, "13:15 15:4 15:15 16:1 20:0 23:4"},
    // large-v2, large-v3, turbo
    {1280, 32, 51865,
     "10:12 13:17 16:11 16:12 16:13 17:15 17:16 18:4 18:11 18:19 19:11 21:2 21:3 22:3 22:9 22:12 "
     "23:5 23:7 23:13 25:5 26:1 26:12 27:15"},
    {1280, 32, 51866, "7:0 10:17 12:18 13:12 16:1 17:14 19:11 21:4 24:1 25:6"},
    {1280, 4, 51866, "2:4 2:11 3:3 3:6 3:11 3:14"},
};

std::vector<AlignmentHead> parse(const char* text) {
    std::istringstream in(text);
    std::vector<AlignmentHead> heads;
    AlignmentHead head;
    for (char colon; in >> head.layer >> colon >> head.head;) heads.push_back(head);
    return heads;
}

}  // namespace

std::vector<AlignmentHead> default_alignment_heads(const Config& config) {
    for (const Official& official : kOfficial)
        if (config.n_text_state == official.state && config.n_text_layer == official.layers &&
            config.n_vocab == official.vocab)
            return parse(official.heads);
    std::vector<AlignmentHead> heads;
    for (int64_t layer = config.n_text_layer / 2; layer < config.n_text_layer; ++layer)
        for (int64_t head = 0; head < config.n_text_head; ++head)
            heads.push_back({static_cast<int32_t>(layer), static_cast<int32_t>(head)});
    return heads;
}

std::vector<AlignmentHead> parse_alignment_heads(const std::string& generation_json,
                                                 const Config& config, const std::string& where) {
    const json root = parse_json(generation_json, where);
    require(root.is_object(), where, ": expected a JSON object");
    const json pairs = root.value("alignment_heads", json());
    if (pairs.is_null() || pairs == json::array()) return default_alignment_heads(config);
    require(pairs.is_array(), where, ": 'alignment_heads': expected a list, found ", pairs.dump());
    std::vector<AlignmentHead> heads;
    for (const json& pair : pairs) {
        const bool whole = pair.is_array() && pair.size() == 2 && pair[0].is_number_integer() &&
                           pair[1].is_number_integer();
        const int64_t layer = whole ? pair[0].get<int64_t>() : -1;
        const int64_t head = whole ? pair[1].get<int64_t>() : -1;
        require(0 <= layer && layer < config.n_text_layer && 0 <= head && head < config.n_text_head,
                where, ": 'alignment_heads': expected pairs of a layer below ", config.n_text_layer,
                " and a head below ", config.n_text_head, ", found ", pair.dump());
        heads.push_back({static_cast<int32_t>(layer), static_cast<int32_t>(head)});
    }
    std::sort(heads.begin(), heads.end());
    heads.erase(std::unique(heads.begin(), heads.end()), heads.end());
    return heads;
}

}  // namespace hark::whisper
