// Checkpoints as torch.save writes them (since PyTorch 1.6): a zip archive of a pickle, which says
// what the tensors are, and of their storages.
// Source: pytorch torch/serialization.py, _save, and torch/_utils.py, _rebuild_tensor_v2.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/files/mapped_file.h"
#include "formats/pickle.h"
#include "formats/safetensors.h"
#include "formats/stored_zip.h"

namespace hark {

class TorchFile {
  public:
    // Maps the file and reads its pickle, of which no code is run. Throws Error naming the file and
    // what it holds that no file of tensors does.
    explicit TorchFile(const std::filesystem::path& path);

    // The whole numbers of the dictionary `key` in the outermost one. Throws Error if there is
    // no such dictionary, or something else in it.
    std::map<std::string, int64_t> numbers(const std::string& key) const;
    // The tensors of the dictionary `key`, by their names; `begin` and `end` count from the file's
    // first byte. Throws Error naming the tensor: not contiguous, out of its storage, or lying
    // across another one.
    std::map<std::string, TensorEntry> tensors(const std::string& key) const;

    // The values are in the file. Throws Error for a dtype that hark does not compute with.
    Tensor tensor(const TensorEntry& entry) const;
    // Lets the tensor's pages go once its values have been taken.
    void forget(const TensorEntry& entry) const {
        file_.forget(entry.begin, entry.end - entry.begin);
    }
    const std::string& name() const { return file_.name(); }

  private:
    struct Storage {
        std::string dtype;
        ZipMember place;
        int64_t width;  // bytes of a number
    };

    std::string_view bytes() const;
    Pickle read_pickle();
    const PickleValue& dictionary(const std::string& key) const;
    TensorEntry tensor_of_value(const PickleValue& value, const std::string& at) const;
    Storage storage_of(const PickleValue& value, const std::string& at) const;
    const PickleValue& argument(const PickleValue& call, size_t i, PickleValue::Kind kind,
                                const std::string& at) const;
    std::vector<int64_t> whole_numbers(const PickleValue& tuple, const std::string& at) const;

    MappedFile file_;
    std::map<std::string, ZipMember> members_;
    std::string folder_;  // of all members: "archive/"
    Pickle pickle_;
};

}  // namespace hark
