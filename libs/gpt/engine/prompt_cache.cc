#include "gpt/engine/prompt_cache.h"

#include <utility>

#include "core/error.h"
#include "core/files/files.h"
#include "gpt/decoder/model.h"
#include "gpt/engine/sequence.h"

namespace hark::gpt {
namespace {

constexpr const char *kCacheVersion = "2", *kKind = "kv_cache";

// The keys or the values of a layer.
struct CachePart {
    std::string name;
    Tensor cache;
    size_t layer;
};

std::vector<CachePart> parts_of(const KvCache& cache) {
    std::vector<CachePart> parts;
    for (size_t layer = 0; layer < cache.keys.size(); ++layer) {
        parts.push_back({concat("keys.", layer), cache.keys[layer], layer});
        if (cache.values[layer])
            parts.push_back({concat("values.", layer), cache.values[layer], layer});
    }
    return parts;
}

// The rows of n tokens of a cache as a tensor of the stream. Blocks are bytes there.
TensorEntry entry_of(const CachePart& part, int64_t n) {
    const Tensor& cache = part.cache;
    const auto row = static_cast<int64_t>(row_bytes(cache.dtype, cache.dim(3)));
    TensorEntry entry;
    entry.name = part.name;
    entry.dtype = is_quantized(cache.dtype) ? "U8" : safetensors_name(cache.dtype);
    entry.shape = {cache.dim(1), n, is_quantized(cache.dtype) ? row : cache.dim(3)};
    entry.end = static_cast<uint64_t>(cache.dim(1) * n * row);
    return entry;
}

// Entries follow one another in the stream.
void add_entry(SafetensorsHeader& header, TensorEntry entry) {
    entry.begin += header.data_bytes;
    entry.end += header.data_bytes;
    header.data_bytes = entry.end;
    header.tensors.push_back(std::move(entry));
}

// Rows of another order of sums are other bits.
const char* name_of_sums(const Context& ctx) {
    return ctx.has_independent_rows() ? "true" : "false";
}

const std::string& text_of(const Document& document, const char* key) {
    const auto found = document.header.metadata.find(key);
    require(found != document.header.metadata.end(), document.where,
            ": this is no prompt's cache: no `", key, "` in its metadata");
    return found->second;
}

// How many of the newest tokens the stream has of a part. Throws where the shape is another one.
int64_t rows_in(const Document& document, const TensorEntry& found, const CachePart& part,
                int64_t tokens) {
    const int64_t claimed = found.shape.size() == 3 ? found.shape[1] : 0;
    const int64_t n = 0 < claimed && claimed <= tokens ? claimed : 0;
    const TensorEntry wanted = entry_of(part, n);
    require(n > 0 && found.dtype == wanted.dtype && found.shape == wanted.shape, document.where,
            ": ", part.name, ": expected ", wanted.dtype, " (", wanted.shape[0], ", 1 to ", tokens,
            " tokens, ", wanted.shape[2], "), found another type or shape");
    return n;
}

}  // namespace

void write_prompt_cache(Context& ctx, const Sequence& sequence, std::span<const float> logits,
                        ByteWriter& out) {
    const KvCache& cache = sequence.cache();
    const std::vector<int32_t>& tokens = sequence.tokens();
    const int64_t n = std::ssize(tokens);
    const std::vector<CachePart> parts = parts_of(cache);
    SafetensorsHeader header;
    header.metadata = {{"hark", kCacheVersion},
                       {"kind", kKind},
                       {"model", fingerprint_of(ctx, sequence.model())},
                       {"dtype", name_of(sequence.model().precision.cache)},
                       {"batch_invariant", name_of_sums(ctx)}};
    add_entry(header, {"tokens", "I32", {n}, 0, tokens.size() * sizeof(int32_t)});
    add_entry(header, {"logits", "F32", {std::ssize(logits)}, 0, logits.size_bytes()});
    const auto first_of = [&](const CachePart& part) {
        return cache.first_held(cache.group_of(part.layer), 0, n);
    };
    for (const CachePart& part : parts) add_entry(header, entry_of(part, n - first_of(part)));
    out.write(format_safetensors_header(header));
    out.write(tokens.data(), tokens.size() * sizeof(int32_t));
    out.write(logits.data(), logits.size_bytes());
    std::vector<std::byte> rows;
    for (const CachePart& part : parts) {
        const int64_t first = first_of(part);
        rows.resize(static_cast<size_t>(cache.rows_bytes(n - first)));
        cache.read_rows(ctx, rows.data(), part.cache, part.layer, 0, first, n - first);
        out.write(rows.data(), rows.size());
    }
    out.flush();
}

PromptCacheReader::PromptCacheReader(Context& ctx, const Model& model, ByteReader& in)
    : model_(model), in_(in) {
    std::optional<Document> document = TensorStreamReader(in).next_header();
    require(document.has_value(), in.name(), ": expected a prompt's cache, found nothing");
    document_ = std::move(*document);
    check_settings(ctx);
    read_tokens();
    read_logits();
}

void PromptCacheReader::check_settings(Context& ctx) const {
    const std::string& where = document_.where;
    require(text_of(document_, "kind") == kKind && text_of(document_, "hark") == kCacheVersion,
            where, ": expected a prompt's cache of version ", kCacheVersion, ", found the kind `",
            text_of(document_, "kind"), "` of version ", text_of(document_, "hark"));
    const char* type = name_of(model_.precision.cache);
    require(text_of(document_, "dtype") == type, where, ": has keys and values in ",
            text_of(document_, "dtype"), ", this run in ", type,
            "; give --kv-dtype, or another file");
    require(text_of(document_, "batch_invariant") == name_of_sums(ctx), where, ": was computed ",
            ctx.has_independent_rows() ? "without" : "with",
            " --batch-invariant; give both runs the same");
    require(text_of(document_, "model") == fingerprint_of(ctx, model_), where,
            ": is of another model, or of other --dtype or --device; give another file");
}

const TensorEntry& PromptCacheReader::entry(size_t i, const std::string& name) const {
    const std::vector<TensorEntry>& entries = document_.header.tensors;
    require(i < entries.size() && entries[i].name == name, document_.where, ": expected `", name,
            "` as tensor ", i + 1, ", found ",
            i < entries.size() ? concat("`", entries[i].name, "`") : "no more");
    return entries[i];
}

void PromptCacheReader::read(void* to, size_t bytes) {
    const size_t got = in_.read(to, bytes);
    require(got == bytes, document_.where, ": the stream ends inside the document");
}

void PromptCacheReader::read_tokens() {
    const TensorEntry& found = entry(0, "tokens");
    const int64_t most = model_.config.n_positions;
    require(found.dtype == "I32" && found.shape.size() == 1 && 0 < found.shape[0] &&
                found.shape[0] <= most,
            document_.where, ": expected tokens I32 (1 to ", most,
            "), found another type or shape");
    tokens_.resize(static_cast<size_t>(found.shape[0]));
    read(tokens_.data(), tokens_.size() * sizeof(int32_t));
    for (const int32_t token : tokens_)
        require(0 <= token && token < model_.config.n_vocab, document_.where,
                ": expected tokens below ", model_.config.n_vocab, ", found ", token);
}

void PromptCacheReader::read_logits() {
    const TensorEntry& found = entry(1, "logits");
    const int64_t n = model_.config.n_vocab;
    require(found.dtype == "F32" && found.shape == std::vector<int64_t>{n}, document_.where,
            ": expected logits F32 (", n, "), found another type or shape");
    logits_.resize(static_cast<size_t>(n));
    read(logits_.data(), logits_.size() * sizeof(float));
}

void PromptCacheReader::read_into(Context& ctx, Sequence& sequence) {
    const std::string& where = document_.where;
    const int64_t n = std::ssize(tokens_);
    require(n <= sequence.context(), where, ": has ", n, " tokens, the context ",
            sequence.context(), "; give a larger --context");
    KvCache& cache = sequence.cache();
    const std::vector<CachePart> parts = parts_of(cache);
    // Layers of a group begin at the same token.
    std::vector<int64_t> first(cache.groups(), -1);
    for (size_t i = 0; i < parts.size(); ++i) {
        int64_t& begin = first[cache.group_of(parts[i].layer)];
        const int64_t found = n - rows_in(document_, entry(i + 2, parts[i].name), parts[i], n);
        require(begin < 0 || begin == found, where, ": ", parts[i].name, ": begins at token ",
                found, ", others of its kind at ", begin);
        begin = found;
    }
    require(document_.header.tensors.size() == parts.size() + 2, where, ": expected ",
            parts.size() + 2, " tensors, found ", document_.header.tensors.size());
    sequence.start_with(tokens_, first);
    try {
        require(cache.holds(0, n), where, ": lacks keys that the next token reads");
        std::vector<std::byte> rows;
        for (const CachePart& part : parts_of(cache)) {  // it has grown
            const int64_t begin = first[cache.group_of(part.layer)];
            rows.resize(static_cast<size_t>(cache.rows_bytes(n - begin)));
            read(rows.data(), rows.size());
            cache.write_rows(ctx, part.cache, rows.data(), part.layer, 0, begin, n - begin);
        }
        require(in_.peek(1).empty(), where, ": expected one prompt's cache, found more after it");
    } catch (...) {
        sequence.clear();  // not all tokens have keys
        throw;
    }
}

PromptCache read_prompt_cache(Context& ctx, Sequence& sequence, const std::filesystem::path& path) {
    const OpenFile file(path);
    ByteReader in(file.fd(), path.string());
    PromptCacheReader reader(ctx, sequence.model(), in);
    reader.read_into(ctx, sequence);
    return {reader.tokens(), reader.logits()};
}

}  // namespace hark::gpt
