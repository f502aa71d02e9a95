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
constexpr double kSilentSeconds = 2;  // without words ends one at any level of sound
constexpr double kGap = 0.1;    // between two words, enough for a cut
constexpr double kKept = 1;     // of silence: it may contain the beginning of speech
constexpr double kLong = 15;    // of committed words makes them final in the middle of a sentence
constexpr double kFrame = 0.01;

std::string key(const LiveWord& word) { return strip(normalize_basic(word.word.text)); }

bool ends_sentence(const std::string& word) {
    static constexpr std::array kMarks = {".", "!", "?", "…", "。", "！", "？"};
    static constexpr std::array kClosingMarks = {"\"", "'", ")", "”", "’", "»", "」", "』"};
    std::string text = strip(word);
    for (bool more = true; more;) {
        more = false;
        for (const std::string mark : kClosingMarks)
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

size_t matched_prefix(std::span<const LiveWord> committed, std::span<const LiveWord> hypothesis) {
    if (committed.empty()) return 0;
    std::vector<std::string> keys;
    for (const LiveWord& word : hypothesis) keys.push_back(key(word));
    // edits[k]: edit distance of the committed words so far and the hypothesis' first k.
    std::vector<size_t> edits(hypothesis.size() + 1), next(hypothesis.size() + 1);
    std::iota(edits.begin(), edits.end(), size_t{0});
    for (size_t i = 0; i < committed.size(); ++i) {
        const std::string own = key(committed[i]);
        next[0] = i + 1;
        for (size_t k = 0; k < hypothesis.size(); ++k)
            next[k + 1] =
                std::min({edits[k] + (own == keys[k] ? 0 : 1), edits[k + 1] + 1, next[k] + 1});
        std::swap(edits, next);
    }
    const size_t fewest = *std::min_element(edits.begin(), edits.end());
    const std::string last = key(committed.back());
    size_t best = hypothesis.size() + 1;
    bool sure = false;
    for (size_t k = 0; k <= hypothesis.size(); ++k) {
        if (edits[k] != fewest) continue;
        const bool same = k > 0 && keys[k - 1] == last;
        const bool begun = k > 0 && hypothesis[k - 1].word.start < committed.back().word.end;
        if (best > hypothesis.size() || (same && !sure) || (begun && same == sure)) best = k;
        sure = sure || same;
    }
    return best;
}

size_t common_prefix(std::span<const LiveWord> before, std::span<const LiveWord> newer,
                     double quiet) {
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
    if (i < committed_.size()) return &committed_[i];
    return i - committed_.size() < tentative_.size() ? &tentative_[i - committed_.size()] : nullptr;
}

void LiveText::update(Hypothesis hypothesis) {
    end_ = hypothesis.end;
    quiet_begin_ = hypothesis.quiet_begin;
    quiet_end_ = hypothesis.quiet_end;
    std::vector<LiveWord>& words = hypothesis.words;
    const size_t known = matched_prefix(committed_, words);
    // Later hypotheses have better times and ends of segments.
    if (known == committed_.size())
        for (size_t i = final_; i < known; ++i) {
            committed_[i].word.start = words[i].word.start;
            committed_[i].word.end = words[i].word.end;
            committed_[i].ends_segment = words[i].ends_segment;
        }
    words.erase(words.begin(), words.begin() + static_cast<ptrdiff_t>(known));
    const bool silence = words.empty() && tentative_.empty();
    const size_t shared = common_prefix(tentative_, words, quiet_begin_);
    tentative_ = std::move(words);
    commit(shared);
    if (silence && committed_.empty()) drop(0, end_ - kKept);
}

bool LiveText::can_confirm() const {
    return !tentative_.empty() && tentative_.front().word.start < end_ - kLiveStep;
}

void LiveText::confirm(std::vector<LiveWord> words) {
    const size_t known = matched_prefix(committed_, words);
    commit(common_prefix(std::span(words).subspan(known), tentative_, quiet_begin_));
}

void LiveText::commit(size_t words) {
    const auto end = tentative_.begin() + static_cast<ptrdiff_t>(words);
    std::move(tentative_.begin(), end, std::back_inserter(committed_));
    tentative_.erase(tentative_.begin(), end);
    finalize(complete());
    if (final_ < committed_.size() && committed_.back().word.end - begin_ > kLong)
        finalize(committed_.size());
    cut();
}

// The number of committed words up to the last that ends a sentence or precedes a pause.
size_t LiveText::complete() const {
    for (size_t i = committed_.size(); i > final_; --i) {
        const LiveWord& last = committed_[i - 1];
        const bool sentence = ends_sentence(last.word.text);
        if (const LiveWord* next = word(i)) {
            if (sentence || last.ends_segment || next->word.start - last.word.end >= kPause)
                return i;
        } else {
            const bool quiet =
                last.word.start < quiet_begin_ && (sentence || quiet_end_ - quiet_begin_ >= kPause);
            if (quiet || end_ - last.word.end >= kSilentSeconds) return i;
        }
    }
    return final_;
}

// Makes segments of the committed words [final_, end).
void LiveText::finalize(size_t end) {
    LiveSegment segment;
    for (; final_ < end; ++final_) {
        LiveWord& last = committed_[final_];
        Word word = last.word;
        word.start = std::max(word.start, last_end_);
        word.end = last_end_ = std::max(word.end, word.start);
        append(segment, word);
        const LiveWord* next = this->word(final_ + 1);
        last.ends_segment = final_ + 1 == end || last.ends_segment || ends_sentence(word.text) ||
                            (next && next->word.start - word.end >= kPause);
        if (last.ends_segment) finals_.push_back(std::exchange(segment, {}));
    }
}

// Cuts the sound after the last final segment that a gap follows, or after the last final word if
// the words are longer than kLong.
void LiveText::cut() {
    for (size_t i = final_; i > 0; --i) {
        const Word& last = committed_[i - 1].word;
        if (const LiveWord* next = word(i)) {
            const double gap = next->word.start - last.end;
            if ((committed_[i - 1].ends_segment && gap >= kGap) || last.end - begin_ > kLong)
                return drop(i, last.end + std::max(gap, 0.0) / 2);
        } else if (last.start < quiet_begin_ && quiet_end_ - quiet_begin_ >= kPause) {
            return drop(i, (quiet_begin_ + quiet_end_) / 2);
        } else if (end_ - last.end >= kSilentSeconds) {
            return drop(i, end_ - kKept);
        }
    }
}

void LiveText::drop(size_t words, double at) {
    for (size_t i = 0; i < words; ++i) dropped_text_ += committed_[i].word.text;
    committed_.erase(committed_.begin(), committed_.begin() + static_cast<ptrdiff_t>(words));
    final_ -= words;
    begin_ = std::max(begin_, std::floor(std::min(at, end_) / kFrame) * kFrame);
}

void LiveText::finish() {
    std::move(tentative_.begin(), tentative_.end(), std::back_inserter(committed_));
    tentative_.clear();
    finalize(committed_.size());
    // Another word may have begun after the last one.
    const double last = committed_.empty() ? end_ : committed_.back().word.end;
    drop(committed_.size(), last > begin_ + kPause ? last : end_);
}

std::vector<LiveSegment> LiveText::take_finals() { return std::exchange(finals_, {}); }

std::string LiveText::take_dropped_text() { return std::exchange(dropped_text_, {}); }

std::optional<LivePartial> LiveText::partial() const {
    LivePartial partial;
    for (size_t i = final_; const LiveWord* next = word(i); ++i) {
        append(partial.segment, next->word);
        if (i < committed_.size()) partial.committed = partial.segment.text.size();
    }
    if (partial.segment.words.empty()) return std::nullopt;
    return partial;
}

}  // namespace hark::whisper
