#include "whisper/output/page_parts.h"

#include <algorithm>

namespace hark::whisper {
namespace {

constexpr std::string_view kRecordingHtml =
#include "whisper/output/page/recording.html.inc"
    ;
constexpr std::string_view kPageStyle =
#include "whisper/output/page/transcript.css.inc"
    ;
constexpr PageScript kPageScripts[] = {
    {
        "transcript.js",
#include "whisper/output/page/transcript.js.inc"
    },
    {
        "formats.js",
#include "whisper/output/page/formats.js.inc"
    },
    {
        "transcript_view.js",
#include "whisper/output/page/transcript_view.js.inc"
    },
    {
        "player.js",
#include "whisper/output/page/player.js.inc"
    },
    {
        "waveform.js",
#include "whisper/output/page/waveform.js.inc"
    },
    {
        "editor.js",
#include "whisper/output/page/editor.js.inc"
    },
};

}  // namespace

std::string_view page_recording() { return kRecordingHtml; }

std::string_view page_style() { return kPageStyle; }

std::span<const PageScript> page_scripts() { return kPageScripts; }

std::string filled_page(std::string_view page,
                        const std::function<std::string(std::string_view name)>& part) {
    std::string filled;
    for (size_t at = 0; at < page.size();) {
        const size_t begin = std::min(page.find("{{", at), page.size());
        filled += page.substr(at, begin - at);
        const size_t end = std::min(page.find("}}", begin), page.size());
        if (begin < end) filled += part(page.substr(begin + 2, end - begin - 2));
        at = end + 2;
    }
    return filled;
}

}  // namespace hark::whisper
