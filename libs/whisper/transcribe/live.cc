#include "whisper/transcribe/live.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <numeric>

#include "eval/normalizer.h"
#include "whisper/output/strings.h"

namespace hark::whisper {
namespace {

// Seconds.
constexpr double kPause = 1;    // ends a segment without a mark
constexpr double kSilence = 2;  // without a word does so whatever the level
constexpr double kGap = 0.1;    // between two words, where a cut harms neither
constexpr double kKept = 1;     // of silence: speech may have begun and not yet be heard
constexpr double kLong = 15;    // of agreed words: they are final, sentence or not
constexpr double kFrame = 0.01;

std::string key(const LiveWord& word) { return strip(normalize_basic(word.word.text)); }

bool ends_sentence(const std::string& word) {
    static constexpr std::array kMarks = {".", "!", "?", "…", "。", "！", "？"};
    static constexpr std::array kBehind = {"\"", "'", ")", "”", "’", "»", "」", "』"};
    std::string text = strip(word);
    for (bool more = true; more;) {
        more = false;
        for (const std::string mark : kBehind)
            if (text.ends_with(mark)) text.resize(text.size() - mark.size()), more = true;
    }
    return std::any_of(kMarks.begin(), kMarks.end(),
                       [&](const char* mark) { return text.ends_with(mark); });
}

void append(LiveSegment& segment, const Word& word) {
    if (segment.words.empty()) segment.start = word.start;
    segment.end = word.end;
    segment.text += word.text;
    segment.words.push_back(word);
}

}  // namespace

size_t words_that_say(std::span<const LiveWord> said, std::span<const LiveWord> heard) {
    if (said.empty()) return 0;
    std::vector<std::string> keys;
    for (const LiveWord& word : heard) keys.push_back(key(word));
    // edits[k]: from the words of `said` so far to the first k heard.
    std::vector<size_t> edits(heard.size() + 1), next(heard.size() + 1);
    std::iota(edits.begin(), edits.end(), size_t{0});
    for (size_t i = 0; i < said.size(); ++i) {
        const std::string own = key(said[i]);
        next[0] = i + 1;
        for (size_t k = 0; k < heard.size(); ++k)
            next[k + 1] =
                std::min({edits[k] + (own == keys[k] ? 0 : 1), edits[k + 1] + 1, next[k] + 1});
        std::swap(edits, next);
    }
    const size_t fewest = *std::min_element(edits.begin(), edits.end());
    const std::string last = key(said.back());
    size_t best = heard.size() + 1;
    bool sure = false;
    for (size_t k = 0; k <= heard.size(); ++k) {
        if (edits[k] != fewest) continue;
        const bool same = k > 0 && keys[k - 1] == last;
        const bool begun = k > 0 && heard[k - 1].word.start < said.back().word.end;
        if (best > heard.size() || (same && !sure) || (begun && same == sure)) best = k;
        sure = sure || same;
    }
    return best;
}

size_t agreeing(std::span<const LiveWord> before, std::span<const LiveWord> newer, double quiet) {
    const size_t most = std::min(before.size(), newer.size());
    size_t n = 0;
    for (; n < most; ++n) {
        const bool last = n + 1 == before.size() || n + 1 == newer.size();
        if (last && newer[n].word.start >= quiet) break;
        const bool same = n + 1 == newer.size() ? before[n].word.text == newer[n].word.text
                                                : key(before[n]) == key(newer[n]);
        if (!same) break;
    }
    return n;
}

const LiveWord* LiveText::word(size_t i) const {
    if (i < said_.size()) return &said_[i];
    return i - said_.size() < newest_.size() ? &newest_[i - said_.size()] : nullptr;
}

void LiveText::hear(Hearing heard) {
    end_ = heard.end;
    quiet_begin_ = heard.quiet_begin;
    quiet_end_ = heard.quiet_end;
    std::vector<LiveWord>& words = heard.words;
    const size_t known = words_that_say(said_, words);
    // Later hearings know more of where words lie, and which end a segment.
    if (known == said_.size())
        for (size_t i = given_; i < known; ++i) {
            said_[i].word.start = words[i].word.start;
            said_[i].word.end = words[i].word.end;
            said_[i].ends_segment = words[i].ends_segment;
        }
    words.erase(words.begin(), words.begin() + static_cast<ptrdiff_t>(known));
    const bool silence = words.empty() && newest_.empty();
    const size_t agreed = agreeing(newest_, words, quiet_begin_);
    newest_ = std::move(words);
    agree(agreed);
    if (silence && said_.empty()) leave(0, end_ - kKept);
}

bool LiveText::in_doubt() const {
    return !newest_.empty() && newest_.front().word.start < end_ - kLiveStep;
}

void LiveText::confirm(std::vector<LiveWord> words) {
    const size_t known = words_that_say(said_, words);
    agree(agreeing(std::span(words).subspan(known), newest_, quiet_begin_));
}

void LiveText::agree(size_t words) {
    const auto end = newest_.begin() + static_cast<ptrdiff_t>(words);
    std::move(newest_.begin(), end, std::back_inserter(said_));
    newest_.erase(newest_.begin(), end);
    give(finished());
    if (given_ < said_.size() && said_.back().word.end - begin_ > kLong) give(said_.size());
    cut();
}

// The words of said_ up to the last that ends a sentence or stands before a pause.
size_t LiveText::finished() const {
    for (size_t i = said_.size(); i > given_; --i) {
        const LiveWord& last = said_[i - 1];
        const bool sentence = ends_sentence(last.word.text);
        if (const LiveWord* next = word(i)) {
            if (sentence || last.ends_segment || next->word.start - last.word.end >= kPause)
                return i;
        } else {
            const bool quiet =
                last.word.start < quiet_begin_ && (sentence || quiet_end_ - quiet_begin_ >= kPause);
            if (quiet || end_ - last.word.end >= kSilence) return i;
        }
    }
    return given_;
}

// Makes segments of the words from given_ up to `end`.
void LiveText::give(size_t end) {
    LiveSegment segment;
    for (; given_ < end; ++given_) {
        LiveWord& last = said_[given_];
        Word word = last.word;
        word.start = std::max(word.start, last_end_);
        word.end = last_end_ = std::max(word.end, word.start);
        append(segment, word);
        const LiveWord* next = this->word(given_ + 1);
        last.ends_segment = given_ + 1 == end || last.ends_segment || ends_sentence(word.text) ||
                            (next && next->word.start - word.end >= kPause);
        if (last.ends_segment) finals_.push_back(std::exchange(segment, {}));
    }
}

// Cuts the sound behind the last final segment that has a gap behind it, or, once the words last
// long, behind the last final word.
void LiveText::cut() {
    for (size_t i = given_; i > 0; --i) {
        const Word& last = said_[i - 1].word;
        if (const LiveWord* next = word(i)) {
            const double gap = next->word.start - last.end;
            if ((said_[i - 1].ends_segment && gap >= kGap) || last.end - begin_ > kLong)
                return leave(i, last.end + std::max(gap, 0.0) / 2);
        } else if (last.start < quiet_begin_ && quiet_end_ - quiet_begin_ >= kPause) {
            return leave(i, (quiet_begin_ + quiet_end_) / 2);
        } else if (end_ - last.end >= kSilence) {
            return leave(i, end_ - kKept);
        }
    }
}

void LiveText::leave(size_t words, double at) {
    for (size_t i = 0; i < words; ++i) left_ += said_[i].word.text;
    said_.erase(said_.begin(), said_.begin() + static_cast<ptrdiff_t>(words));
    given_ -= words;
    begin_ = std::max(begin_, std::floor(std::min(at, end_) / kFrame) * kFrame);
}

void LiveText::finish() {
    std::move(newest_.begin(), newest_.end(), std::back_inserter(said_));
    newest_.clear();
    give(said_.size());
    // Behind the last word another may have begun.
    const double last = said_.empty() ? end_ : said_.back().word.end;
    leave(said_.size(), last > begin_ + kPause ? last : end_);
}

std::vector<LiveSegment> LiveText::take_finals() { return std::exchange(finals_, {}); }

std::string LiveText::take_left() { return std::exchange(left_, {}); }

std::optional<LivePartial> LiveText::partial() const {
    LivePartial partial;
    for (size_t i = given_; const LiveWord* next = word(i); ++i) {
        append(partial.segment, next->word);
        if (i < said_.size()) partial.agreed = partial.segment.text.size();
    }
    if (partial.segment.words.empty()) return std::nullopt;
    return partial;
}

}  // namespace hark::whisper
