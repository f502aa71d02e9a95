// hark-redact: whisper-transcribe's lines of JSON -> the same without personal data.
//
//   stdin -> LineReader -> TranscriptRedactor (Finder) -> stdout
//                                                      -> MuteList
#include <unistd.h>

#include "core/files/files.h"
#include "operations/redact/mute_list.h"
#include "operations/redact/redact_options.h"
#include "operations/redact/transcript_redactor.h"
#include "text/line_reader.h"

using namespace hark;

namespace {

void run(const redact::RedactOptions& options, Console& console) {
    options.check();
    require_piped_stdin("transcripts as lines of JSON",
                        "whisper-transcribe --format jsonl < talk.mel | hark-redact");
    std::optional<AtomicFile> mute_file;
    if (!options.mute_list.empty()) mute_file.emplace(options.mute_list);
    redact::MuteList mutes;
    std::optional<std::string> muted;  // the recording
    redact::TranscriptRedactor::Mute mute;
    if (mute_file)
        mute = [&](const std::string& source, double begin, double end) {
            require(!muted || *muted == source, "--mute-list: expected one recording (got ",
                    muted.value_or(""), " and ", source, "); run hark-redact for each");
            muted = source;
            mutes.add(begin, end);
        };
    ByteWriter out(STDOUT_FILENO, "stdout");
    redact::TranscriptRedactor redactor(
        options.finder(),
        [&](const std::string& line) {
            out.write(line + "\n");
            out.flush();
        },
        mute);
    ByteReader in(STDIN_FILENO, "stdin");
    LineReader lines(in);
    while (const std::optional<std::string> line = lines.next())
        if (!line->empty()) redactor.add(*line, lines.where());
    redactor.finish();
    if (mute_file) {
        mute_file->write(mutes.filter());
        mute_file->commit();
    }
    console.warning(options.report(redactor.counts()));
}

constexpr ToolHelp kHelp = {
    .name = "hark-redact",
    .summary = "Replaces personal data in transcripts, and lists what to mute.",
    .description =
        R"(stdin are the lines of whisper-transcribe --format jsonl, stdout the same lines with
[EMAIL], [PHONE], [IBAN], [CARD], [DATE], [NUMBER] and, of the user's own lists,
[LISTED] in the place of what was found. Cards have Luhn's sum, IBANs their check
digits. What is said digit by digit ("four one five, double seven") is found too,
and numbers that go over several segments. Spoken numbers and e-mail addresses are
English ones; docs/confidential.md says which forms and languages are known.
Names, addresses and what is misheard are not found: this is a help for the
person who reads the result, no anonymisation. The names of recordings stay.)",
    .examples = R"(# A transcript without telephone numbers, cards and the names of a list
hark transcribe call.mp3 -m small --format jsonl --word-timestamps |
    hark-redact --words names.txt --mute-list mute.txt > call.jsonl
# The recording with those words muted
ffmpeg -i call.mp3 -filter_script:a mute.txt muted.mp3
# Only cards and IBANs
hark-redact --kinds card,iban < calls.jsonl > redacted.jsonl)",
    .is_measured = true,
};

}  // namespace

int main(int argc, char** argv) { return tool_main<redact::RedactOptions>(kHelp, argc, argv, run); }
