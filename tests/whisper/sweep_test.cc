// Options in pairs on the demo model against openai-whisper's own transcribe().
// Golden: tests/golden/whisper_sweep.py.
#include <algorithm>

#include "whisper/transcripts.h"

namespace hark::test {
namespace {

const json& sweep_all() {
    static const json kGolden = golden("whisper_sweep.json");
    return kGolden;
}

// Of the 60 recordings the 17 of one or two windows have every pair of two options' values, and
// nine longer ones 225 of the 267 pairs that longer ones have. All run where HARK_ALL_RECORDINGS is
// set, as tests/sanitize.sh does.
constexpr int kShort[] = {1001, 1017},
              kLonger[] = {1031, 1032, 1033, 1034, 1035, 1037, 1041, 1043, 1044};

bool is_chosen(int seed) {
    return (seed >= kShort[0] && seed <= kShort[1]) ||
           std::ranges::find(kLonger, seed) != std::end(kLonger);
}

std::vector<size_t> chosen() {
    std::vector<size_t> places;
    const json& recordings = sweep_all()["recordings"];
    for (size_t i = 0; i < recordings.size(); ++i)
        if (all_recordings() || is_chosen(recordings[i]["seed"])) places.push_back(i);
    return places;
}

class Sweep : public testing::TestWithParam<size_t> {};

TEST_P(Sweep, EqualsReferenceInF32) {
    const json& entry = sweep_all()["recordings"][GetParam()];
    const Outcome ours = run(in_its_language(entry), "f32", {0});
    const bool words = entry["options"].contains("word_timestamps");
    expect_same_recording(entry, ours, words ? kWordTimes : 1e-6);
    if (words) expect_same_words(entry, ours);
}

INSTANTIATE_TEST_SUITE_P(Golden, Sweep, testing::ValuesIn(chosen()), [](const auto& info) {
    return name_of_entry(sweep_all()["recordings"][info.param]);
});

}  // namespace
}  // namespace hark::test
