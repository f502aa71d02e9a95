// Forms in which recordings to transcribe are given: all become entries of a manifest.
#pragma once

#include <string>
#include <vector>

#include "operations/shards/manifest.h"

namespace hark::shards {

// The values of --input-format.
const std::vector<std::string>& input_formats();

// The entries of a file, or of a folder, in the form `format`; "-" is stdin. Empty stands for
// recordings of a folder and NeMo's manifest of a file. Throws Error.
std::vector<ManifestEntry> read_input(const std::string& path, const std::string& format);

// Recordings in the folder and in its folders, by path; the ids are the paths within it.
std::vector<ManifestEntry> read_folder(const std::filesystem::path& folder);

// Whether a path ends as recordings do.
bool is_recording(const std::filesystem::path& path);

// The samples of a tar of WebDataset; the ids are their keys. An entry has `member`, the name of
// the recording in the tar, and where it is there; `text`, `duration`, `speaker` and `lang` are
// those of the sample's .txt and .json. Throws Error for a sample without a recording or with two.
std::vector<ManifestEntry> read_webdataset(const std::filesystem::path& archive);

// A folder of Kaldi: wav.scp, and segments, text and utt2spk if they are there. An entry is a line
// of segments, else one of wav.scp. Throws Error for a command in wav.scp (`sox ... |`).
std::vector<ManifestEntry> read_kaldi(const std::filesystem::path& folder);

// Lhotse's recordings or cuts as lines of JSON, not compressed. Throws Error for a recording whose
// sound is a command or in memory, for a cut of several tracks, and for a channel other than 0.
std::vector<ManifestEntry> parse_lhotse(std::string_view lines, const std::filesystem::path& folder,
                                        const std::string& where);

}  // namespace hark::shards
