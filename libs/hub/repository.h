// A repository of models as its server tells of it, and which of its files are a model.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hub/http_headers.h"

namespace hark::models {

// OWNER/NAME[@REVISION][:FILE or TYPE]
struct RepositoryName {
    std::string repository;  // "OWNER/NAME"
    std::string revision;    // branch, tag or commit; empty: main
    std::string selection;   // a file's name or a GGUF type, "Q4_K_M"; empty: the whole model

    // The folder's name in user_models(), and what --model takes: "OWNER/NAME:Q4_K_M".
    std::string installed() const;
};

// Throws UsageError for another form: parts of ASCII letters, digits and -._, a revision of visible
// ASCII characters without "..", a file without "..".
RepositoryName parse_repository_name(const std::string& text);

struct ListedFile {
    std::string name;   // in the repository: with folders
    RemoteFile remote;  // not found: the list does not say its size and hash
    // Its path in the model's folder: the name alone, but "1_Pooling/config.json".
    std::string local_name() const;
};

struct Repository {
    std::string commit;   // 40 hexadecimal digits
    std::string license;  // "apache-2.0"; empty if none is stated
    std::vector<ListedFile> files;

    const ListedFile* find(std::string_view name) const;
};

// The identifier of a licence, at most 64 letters, digits, spaces and -._+()/; empty for another
// text: it is shown on terminals.
std::string license_word(const std::string& text);

// Reads the answer of /api/models/OWNER/NAME/revision/REVISION?blobs=true. Throws Error that begins
// with `where`: another form, a file's name that is absolute, has "..", a backslash, control
// characters or bytes that are not UTF-8, or is longer than 255 bytes in a part or 1,024 in all.
// Source: huggingface.co/docs/hub/api, and huggingface_hub's hf_api.py (ModelInfo, RepoSibling).
Repository parse_repository(std::string_view text, const std::string& where);

// The files of a folder that hark opens, without the parts that an index names: config.json, those
// of the tokenizer and of sentence-transformers that there are, and model.safetensors, else its
// index, else a CTranslate2 model. Throws Error if there is no such model; it names the GGUF types
// if there are some.
std::vector<ListedFile> folder_files(const Repository& repository, const std::string& name);

// The GGUF file (all its parts) or other model file that `selection` names: a whole name, or a type
// that is in the name as a word of its own, of any case. Throws Error that lists the candidates if
// there is none or several, and for a part that is missing.
std::vector<ListedFile> selected_files(const Repository& repository, const RepositoryName& name);

}  // namespace hark::models
