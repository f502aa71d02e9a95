// From the file of a model to its service.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/context.h"
#include "serve/models/model_pool.h"
#include "serve/models/server_thread.h"

namespace hark {
class Console;
namespace gpt {
class ModelFile;
}
}  // namespace hark

namespace hark::serve {

struct ServeOptions;
struct TextModelOptions;

class ModelReader {
  public:
    ModelReader(const ServeOptions& options, Console& console);

    // `is_named`: on the command line. Then --chat-template is its template, and a --context that
    // it does not have is an error. Throws Error as the readers do.
    OpenedModel open(const std::string& path, bool is_named) const;
    // Throws Error as the readers do, and OutOfMemory.
    std::shared_ptr<ServedModel> read(const std::string& name, const OpenedModel& opened,
                                      int64_t cache_bytes) const;
    // Bytes that all models may take: of the memory that was free when the server began, on the
    // rank that had the least.
    int64_t memory() const { return memory_; }
    // What the bits of a product depend on: the GPU, or the processor's kernels and threads.
    std::string computes_with() const;
    // Before the first model's begin().
    void use(ServerThread thread) { *thread_ = std::move(thread); }

  private:
    TextModelOptions text_options(const gpt::ModelFile& file, bool is_named) const;

    const ServeOptions& options_;
    Console& console_;
    Context ctx_;  // of the device
    int64_t memory_;
    std::shared_ptr<ServerThread> thread_ = std::make_shared<ServerThread>();
};

}  // namespace hark::serve
