// Which files of a repository are a model.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <map>
#include <set>

#include "core/error.h"
#include "formats/tensor_source.h"
#include "hub/repository.h"

namespace hark::models {
namespace {

constexpr const char* kConfig = "config.json";
constexpr const char* kWeights = "model.safetensors";
constexpr const char* kCtranslate2 = "model.bin";
// Not every repository has all of them. Opening the model shows whether one is missing.
constexpr const char* kSmallFiles[] = {"generation_config.json",
                                       "preprocessor_config.json",
                                       "processor_config.json",
                                       "tokenizer.json",
                                       "tokenizer.model",
                                       "tokenizer_config.json",
                                       "special_tokens_map.json",
                                       "added_tokens.json",
                                       "vocab.json",
                                       "merges.txt",
                                       "vocabulary.json",
                                       "vocabulary.txt",
                                       "normalizer.json",
                                       "chat_template.jinja",
                                       "chat_template.json",
                                       "modules.json",
                                       "sentence_bert_config.json",
                                       "config_sentence_transformers.json"};
constexpr std::string_view kPooling = "_Pooling/config.json";  // after a number
constexpr size_t kShown = 40;  // names in a message

// The files of a model: one, or all parts of one that gguf-split has split.
using Parts = std::vector<ListedFile>;

bool is_pooling(const std::string& name) {
    return name.size() > kPooling.size() && name.ends_with(kPooling) &&
           name.find('/') == name.rfind('/');
}

bool is_alone(const std::string& name) { return name.ends_with(".gguf") || name.ends_with(".bin"); }

// The two numbers of NAME-00001-of-00003.gguf; count 0 for another name.
struct PartNumber {
    std::string whole;  // "NAME.gguf"
    int number = 1, count = 0;
};

PartNumber part_number(const std::string& name) {
    constexpr std::string_view kForm = "-00001-of-00003.gguf";
    PartNumber part = {name, 1, 0};
    if (name.size() <= kForm.size()) return part;
    const std::string end = name.substr(name.size() - kForm.size());
    int used = 0;
    const bool fits =
        std::sscanf(end.c_str(), "-%5d-of-%5d.gguf%n", &part.number, &part.count, &used) == 2 &&
        static_cast<size_t>(used) == end.size() && part.number >= 1 && part.number <= part.count;
    if (!fits) return {name, 1, 0};
    part.whole = name.substr(0, name.size() - kForm.size()) + ".gguf";
    return part;
}

// All models in files of their own, by name; a split one by its first part's.
std::map<std::string, Parts> models_in_files(const Repository& repository) {
    std::map<std::pair<std::string, int>, std::map<int, ListedFile>> groups;
    for (const ListedFile& file : repository.files) {
        if (!is_alone(file.name)) continue;
        const PartNumber part = part_number(file.name);
        groups[{part.whole, part.count}].emplace(part.number, file);
    }
    std::map<std::string, Parts> models;
    for (const auto& [whole, parts] : groups) {
        Parts& model = models[parts.begin()->second.name];
        for (const auto& [number, file] : parts) model.push_back(file);
    }
    return models;
}

bool is_letter_or_digit(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

std::string upper(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return text;
}

// Whether `name` has `type` between other characters than letters and digits; after it no `_`
// either, so that Q4_K is not in Q4_K_M.
bool has_type(const std::string& name, const std::string& type) {
    const std::string text = upper(name), wanted = upper(type);
    for (size_t at = text.find(wanted); at != text.npos; at = text.find(wanted, at + 1)) {
        const size_t end = at + wanted.size();
        const bool begins = at == 0 || !is_letter_or_digit(text[at - 1]);
        const bool ends =
            end == text.size() || (!is_letter_or_digit(text[end]) && text[end] != '_');
        if (begins && ends) return true;
    }
    return false;
}

// Whether the file is a language model: not the part that reads images.
bool is_gguf_model(const std::string& name) {
    const std::string local = name.substr(name.rfind('/') + 1);
    return name.ends_with(".gguf") && !local.starts_with("mmproj");
}

// Whether a word begins as the types do: Q4, IQ4, TQ1, F16, BF16, MXFP4.
bool is_type(const std::string& word) {
    for (const std::string begin : {"Q", "IQ", "TQ", "F", "BF", "MXFP"})
        if (word.starts_with(begin) && word.size() > begin.size() &&
            std::isdigit(static_cast<unsigned char>(word[begin.size()])))
            return true;
    return false;
}

// The type in a GGUF file's name, in capitals: its last word that is one, or what such a word ends
// with after an underscore; else empty.
std::string type_in(const std::string& name) {
    std::string found, word;
    for (const char c : upper(name.substr(0, name.rfind('.'))) + "-") {
        if (is_letter_or_digit(c) || c == '_') {
            word += c;
            continue;
        }
        for (size_t at = 0;; ++at) {
            if (is_type(word.substr(at))) found = word.substr(at);
            if (is_type(word.substr(at)) || (at = word.find('_', at)) == word.npos) break;
        }
        word.clear();
    }
    return found;
}

std::string listed(const std::vector<std::string>& names) {
    std::string text;
    for (size_t i = 0; i < std::min(names.size(), kShown); ++i)
        text += (i == 0 ? "" : ", ") + names[i];
    return names.size() > kShown ? text + ", ..." : text;
}

std::vector<std::string> names_of(const std::map<std::string, Parts>& models) {
    std::vector<std::string> names;
    for (const auto& [name, parts] : models) names.push_back(name);
    return names;
}

// "Q4_K_M, Q8_0"; the names of files in which none is found.
std::string types_of(const std::map<std::string, Parts>& models) {
    std::set<std::string> types;
    for (const auto& [name, parts] : models)
        if (is_gguf_model(name)) types.insert(type_in(name).empty() ? name : type_in(name));
    return listed({types.begin(), types.end()});
}

void check_whole(const Parts& parts, const std::string& name) {
    const int count = part_number(parts.front().name).count;
    require(count == 0 || parts.size() == static_cast<size_t>(count), name, ": ",
            parts.front().name, ": expected ", count, " parts, found ", parts.size());
    for (const ListedFile& file : parts)
        require(!file.local_name().starts_with('.'), name, ": ", file.name,
                ": expected a name that does not begin with a dot");
}

}  // namespace

std::string ListedFile::local_name() const {
    return is_pooling(name) ? name : name.substr(name.rfind('/') + 1);
}

std::vector<ListedFile> folder_files(const Repository& repository, const std::string& name) {
    std::vector<ListedFile> files;
    const auto add = [&](const char* file) {
        const ListedFile* const found = repository.find(file);
        if (found) files.push_back(*found);
        return found != nullptr;
    };
    const bool has_config = add(kConfig);
    for (const char* file : kSmallFiles) add(file);
    for (const ListedFile& file : repository.files)
        if (is_pooling(file.name)) files.push_back(file);
    if (has_config && (add(kWeights) || add(kSafetensorsIndex) || add(kCtranslate2))) return files;
    const std::string types = types_of(models_in_files(repository));
    require(types.empty(), name, ": the repository holds GGUF files; give ", name, ":TYPE or ",
            name, ":FILE (it has ", types, ")");
    std::vector<std::string> names;
    for (const ListedFile& file : repository.files) names.push_back(file.name);
    fail(name, ": expected ", kConfig, " and ", kWeights, " or ", kSafetensorsIndex,
         ", or GGUF files, found ", names.empty() ? "no files" : listed(names));
}

std::vector<ListedFile> selected_files(const Repository& repository, const RepositoryName& name) {
    const std::map<std::string, Parts> models = models_in_files(repository);
    const std::string& wanted = name.selection;
    std::map<std::string, Parts> found;
    const bool by_file = is_alone(wanted);
    for (const auto& [first, parts] : models) {
        const bool is_it =
            by_file ? std::any_of(parts.begin(), parts.end(),
                                  [&](const ListedFile& file) {
                                      return file.name == wanted || file.local_name() == wanted;
                                  })
                    : is_gguf_model(first) && has_type(first, wanted);
        if (is_it) found.emplace(first, parts);
        if (by_file && is_it && first == wanted) {
            found = {{first, parts}};
            break;
        }
    }
    if (found.empty()) {
        const std::string has = by_file ? listed(names_of(models)) : types_of(models);
        fail(name.repository, by_file ? ": no file '" : ": no GGUF file of type '", wanted,
             "' (it has ", has.empty() ? "no GGUF files" : has, ")");
    }
    require(found.size() == 1, name.repository, ": '", wanted, "' is in the names of ",
            found.size(), " files; give one of them after the colon: ", listed(names_of(found)));
    check_whole(found.begin()->second, name.repository);
    return found.begin()->second;
}

}  // namespace hark::models
