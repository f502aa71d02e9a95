// Files of torch.save: the zip archive, the pickle in it, and every tensor that they promise.
#include "core/error.h"
#include "formats/torch_file.h"
#include "fuzz/golden.h"
#include "fuzz/memory_file.h"
#include "fuzz/target.h"
#include "support/torch_writer.h"

using namespace hark;
using namespace hark::fuzz;

static std::vector<std::string> torch_file_seeds() {
    const std::string pickle = test::pickled({{"n_mels", 80}, {"n_vocab", 64}},
                                             {{"a", "HalfStorage", "0", 12, {2, 3}, {3, 1}, 6},
                                              {"b", "HalfStorage", "0", 12, {6}, {1}, 0},
                                              {"c", "FloatStorage", "1", 1, {}, {}, 0}});
    const test::ZipMembers members = {{"x/data.pkl", pickle},
                                      {"x/byteorder", "little"},
                                      {"x/data/0", std::string(24, '\x3c')},
                                      {"x/data/1", std::string(4, '\x3c')}};
    return {test::zip_of(members), test::zip_of(members, 0, true),
            content(golden_folder() / "model_files/small.pt")};
}

static int torch_file_input(const uint8_t* data, size_t size) {
    const fuzz::MemoryFile input(data, size);
    try {
        const TorchFile file(input.path());
        unsigned sum = file.numbers("dims").size() & 1;
        for (const auto& [name, entry] : file.tensors("model_state_dict")) {
            const Tensor tensor = file.tensor(entry);
            const uint8_t* bytes = static_cast<const uint8_t*>(tensor.data);
            for (size_t i = 0; i < tensor.bytes(); ++i) sum += bytes[i];
            file.forget(entry);
        }
        // Used, so that the reads stay.
        if (sum == 1) return file.name().empty();
    } catch (const Error&) {
    }
    return 0;
}

static const hark::fuzz::Target kTorchFile{"torch_file", torch_file_seeds, torch_file_input};
