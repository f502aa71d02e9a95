#include "eval/transcripts.h"

#include <filesystem>
#include <map>

#include "core/error.h"
#include "core/files/files.h"
#include "core/json/json.h"
#include "text/lines.h"
#include "text/unicode.h"

namespace hark {
namespace {

constexpr size_t kMaxInputBytes = size_t{1} << 30;

using Key = std::pair<std::string, std::string>;  // source or file name, channel

Key key_of(const Transcript& transcript) { return {transcript.source, transcript.channel}; }

Key stem_of(const Transcript& transcript) {
    return {std::filesystem::path(transcript.source).stem().string(), transcript.channel};
}

// Thai, Lao, Myanmar, Khmer, kana and Han with their punctuation and wide forms.
bool is_written_without_spaces(char32_t c) {
    const auto between = [c](char32_t first, char32_t last) { return c >= first && c <= last; };
    return between(0xE00, 0xEFF) || between(0x1000, 0x109F) || between(0x1780, 0x17FF) ||
           between(0x2E80, 0x312F) || between(0x3190, 0x9FFF) || between(0xF900, 0xFAFF) ||
           between(0xFF00, 0xFF9F) || between(0x20000, 0x3FFFF);
}

void append_text(std::string& text, const std::string& more) {
    const auto needs_space = [](char32_t c) {
        return !is_space(c) && !is_written_without_spaces(c);
    };
    if (!text.empty() && !more.empty()) {
        size_t last = text.size() - 1;
        while (last > 0 && (static_cast<unsigned char>(text[last]) & 0xC0) == 0x80) --last;
        if (needs_space(to_code_points(text.substr(last)).front()) &&
            needs_space(to_code_points(more).front()))
            text += ' ';
    }
    text += more;
}

// One line's transcript. Throws Error where it is none.
Transcript parse_line(std::string_view line, const std::string& where) {
    const nlohmann::json root = parse_json_object(line, where);
    const auto string_at = [&](const char* key) -> std::string {
        const auto found = root.find(key);
        if (found == root.end()) return "";
        require(found->is_string(), where, ": ", key, ": expected a string, found ",
                found->type_name());
        return found->get<std::string>();
    };
    require(root.contains("source"), where, ": expected a string named source, found none");
    require(root.contains("text") || root.contains("error"), where,
            ": expected a string named text, or error, found neither");
    Transcript transcript{string_at("source")};
    if (root.contains("channel")) transcript.channel = string_at("channel");
    transcript.text = string_at("text");
    transcript.error = string_at("error");
    return transcript;
}

}  // namespace

std::string Transcript::name() const {
    return channel == "0" ? source : concat(source, " (channel ", channel, ")");
}

std::vector<Transcript> parse_transcripts(std::string_view lines, const std::string& where,
                                          std::vector<std::string>& problems) {
    std::vector<Transcript> transcripts;
    std::map<Key, size_t> places;
    for_each_line(lines, [&](std::string_view line, size_t number) {
        if (line.find_first_not_of(" \t") == line.npos) return;
        try {
            Transcript found = parse_line(line, concat(where, ": line ", number));
            const auto [place, is_new] = places.try_emplace(key_of(found), transcripts.size());
            if (is_new) {
                transcripts.push_back(std::move(found));
                return;
            }
            Transcript& known = transcripts[place->second];
            append_text(known.text, found.text);
            if (known.error.empty()) known.error = found.error;
        } catch (const Error& problem) {
            problems.push_back(problem.what());
        }
    });
    return transcripts;
}

std::vector<Transcript> read_references(const std::string& path) {
    std::vector<std::string> problems;
    std::vector<Transcript> references = parse_transcripts(read_file_or_pipe(path), path, problems);
    require(problems.empty(), problems.empty() ? "" : problems.front());
    require(!references.empty(), path, ": expected a line of JSON for each recording, found none");
    for (const Transcript& reference : references)
        require(reference.error.empty(), path, ": ", reference.name(),
                ": expected what was said, found the error '", reference.error, "'");
    return references;
}

std::vector<Transcript> read_hypotheses(ByteReader& in, std::vector<std::string>& problems) {
    std::string text;
    char piece[1 << 16];
    while (const size_t got = in.read_some(piece, sizeof piece)) {
        text.append(piece, got);
        require(text.size() <= kMaxInputBytes, in.name(), ": more than ", kMaxInputBytes >> 30,
                " GiB of transcripts");
    }
    std::vector<Transcript> hypotheses = parse_transcripts(text, in.name(), problems);
    for (const Transcript& hypothesis : hypotheses)
        if (!hypothesis.error.empty())
            problems.push_back(hypothesis.name() + ": " + hypothesis.error);
    return hypotheses;
}

TranscriptPairs pair_transcripts(const std::vector<Transcript>& references,
                                 const std::vector<Transcript>& hypotheses) {
    std::map<Key, size_t> by_key;
    std::map<Key, std::vector<size_t>> by_stem;
    std::map<Key, int> hypotheses_of_stem;
    for (size_t i = 0; i < references.size(); ++i) {
        by_key[key_of(references[i])] = i;
        by_stem[stem_of(references[i])].push_back(i);
    }
    for (const Transcript& hypothesis : hypotheses) ++hypotheses_of_stem[stem_of(hypothesis)];

    TranscriptPairs pairs;
    pairs.hypotheses.resize(references.size(), nullptr);
    for (const Transcript& hypothesis : hypotheses) {
        const auto same = by_key.find(key_of(hypothesis));
        const Key stem = stem_of(hypothesis);
        const auto similar = by_stem.find(stem);
        if (same != by_key.end())
            pairs.hypotheses[same->second] = &hypothesis;
        else if (similar != by_stem.end() && similar->second.size() == 1 &&
                 hypotheses_of_stem[stem] == 1)
            pairs.hypotheses[similar->second.front()] = &hypothesis;
        else
            pairs.extra.push_back(&hypothesis);
    }
    return pairs;
}

}  // namespace hark
