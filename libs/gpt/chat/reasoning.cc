#include "gpt/chat/reasoning.h"

#include <algorithm>
#include <array>
#include <span>

#include "text/partial_marker.h"

namespace hark::gpt {
namespace {

using Form = ReasoningMarkers::Form;
using Texts = std::span<const std::string_view>;

// The first whose end is found is the model's.
constexpr ReasoningMarkers kMarkers[] = {
    {Form::channels, "<|channel|>analysis<|message|>", "<|end|>"},  // gpt-oss
    {Form::tags, "<think>", "</think>"},  // Qwen3, DeepSeek-R1, SmolLM3 and others
    {Form::tags, "[THINK]", "[/THINK]"},  // Magistral
    {Form::tags, "<seed:think>", "</seed:think>"},
};

constexpr std::string_view kMessage = "<|message|>", kChannel = "<|channel|>", kRecipient = " to=";
// What ends a text of a channel.
constexpr std::array<std::string_view, 5> kTextEnds = {"<|end|>", "<|return|>", "<|call|>",
                                                       "<|start|>", kChannel};
constexpr std::array<std::string_view, 7> kChannelTokens = {
    "<|start|>", kChannel, kMessage, "<|constrain|>", "<|end|>", "<|return|>", "<|call|>"};

// ` to=functions.NAME` up to a space or the next token: NAME.
std::string recipient_of(std::string_view header) {
    std::string_view name = header.substr(header.find(kRecipient) + kRecipient.size());
    name = name.substr(0, std::min(name.find(' '), name.find("<|")));
    constexpr std::string_view kFunctions = "functions.";
    if (name.starts_with(kFunctions)) name.remove_prefix(kFunctions.size());
    return std::string(name);
}

}  // namespace

const ReasoningMarkers* reasoning_markers(const ChatTemplate& chat, const Tokenizer& tokenizer) {
    // A channel's own name need not be in the template.
    const auto key = [](const ReasoningMarkers& m) {
        return m.form == Form::channels ? kChannel : m.end;
    };
    for (const ReasoningMarkers& markers : kMarkers)
        if (chat.has_text(key(markers))) return &markers;
    for (const ReasoningMarkers& markers : kMarkers)
        if (tokenizer.id_of(key(markers))) return &markers;
    return nullptr;
}

std::vector<int32_t> marker_tokens(const ReasoningMarkers& markers, const Tokenizer& tokenizer) {
    const std::array<std::string_view, 2> tags = {markers.begin, markers.end};
    std::vector<int32_t> ids;
    for (const std::string_view text : markers.form == Form::tags ? Texts(tags) : kChannelTokens)
        if (const auto id = tokenizer.id_of(text); id && tokenizer.is_special(*id))
            ids.push_back(*id);
    return ids;
}

ReasoningSplitter::ReasoningSplitter(const ReasoningMarkers* markers, bool opened)
    : markers_(markers),
      state_(!markers                          ? State::answer
             : opened                          ? State::reasoning
             : markers->form == Form::channels ? State::header
                                               : State::before),
      at_start_(markers) {}

ReasoningSplitter::Parts ReasoningSplitter::push(std::string_view text) {
    held_ += text;
    Parts parts;
    while (step(false, parts)) {
    }
    return parts;
}

ReasoningSplitter::Parts ReasoningSplitter::finish() {
    Parts parts;
    while (step(true, parts)) {
    }
    return parts;
}

bool ReasoningSplitter::step(bool ended, Parts& parts) {
    if (state_ == State::before) return begin_text(ended);
    if (state_ == State::header) return read_header(ended);
    return read_text(ended, parts);
}

// Only the beginning of an answer may open its reasoning: elsewhere the marker is text.
bool ReasoningSplitter::begin_text(bool ended) {
    const size_t at = std::min(held_.find_first_not_of(" \n"), held_.size());
    const std::string_view rest = std::string_view(held_).substr(at);
    const bool opens = rest.starts_with(markers_->begin);
    if (!opens && !ended && markers_->begin.starts_with(rest)) return false;
    if (opens) held_.erase(0, at + markers_->begin.size());
    state_ = opens ? State::reasoning : State::answer;
    at_start_ = opens;
    return true;
}

// <|start|>assistant to=functions.f<|channel|>commentary<|message|>: parts of it may be missing.
bool ReasoningSplitter::read_header(bool ended) {
    const size_t end = held_.find(kMessage);
    if (end == held_.npos) {
        if (!ended) return false;
        // A text without any header is the answer.
        const bool is_text = !has_texts_ && held_.find(kChannel) == held_.npos;
        if (!is_text) held_.clear();
        state_ = State::answer;
        return is_text;
    }
    const std::string_view header = std::string_view(held_).substr(0, end);
    const bool is_analysis = header.find("<|channel|>analysis") != header.npos;
    const bool is_call = header.find(kRecipient) != header.npos;
    if (is_call) tool_texts_.push_back({recipient_of(header), ""});
    state_ = is_call ? State::call : is_analysis ? State::reasoning : State::answer;
    held_.erase(0, end + kMessage.size());
    has_texts_ = at_start_ = true;
    return true;
}

bool ReasoningSplitter::read_text(bool ended, Parts& parts) {
    if (at_start_) {
        held_.erase(0, std::min(held_.find_first_not_of('\n'), held_.size()));
        if (held_.empty()) return false;
    }
    const bool channels = markers_ && markers_->form == Form::channels;
    const bool has_end = channels || state_ == State::reasoning;
    const Texts ends = channels ? Texts(kTextEnds) : has_end ? Texts(&markers_->end, 1) : Texts();
    size_t at = held_.npos;
    std::string_view end;
    for (const std::string_view one : ends)
        if (const size_t found = held_.find(one); found < at) at = found, end = one;
    const bool found = at != held_.npos;
    if (!found) at = ended ? held_.size() : partial_marker(held_, ends);
    // Line ends before the marker belong to it; it may come yet.
    size_t text = at;
    while (has_end && text > 0 && held_[text - 1] == '\n') --text;
    add(std::string_view(held_).substr(0, text), parts);
    if (!found) {
        held_.erase(0, ended ? held_.size() : text);
        return false;
    }
    // The next header may begin with what ends this text.
    held_.erase(0, at + (end == kChannel ? 0 : end.size()));
    state_ = channels ? State::header : State::answer;
    at_start_ = true;
    return true;
}

void ReasoningSplitter::add(std::string_view text, Parts& parts) {
    if (text.empty()) return;
    if (state_ == State::call) {
        tool_texts_.back().arguments += text;
        at_start_ = false;
        return;
    }
    const bool is_answer = state_ == State::answer;
    std::string& to = is_answer ? parts.answer : parts.reasoning;
    bool& has_text = is_answer ? has_answer_ : has_reasoning_;
    if (at_start_ && has_text) to += "\n\n";
    to += text;
    has_text = true;
    at_start_ = false;
}

SplitAnswer split_reasoning(const ReasoningMarkers* markers, bool opened, std::string_view text) {
    ReasoningSplitter splitter(markers, opened);
    SplitAnswer parts{splitter.push(text), {}};
    const ReasoningSplitter::Parts rest = splitter.finish();
    parts.reasoning += rest.reasoning;
    parts.answer += rest.answer;
    parts.tool_texts = splitter.tool_texts();
    return parts;
}

}  // namespace hark::gpt
