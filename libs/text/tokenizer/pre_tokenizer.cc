#include "text/tokenizer/pre_tokenizer.h"

namespace hark {
namespace {

// Parts of a chunk, each a match or not, in order.
class PartSink {
  public:
    PartSink(const TextChunk& chunk, SplitBehavior behavior, const EmitText& emit)
        : chunk_(chunk), behavior_(behavior), emit_(emit) {}

    void add(size_t begin, size_t end, bool match) {
        switch (behavior_) {
            case SplitBehavior::isolated:
                return put(begin, end);
            case SplitBehavior::removed:
                return match ? void() : put(begin, end);
            case SplitBehavior::contiguous:
                return join_or_begin(held_ && match == last_match_, begin, end, match);
            case SplitBehavior::merged_with_previous:
                return join_or_begin(held_ && match && !last_match_, begin, end, match);
            case SplitBehavior::merged_with_next:
                return join_or_begin(held_ && last_match_ && !match, begin, end, match);
        }
    }
    void finish() {
        if (held_) put(begin_, end_);
        held_ = false;
    }

  private:
    void join_or_begin(bool join, size_t begin, size_t end, bool match) {
        if (!join) {
            finish();
            begin_ = begin;
        }
        end_ = end;
        held_ = true;
        last_match_ = match;
    }
    void put(size_t begin, size_t end) {
        if (begin == end) return;
        emit_({chunk_.text.substr(begin, end - begin), chunk_.first && begin == 0});
    }

    const TextChunk& chunk_;
    SplitBehavior behavior_;
    const EmitText& emit_;
    bool held_ = false, last_match_ = false;
    size_t begin_ = 0, end_ = 0;
};

class SplitStep : public PreTokenStep {
  public:
    SplitStep(Pattern pattern, SplitBehavior behavior, bool invert)
        : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

    void apply(const TextChunk& chunk, const EmitText& emit) const override {
        PartSink sink(chunk, behavior_, emit);
        size_t done = 0;
        for (Pattern::Search search(pattern_, chunk.text);;) {
            const Pattern::Match match = search.next();
            if (!match.found) break;
            if (match.begin > done) sink.add(done, match.begin, invert_);
            sink.add(match.begin, match.end, !invert_);
            done = match.end;
        }
        if (done < chunk.text.size()) sink.add(done, chunk.text.size(), invert_);
        sink.finish();
    }

  private:
    Pattern pattern_;
    SplitBehavior behavior_;
    bool invert_;
};

class PrefixSpaceStep : public PreTokenStep {
  public:
    void apply(const TextChunk& chunk, const EmitText& emit) const override {
        if (chunk.text.starts_with(' ')) return emit(chunk);
        const std::string text = " " + std::string(chunk.text);
        emit({text, chunk.first});
    }
};

class MetaspaceStep : public PreTokenStep {
  public:
    MetaspaceStep(std::string replacement, PrependScheme scheme, bool split)
        : replacement_(std::move(replacement)), scheme_(scheme) {
        if (split)
            split_ =
                split_step(Pattern::literal(replacement_), SplitBehavior::merged_with_next, false);
    }

    void apply(const TextChunk& chunk, const EmitText& emit) const override {
        std::string text;
        text.reserve(chunk.text.size() + chunk.text.size() / 2);
        const bool prepend =
            scheme_ == PrependScheme::always || (scheme_ == PrependScheme::first && chunk.first);
        if (prepend && !chunk.text.starts_with(' ') && !chunk.text.starts_with(replacement_))
            text = replacement_;
        for (const char c : chunk.text) c == ' ' ? text += replacement_ : text += c;
        const TextChunk made{text, chunk.first};
        split_ ? split_->apply(made, emit) : emit(made);
    }

  private:
    std::string replacement_;
    PrependScheme scheme_;
    std::shared_ptr<const PreTokenStep> split_;
};

}  // namespace

std::shared_ptr<const PreTokenStep> split_step(Pattern pattern, SplitBehavior behavior,
                                               bool invert) {
    return std::make_shared<SplitStep>(std::move(pattern), behavior, invert);
}

std::shared_ptr<const PreTokenStep> prefix_space_step() {
    return std::make_shared<PrefixSpaceStep>();
}

std::shared_ptr<const PreTokenStep> metaspace_step(std::string replacement, PrependScheme scheme,
                                                   bool split) {
    return std::make_shared<MetaspaceStep>(std::move(replacement), scheme, split);
}

void pre_tokenize(const PreTokenSteps& steps, const TextChunk& chunk, const EmitText& emit,
                  size_t step) {
    if (step == steps.size()) return emit(chunk);
    if (step + 1 == steps.size()) return steps[step]->apply(chunk, emit);
    steps[step]->apply(chunk,
                       [&](const TextChunk& part) { pre_tokenize(steps, part, emit, step + 1); });
}

}  // namespace hark
