#include "gpt/engine/prompt_cache.h"

#include <cstring>
#include <vector>

#include "core/error.h"
#include "formats/safetensors.h"

namespace hark::gpt {
namespace {

constexpr const char *kCacheVersion = "1", *kKind = "kv_cache";

// The keys or the values of a layer.
struct Part {
    std::string name;
    Tensor cache;
    size_t layer;
};

std::vector<Part> parts_of(const KvCache& cache) {
    std::vector<Part> parts;
    for (size_t layer = 0; layer < cache.keys.size(); ++layer) {
        parts.push_back({concat("keys.", layer), cache.keys[layer], layer});
        if (cache.values[layer])
            parts.push_back({concat("values.", layer), cache.values[layer], layer});
    }
    return parts;
}

// The rows of n tokens of a cache as a tensor of the file. Blocks are bytes there.
TensorEntry entry_of(const Part& part, int64_t n) {
    const Tensor& cache = part.cache;
    const auto row = static_cast<int64_t>(row_bytes(cache.dtype, cache.dim(3)));
    TensorEntry entry;
    entry.name = part.name;
    entry.dtype = is_quantized(cache.dtype) ? "U8" : safetensors_name(cache.dtype);
    entry.shape = {cache.dim(1), n, is_quantized(cache.dtype) ? row : cache.dim(3)};
    entry.end = static_cast<uint64_t>(cache.dim(1) * n * row);
    return entry;
}

// Entries follow one another in the file.
void add_entry(SafetensorsHeader& header, TensorEntry entry) {
    entry.begin += header.data_bytes;
    entry.end += header.data_bytes;
    header.data_bytes = entry.end;
    header.tensors.push_back(std::move(entry));
}

const std::string& text_of(const SafetensorsFile& file, const char* key) {
    const auto found = file.metadata().find(key);
    require(found != file.metadata().end(), file.name(), ": this is no prompt cache: no `", key,
            "` in its metadata");
    return found->second;
}

const TensorEntry& find(const SafetensorsFile& file, const std::string& name) {
    const TensorEntry* entry = file.find(name);
    require(entry != nullptr, file.name(), ": no tensor `", name, "`");
    return *entry;
}

std::vector<int32_t> read_tokens(const SafetensorsFile& file, const Sequence& sequence) {
    const Tensor tensor = file.tensor(find(file, "tokens"));
    require(tensor.dtype == Dtype::i32 && tensor.rank == 1 && tensor.size() > 0, file.name(),
            ": expected tokens i32 (n), found ", tensor);
    require(tensor.size() <= sequence.context(), file.name(), ": has ", tensor.size(),
            " tokens, the context ", sequence.context(), "; give a larger --context");
    std::vector<int32_t> tokens(static_cast<size_t>(tensor.size()));
    std::memcpy(tokens.data(), tensor.data, tensor.bytes());
    for (const int32_t token : tokens)
        require(0 <= token && token < sequence.model().config.n_vocab, file.name(),
                ": expected tokens below ", sequence.model().config.n_vocab, ", found ", token);
    return tokens;
}

// How many of the newest tokens the file has of a part. Throws where the shape is another one.
int64_t rows_in(const SafetensorsFile& file, const Part& part, int64_t tokens) {
    const TensorEntry& found = find(file, part.name);
    const int64_t n = found.shape.size() == 3 ? found.shape[1] : 0;
    const TensorEntry wanted = entry_of(part, n);
    require(found.dtype == wanted.dtype && found.shape == wanted.shape && 0 < n && n <= tokens,
            file.name(), ": ", part.name, ": expected ", wanted.dtype, " (", wanted.shape[0],
            ", 1 to ", tokens, " tokens, ", wanted.shape[2], "), found another type or shape");
    return n;
}

}  // namespace

void write_prompt_cache(Context& ctx, const Sequence& sequence, ByteWriter& out) {
    const KvCache& cache = sequence.cache();
    const std::vector<int32_t>& tokens = sequence.tokens();
    const int64_t n = std::ssize(tokens);
    const std::vector<Part> parts = parts_of(cache);
    SafetensorsHeader header;
    header.metadata = {{"hark", kCacheVersion},
                       {"kind", kKind},
                       {"model", fingerprint_of(ctx, sequence.model())},
                       {"dtype", name_of(sequence.model().precision.cache)}};
    add_entry(header, {"tokens", "I32", {n}, 0, tokens.size() * sizeof(int32_t)});
    const auto first_of = [&](const Part& part) {
        return cache.first_held(cache.group_of(part.layer), 0, n);
    };
    for (const Part& part : parts) add_entry(header, entry_of(part, n - first_of(part)));
    out.write(format_safetensors_header(header));
    out.write(tokens.data(), tokens.size() * sizeof(int32_t));
    std::vector<std::byte> rows;
    for (const Part& part : parts) {
        const int64_t first = first_of(part);
        rows.resize(static_cast<size_t>(cache.rows_bytes(n - first)));
        cache.read_rows(ctx, rows.data(), part.cache, part.layer, 0, first, n - first);
        out.write(rows.data(), rows.size());
    }
    out.flush();
}

void read_prompt_cache(Context& ctx, Sequence& sequence, const std::filesystem::path& path) {
    const SafetensorsFile file(path);
    require(text_of(file, "kind") == kKind && text_of(file, "hark") == kCacheVersion, file.name(),
            ": expected a prompt cache of version ", kCacheVersion, ", found the kind `",
            text_of(file, "kind"), "` of version ", text_of(file, "hark"));
    const char* type = name_of(sequence.model().precision.cache);
    require(text_of(file, "dtype") == type, file.name(), ": has keys and values in ",
            text_of(file, "dtype"), ", this run in ", type, "; give --kv-dtype, or another file");
    require(text_of(file, "model") == fingerprint_of(ctx, sequence.model()), file.name(),
            ": is of another model, or of other --dtype or --device; give another file");
    const std::vector<int32_t> tokens = read_tokens(file, sequence);
    const int64_t n = std::ssize(tokens);
    KvCache& cache = sequence.cache();
    // Layers of a group begin at the same token.
    std::vector<int64_t> first(cache.groups(), -1);
    for (const Part& part : parts_of(cache)) {
        int64_t& begin = first[cache.group_of(part.layer)];
        const int64_t found = n - rows_in(file, part, n);
        require(begin < 0 || begin == found, file.name(), ": ", part.name, ": begins at token ",
                found, ", others of its kind at ", begin);
        begin = found;
    }
    sequence.start_with(tokens, first);
    for (const Part& part : parts_of(cache)) {
        const int64_t begin = first[cache.group_of(part.layer)];
        cache.write_rows(ctx, part.cache, file.data(find(file, part.name)), part.layer, 0, begin,
                         n - begin);
    }
}

}  // namespace hark::gpt
