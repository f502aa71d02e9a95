// Transcripts as JSON lines, then all that whisper-eval does with their texts.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "core/files/io.h"
#include "eval/error_report.h"
#include "eval/normalizer.h"
#include "eval/transcripts.h"
#include "fuzz/memory_file.h"
#include "fuzz/target.h"
#include "text/utf8.h"

using namespace hark;
using namespace hark::fuzz;

static std::vector<std::string> transcripts_seeds() {
    return {
        "{\"source\":\"a.wav\",\"start\":0.0,\"text\":\" Mr. O'Neill's 21st, isn't it?\"}\n"
        "{\"source\":\"a.wav\",\"text\":\"two and a half million dollars and five cents\"}\n"
        "{\"source\":\"b\",\"channel\":\"1\",\"text\":\"\xE6\x97\xA5\xE6\x9C\xAC [x] (y)\"}\n",
        "{\"source\":\"a\",\"error\":\"broken\"}\n\n"
        "{\"source\":\"a\",\"text\":\"double oh seven point 3 percent \xC3\x89t\xC3\xA9 "
        "\xCE\xA3\"}\r\n"};
}

static int transcripts_input(const uint8_t* data, size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const fuzz::MemoryFile file(data, size);
    std::vector<std::string> problems;
    try {
        ByteReader in(file.fd(), "stdin");
        pair_transcripts(read_references(file.path()), read_hypotheses(in, problems));
    } catch (const Error&) {
    }
    problems.clear();
    const std::vector<Transcript> transcripts = parse_transcripts(text, "T", problems);
    const TranscriptPairs pairs = pair_transcripts(transcripts, transcripts);
    for (size_t i = 0; i < transcripts.size(); ++i) {
        if (pairs.hypotheses[i] != &transcripts[i]) std::abort();
        const std::string& spoken = transcripts[i].text;
        const std::string english = normalize_english(spoken);
        const std::string basic = normalize_basic(spoken, {i % 2 == 0, i % 3 == 0});
        if (!is_valid_utf8(english) || !is_valid_utf8(basic)) std::abort();
        const Comparison comparison = compare_words(english, basic);
        const ErrorCounts& counts = comparison.counts;
        if (counts.reference_words() != static_cast<int64_t>(comparison.reference.size()))
            std::abort();
        if (!is_valid_utf8(differences_as_text(comparison, 40))) std::abort();
    }
    return 0;
}

static const hark::fuzz::Target kTranscripts{"transcripts", transcripts_seeds, transcripts_input};
