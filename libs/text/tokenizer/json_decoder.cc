// tokenizer.json's decoder. What it does to each token is done once, when the file is read.
#include "core/error.h"
#include "text/byte_alphabet.h"
#include "text/tokenizer/json_reader.h"
#include "text/utf8.h"

namespace hark {

using nlohmann::json;

namespace {

using TokenStep = std::function<void(std::string& token, bool first)>;

size_t leading(std::string_view text, std::string_view character, int64_t most) {
    size_t bytes = 0;
    while (most-- > 0 && text.substr(bytes).starts_with(character)) bytes += character.size();
    return bytes;
}

size_t trailing(std::string_view text, std::string_view character, int64_t most) {
    size_t bytes = 0;
    while (most-- > 0 && text.substr(0, text.size() - bytes).ends_with(character))
        bytes += character.size();
    return bytes;
}

// The parts must be in the order: steps on single tokens, bytes, Fuse, Strip.
class DecoderReader {
  public:
    explicit DecoderReader(const JsonReader& reader) : reader_(reader) {}

    void add(const json& part, const std::string& kind) {
        if (kind == "Fuse")
            stage_ = std::max(stage_, Stage::fused);
        else if (kind == "Strip")
            strip(part);
        else if (kind == "ByteLevel" || kind == "ByteFallback")
            bytes(kind);
        else if (kind == "Replace")
            replace(part);
        else if (kind == "Metaspace")
            metaspace(part);
        else
            reader_.refuse("decoder", kind);
    }

    void fill(DecodingTable& table, const std::vector<std::string>& spellings) {
        table.rules = rules_;
        for (size_t id = 0; id < spellings.size(); ++id) {
            TokenText& token = table.tokens[id];
            token.text = made(spellings[id], false);
            if (rules_.first_differs) token.first_text = made(spellings[id], true);
            if (rules_.bytes != DecodingRules::Bytes::none)
                token.byte = static_cast<int16_t>(byte_of_token(token.text));
        }
    }

  private:
    enum class Stage { tokens, bytes, fused };

    std::string made(std::string token, bool first) const {
        for (const TokenStep& step : steps_) step(token, first);
        return byte_level_ ? bytes_from_alphabet(token) : token;
    }
    void require_stage(Stage most, const char* kind) const {
        require(stage_ <= most, reader_.where(), ": the decoder ", kind,
                " is not supported at this place of its sequence");
    }
    void bytes(const std::string& kind) {
        require_stage(Stage::tokens, kind.c_str());
        stage_ = Stage::bytes;
        byte_level_ = kind == "ByteLevel";
        if (!byte_level_) rules_.bytes = DecodingRules::Bytes::all_or_nothing;
    }
    void replace(const json& part) {
        require_stage(Stage::tokens, "Replace");
        const auto step = replace_step(reader_.pattern(part), reader_.text(part, "content"));
        steps_.push_back([step](std::string& token, bool) { step(token); });
    }
    // The first token loses every replacement character, unless none was put there.
    void metaspace(const json& part) {
        require_stage(Stage::tokens, "Metaspace");
        const std::string from = reader_.text_or(part, "replacement", std::string(kMetaspace));
        require(count_code_points(from) == 1, reader_.where(),
                ": replacement: expected one character, found '", from, "'");
        const bool prefix = reader_.flag(part, "add_prefix_space", true);
        const bool drops =
            reader_.text_or(part, "prepend_scheme", prefix ? "always" : "never") != "never";
        const auto space = replace_step(Pattern::literal(from), " ");
        const auto nothing = replace_step(Pattern::literal(from), "");
        steps_.push_back(
            [=](std::string& token, bool first) { first&& drops ? nothing(token) : space(token); });
        rules_.first_differs = rules_.first_differs || drops;
    }
    void strip(const json& part) {
        const std::string content = reader_.text(part, "content");
        require(count_code_points(content) == 1, reader_.where(),
                ": content: expected one character, found '", content, "'");
        const int64_t start = reader_.integer(part, "start", 0, 0, INT32_MAX);
        const int64_t stop = reader_.integer(part, "stop", 0, 0, INT32_MAX);
        if (stage_ == Stage::tokens) {
            steps_.push_back([=](std::string& token, bool) {
                token.erase(0, leading(token, content, start));
                token.erase(token.size() - trailing(token, content, stop));
            });
            return;
        }
        require(stage_ == Stage::fused && !byte_level_ && stop == 0 && rules_.strips == 0,
                reader_.where(), ": the decoder Strip is not supported at this place of its ",
                "sequence or with stop ", stop);
        rules_.stripped = content;
        rules_.strips = static_cast<size_t>(start);
    }

    const JsonReader& reader_;
    Stage stage_ = Stage::tokens;
    bool byte_level_ = false;
    std::vector<TokenStep> steps_;
    DecodingRules rules_;
};

}  // namespace

void read_decoder(const JsonReader& reader, const json& decoder, TokenizerParts& parts) {
    DecoderReader plan(reader);
    for_each_part(reader, decoder, "decoder", "decoders",
                  [&](const json& part, const std::string& kind) { plan.add(part, kind); });
    plan.fill(parts.decoding, parts.spellings);
    parts.decoding.rules.joined_by_spaces = decoder.is_null();
}

}  // namespace hark
