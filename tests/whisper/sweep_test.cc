// Options in pairs on the demo model against openai-whisper's own transcribe().
// Golden: tests/golden/whisper_sweep.py.
#include <algorithm>
#include <cstdlib>

#include "whisper/transcripts.h"

namespace hark::test {
namespace {

const json& sweep_all() {
    static const json kGolden = golden("whisper_sweep.json");
    return kGolden;
}

// The other 37 have every pair of values twice: in a recording of one or two windows, and in a
// longer one. These 23 run too where HARK_ALL_RECORDINGS is set, as tests/sanitize.sh does.
constexpr int kRepeating[] = {1008, 1018, 1020, 1023, 1027, 1028, 1029, 1030,
                              1033, 1035, 1038, 1039, 1042, 1043, 1045, 1046,
                              1049, 1051, 1052, 1054, 1055, 1057, 1060};

std::vector<size_t> chosen() {
    std::vector<size_t> places;
    const json& recordings = sweep_all()["recordings"];
    for (size_t i = 0; i < recordings.size(); ++i)
        if (std::getenv("HARK_ALL_RECORDINGS") ||
            std::ranges::find(kRepeating, recordings[i]["seed"].get<int>()) == std::end(kRepeating))
            places.push_back(i);
    return places;
}

class Sweep : public testing::TestWithParam<size_t> {};

TEST_P(Sweep, EqualsReferenceInF32) {
    const json& entry = sweep_all()["recordings"][GetParam()];
    const Outcome ours = run(entry, "f32", {0});
    const bool words = entry["options"].contains("word_timestamps");
    expect_same_recording(entry, ours, words ? kWordTimes : 1e-6);
    if (words) expect_same_words(entry, ours);
}

INSTANTIATE_TEST_SUITE_P(Golden, Sweep, testing::ValuesIn(chosen()), [](const auto& info) {
    return name_of_entry(sweep_all()["recordings"][info.param]);
});

}  // namespace
}  // namespace hark::test
