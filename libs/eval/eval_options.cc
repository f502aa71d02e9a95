#include "eval/eval_options.h"

#include "eval/error_report.h"

namespace hark {

void EvalOptions::flags(Flags& flags) {
    flags.section("Input");
    flags.add_name("reference", reference, "FILE right texts: lines of {source, text}")
        .essential()
        .completes(Completes::file);
    flags.section("Comparison");
    flags
        .add("normalizer", normalizer, {"english", "basic", "none"},
             "NAME normalizer of both texts")
        .essential()
        .details("english and basic are Whisper's; basic is for all other languages.");
    flags.add_switch("remove-diacritics", basic.remove_diacritics,
                     "basic: letters without their diacritics");
    flags.add_switch("split-letters", basic.split_letters, "basic: each letter is a word")
        .details("For languages that are written without spaces.");
    flags.section("Output");
    flags.add("format,f", format, error_report_formats(), "FORM format of the report")
        .essential()
        .own_variable();
    flags.add_switch("differences", differences, "show the aligned words that differ")
        .essential()
        .details("With --format text the lines that differ, with jsonl all words.");
}

void EvalOptions::check() const {
    require_usage(!reference.empty(), "--reference FILE is required: the right texts");
    require_usage(normalizer == "basic" || (!basic.remove_diacritics && !basic.split_letters),
                  "--remove-diacritics and --split-letters need --normalizer basic");
    require_usage(!differences || format != "tsv",
                  "--differences needs --format text or jsonl (got tsv)");
    require_piped_stdin("transcripts as JSON lines",
                        "whisper-transcribe --format jsonl | whisper-eval --reference FILE");
}

std::string EvalOptions::normalize(const std::string& text) const {
    return normalizer == "english" ? normalize_english(text)
           : normalizer == "basic" ? normalize_basic(text, basic)
                                   : text;
}

}  // namespace hark
