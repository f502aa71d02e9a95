#include "formats/recordings.h"

#include <cstdio>
#include <cstring>

#include "core/error.h"
#include "core/finite.h"
#include "core/profile/profile.h"
#include "core/profile/run_counts.h"

namespace hark {
namespace {

std::string text_of(const Document& document, const char* key, const char* fallback = nullptr) {
    const auto found = document.header.metadata.find(key);
    if (found != document.header.metadata.end()) return found->second;
    require(fallback != nullptr, document.where, ": no '", key, "' in __metadata__");
    return fallback;
}

int64_t index_of(const Document& document, const char* key) {
    const std::string text = text_of(document, key);
    const bool digits = !text.empty() && text.size() <= 15 &&
                        text.find_first_not_of("0123456789") == std::string::npos;
    require(digits, document.where, ": '", key, "' is no whole number (got '", text, "')");
    return std::stoll(text);
}

constexpr int kMelFramesPerSecond = 100;
constexpr const char *kMissingKey = "missing", *kLacksEnd = "end";

// A recording that ends with this chunk.
void count_chunk(const Chunk& chunk) {
    const int per_second = chunk.kind == "audio" ? kSampleRate : kMelFramesPerSecond;
    count_recording(!chunk.error.empty(),
                    static_cast<double>(chunk.start + chunk.length()) / per_second);
}

}  // namespace

RecordingReader::RecordingReader(ByteReader& in, std::string kind, std::string hint)
    : stream_(in), kind_(std::move(kind)), hint_(std::move(hint)) {}

std::optional<Chunk> RecordingReader::next() {
    const ProfileSpan span("read");
    std::optional<Document> document;
    try {
        document = stream_.next();
    } catch (const Error& failure) {
        // The first bytes may be no tensor stream at all.
        if (any_ || !stream_.foreign()) throw;
        fail(failure.what(), "; ", hint_);
    }
    if (!document) {
        require(any_, "stdin: no data (expected ", kind_,
                " documents); the stage before has failed");
        if (!open_.empty())
            fail(open_.begin()->second.where, ": the stream ends before the last document of '",
                 open_.begin()->first, "'");
        return std::nullopt;
    }
    any_ = true;
    Chunk chunk = parse(std::move(*document));
    follow(chunk);
    if (chunk.start == 0) span.follow(chunk.source, chunk.channel);
    return chunk;
}

Chunk RecordingReader::parse(Document document) const {
    Chunk chunk;
    const std::string where = document.where;
    const std::string version = text_of(document, "hark");
    require(version == "1", where, ": unknown version of the stream (got '", version,
            "', expected 1)");
    chunk.kind = text_of(document, "kind");
    require(chunk.kind == kind_, where, ": wrong kind of stream (got ", chunk.kind, ", expected ",
            kind_, ")", chunk.kind == "audio" || chunk.kind == "mel" ? "; " + hint_ : "");
    const std::string rate = text_of(document, "sample_rate");
    require(rate == std::to_string(kSampleRate), where, ": wrong sample rate (got '", rate,
            "', expected ", kSampleRate, " Hz)");
    chunk.recording = text_of(document, "recording");
    chunk.channel = text_of(document, "channel", "0");
    chunk.source = text_of(document, "source", chunk.recording.c_str());
    chunk.start = index_of(document, "start");
    chunk.last = text_of(document, "last", "false") == "true";
    chunk.error = text_of(document, "error", "");
    chunk.lacks_end = text_of(document, kMissingKey, "") == kLacksEnd;
    chunk.document = std::move(document);

    const Tensor values = chunk.values();
    const int rank = chunk.kind == "audio" ? 1 : 2;
    require(values.dtype == Dtype::f32 && values.rank == rank, where, ": wrong tensor (got ",
            values, ", expected ", rank == 1 ? "samples f32 (n)" : "log_mel f32 (n_mels, frames)",
            ")");
    require(all_finite({values.as<float>(), static_cast<size_t>(values.size())}), where,
            ": a value is not finite");
    return chunk;
}

void RecordingReader::follow(const Chunk& chunk) {
    const std::string& where = chunk.document.where;
    Progress& progress = open_[chunk.recording];
    require(chunk.start == progress.next_start, where, ": recording '", chunk.recording,
            "' has a gap (got a chunk at ", chunk.start, ", expected ", progress.next_start, ")");
    require(chunk.error.empty() || chunk.last, where,
            ": only a recording's last document may have an error");
    if (chunk.kind == "mel") {
        const int64_t n_mels = chunk.values().dim(0);
        require(progress.n_mels == 0 || progress.n_mels == n_mels, where,
                ": the number of mels changes (got ", n_mels, ", expected ", progress.n_mels, ")");
        progress.n_mels = n_mels;
    }
    progress.next_start += chunk.length();
    progress.where = where;
    if (chunk.last) open_.erase(chunk.recording);
}

std::optional<std::vector<Region>> speech_of(const Document& document) {
    if (!document.find("speech")) return std::nullopt;
    const Tensor tensor = document.tensor("speech");
    require(tensor.dtype == Dtype::i64 && tensor.rank == 2 && tensor.dim(1) == 2, document.where,
            ": wrong tensor speech (got ", tensor, ", expected i64 (k, 2))");
    std::vector<Region> regions;
    int64_t end = 0;
    for (int64_t i = 0; i < tensor.dim(0); ++i) {
        int64_t row[2];  // copied: a document's tensors have any alignment
        std::memcpy(row, static_cast<const std::byte*>(tensor.data) + i * sizeof row, sizeof row);
        require(row[0] >= end && row[1] > row[0], document.where,
                ": regions of speech are empty, overlap or are not sorted (got [", row[0], ", ",
                row[1], ") after sample ", end, ")");
        end = row[1];
        regions.push_back({row[0], row[1]});
    }
    return regions;
}

void add_speech(Document& document, std::span<const Region> regions) {
    std::vector<int64_t> rows;
    for (const Region& region : regions) {
        rows.push_back(region.begin);
        rows.push_back(region.end);
    }
    document.add("speech", Tensor(rows.data(), Dtype::i64, {std::ssize(regions), 2}));
}

std::string ends_at(double found_seconds, double stated_seconds) {
    const int digits = stated_seconds - found_seconds < kMaxMissing ? 4 : 1;
    char text[128];
    std::snprintf(text, sizeof text, "ends at %.*f of %.*f s", digits, found_seconds, digits,
                  stated_seconds);
    return text;
}

void write_chunk(ByteWriter& out, Chunk chunk) {
    const ProfileSpan span("write");
    if (chunk.start == 0) span.follow(chunk.source, chunk.channel);
    if (chunk.last) count_chunk(chunk);
    Metadata& metadata = chunk.document.header.metadata;
    metadata["hark"] = "1";
    metadata["kind"] = chunk.kind;
    metadata["recording"] = chunk.recording;
    metadata["channel"] = chunk.channel;
    metadata["source"] = chunk.source;
    metadata["sample_rate"] = std::to_string(kSampleRate);
    metadata["start"] = std::to_string(chunk.start);
    metadata.erase("last");
    metadata.erase("error");
    metadata.erase(kMissingKey);
    if (chunk.last) metadata["last"] = "true";
    if (!chunk.error.empty()) metadata["error"] = chunk.error;
    if (chunk.lacks_end) metadata[kMissingKey] = kLacksEnd;
    write_document(out, chunk.document);
}

}  // namespace hark
