#include "whisper/output/subtitles.h"

#include <algorithm>
#include <limits>

#include "text/unicode.h"
#include "whisper/output/strings.h"

namespace hark::whisper {
namespace {

constexpr double kLongPause = 3.0;  // seconds between the beginnings of two words

// Whether a grapheme spans the end of one and the start of the other.
bool share_grapheme(const std::string& before, const std::string& after) {
    if (before.empty() || after.empty()) return false;
    const std::string joined = before + after;
    size_t end = 0;
    for (std::string_view cluster : grapheme_clusters(joined)) {
        if (end >= before.size()) break;
        end += cluster.size();
    }
    return end > before.size();
}

std::vector<CueWord> whole_words(const std::vector<Word>& words) {
    std::vector<CueWord> whole;
    for (const Word& word : words) {
        const std::string text = one_line(word.text);
        if (whole.empty() || !share_grapheme(whole.back().text, text)) {
            whole.push_back({text, word.start, word.end, false});
            continue;
        }
        whole.back().text += text;
        whole.back().end = word.end;
    }
    return whole;
}

}  // namespace

CueMaker::CueMaker(const SubtitleLayout& layout, std::function<void(const Cue&)> emit)
    : layout_(layout),
      keeps_segments_(layout.max_line_width == 0 || layout.max_line_count == 0),
      emit_(std::move(emit)) {
    if (layout_.max_line_width == 0) layout_.max_line_width = std::numeric_limits<int64_t>::max();
}

void CueMaker::add(const Segment& segment) {
    if (!segment.words) {
        cue_.words = {{strip(one_line(segment.text)), segment.start, segment.end, false}};
        finish();
        return;
    }
    const std::vector<CueWord> words = whole_words(*segment.words);
    const auto most = static_cast<size_t>(layout_.max_words_per_line);
    for (size_t i = 0; i < words.size(); ++i) {
        if (keeps_segments_ && most > 0 && i % most == 0) finish();
        place(words[i]);
    }
    if (keeps_segments_) finish();
}

void CueMaker::place(CueWord word) {
    const bool long_pause =
        !keeps_segments_ && last_start_ && word.start - *last_start_ > kLongPause;
    last_start_ = word.start;
    const int width = display_width(word.text);
    if (line_open_ && width <= layout_.max_line_width - line_width_ && !long_pause) {
        line_width_ += width;
    } else {
        word.text = strip(word.text);
        const bool full = layout_.max_line_count > 0 && line_count_ >= layout_.max_line_count;
        if (!cue_.words.empty() && (long_pause || full)) {
            finish();
        } else if (line_open_) {
            ++line_count_;
            word.new_line = true;
        }
        line_width_ = display_width(word.text);
        line_open_ = !word.text.empty();
    }
    cue_.words.push_back(std::move(word));
}

void CueMaker::finish() {
    const bool blank = std::all_of(cue_.words.begin(), cue_.words.end(),
                                   [](const CueWord& word) { return strip(word.text).empty(); });
    if (!blank) emit_(cue_);
    cue_.words.clear();
    line_open_ = false;
    line_count_ = 1;
}

}  // namespace hark::whisper
