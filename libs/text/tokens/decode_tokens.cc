#include "text/tokens/decode_tokens.h"

#include <algorithm>

#include "core/error.h"
#include "text/token_file.h"

namespace hark {
namespace {

constexpr size_t kPiece = size_t{1} << 16;

// An id's error does not know the id's place.
template <class F>
void naming(const std::string& name, const F& f) {
    try {
        f();
    } catch (const Error& wrong) {
        fail(name, ": ", wrong.what());
    }
}

// The numbers of a text that comes in pieces.
class IdsTextParser {
  public:
    IdsTextParser(std::string name, TokenDecoder& decoder)
        : name_(std::move(name)), decoder_(decoder) {}

    void push(std::string_view piece) {
        for (const char c : piece) {
            if (c >= '0' && c <= '9') {
                id_ = std::max<int64_t>(id_, 0) * 10 + (c - '0');
                require(id_ <= INT32_MAX, name_, ": line ", line_, ": expected an id, found ", id_,
                        "...");
                continue;
            }
            require(c == ' ' || c == '\n' || c == '\r' || c == '\t', name_, ": line ", line_,
                    ": expected ids and spaces between them, found the byte ",
                    static_cast<int>(static_cast<unsigned char>(c)));
            take();
            if (c == '\n') end_line();
        }
    }
    void finish() {
        take();
        end_line();
    }

  private:
    void take() {
        if (id_ < 0) return;
        ids_.push_back(static_cast<int32_t>(id_));
        id_ = -1;
        any_ = true;
        if (ids_.size() == kPiece) give();
    }
    void give() {
        naming(concat(name_, ": line ", line_), [&] { decoder_.push(ids_); });
        ids_.clear();
    }
    void end_line() {
        give();
        if (any_) decoder_.end_document();
        any_ = false;
        ++line_;
    }

    std::string name_;
    TokenDecoder& decoder_;
    std::vector<int32_t> ids_;
    int64_t id_ = -1;  // the number that is being read; -1: none
    size_t line_ = 1;
    bool any_ = false;  // ids on this line
};

}  // namespace

TokenDecoder::TokenDecoder(const Tokenizer& tokenizer, Write write)
    : decoder_(tokenizer.decoder()),
      end_of_text_(tokenizer.end_of_text()),
      write_(std::move(write)) {}

void TokenDecoder::text(std::span<const int32_t> ids) {
    if (ids.empty()) return;
    if (between_) write_(kEndOfText);
    between_ = at_start_ = false;
    write_(decoder_->push(ids));
}

void TokenDecoder::push(std::span<const int32_t> ids) {
    while (!ids.empty()) {
        const auto end =
            end_of_text_ ? std::find(ids.begin(), ids.end(), *end_of_text_) : ids.end();
        text(ids.first(static_cast<size_t>(end - ids.begin())));
        ids = ids.subspan(static_cast<size_t>(end - ids.begin()));
        if (ids.empty()) return;
        ids = ids.subspan(1);
        write_(decoder_->finish());
        if (!at_start_) write_(kEndOfText);
        at_start_ = between_ = false;
    }
}

void TokenDecoder::end_document() {
    write_(decoder_->finish());
    between_ = true;
}

void TokenDecoder::finish() { write_(decoder_->finish()); }

void decode_token_file(const std::string& path, TokenDecoder& decoder) {
    if (path == "-") {
        InputFile in(path);
        require(!in.bytes().peek(1).empty(), "no tokens on stdin");
        TokenReader tokens(in.bytes());
        for (;;) {
            const std::vector<int32_t> ids = tokens.next(kPiece);
            if (ids.empty()) return;
            naming("stdin", [&] { decoder.push(ids); });
        }
    }
    const TokenFile file(path);
    std::vector<int32_t> ids;
    for (size_t at = 0; at < file.size(); at += kPiece) {
        ids.resize(std::min(kPiece, file.size() - at));
        file.copy(at, ids.size(), ids.data());
        naming(path, [&] { decoder.push(ids); });
    }
}

void decode_ids_text(const std::string& path, TokenDecoder& decoder) {
    InputFile in(path);
    require(path != "-" || !in.bytes().peek(1).empty(), "no tokens on stdin");
    IdsTextParser parser(in.bytes().name(), decoder);
    std::vector<char> piece(kPiece);
    while (size_t got = in.bytes().read_some(piece.data(), piece.size()))
        parser.push({piece.data(), got});
    parser.finish();
}

}  // namespace hark
