// The results of all shards in the input's order, in forms for other programs.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "operations/shards/plan.h"

namespace hark::shards {

// The values of merge's --format:
//   jsonl       the results' lines
//   lhotse      supervisions, a line per segment
//   kaldi-text  "ID WORDS", a line per recording, without those that failed; sorted by bytes
//   ctm         "ID 1 START SECONDS WORD PROBABILITY", a line per word; sorted too
const std::vector<std::string>& merge_formats();

// Passes the output to `write`. The results are right (check_results). Throws Error naming the
// file; for ctm also if a segment has no words.
void merge_results(const std::filesystem::path& plan_folder, const std::vector<PlannedShard>& plan,
                   const std::filesystem::path& results, const std::string& format,
                   const std::function<void(std::string_view)>& write);

}  // namespace hark::shards
