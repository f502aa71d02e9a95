// Options in pairs on the demo model against openai-whisper's own transcribe(), and the same
// recordings alone, together and in another order. Golden: tests/golden/whisper_sweep.py.
#include "whisper/transcripts.h"

namespace hark::test {
namespace {

const json& all() {
    static const json kGolden = golden("whisper_sweep.json");
    return kGolden;
}

class Sweep : public testing::TestWithParam<size_t> {};

TEST_P(Sweep, EqualsReferenceInF32) {
    const json& entry = all()["recordings"][GetParam()];
    const Outcome ours = run(entry, "f32", {0});
    const bool words = entry["options"].contains("word_timestamps");
    expect_same_recording(entry, ours, words ? kWordTimes : 1e-6);
    if (words) expect_same_words(entry, ours);
}

INSTANTIATE_TEST_SUITE_P(Golden, Sweep, testing::Range<size_t>(0, 60), [](const auto& info) {
    return name_of_entry(all()["recordings"][info.param]);
});

}  // namespace
}  // namespace hark::test
