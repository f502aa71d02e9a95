#include "gpt/samples.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>

#include "core/error.h"
#include "core/io.h"

namespace hark::gpt {
namespace {

struct Closing {
    int fd;
    ~Closing() { ::close(fd); }
};

// Parameters in memory as a file would give them.
class ParameterSource : public TensorSource {
  public:
    ParameterSource(const ParameterLayout& layout, const Tensor& parameters)
        : values_(parameters.as<float>()) {
        for (const ParameterLayout::Entry& entry : layout.entries()) entries_[entry.name] = &entry;
    }

    Tensor take(const std::string& name, std::initializer_list<int64_t> shape) override {
        const ParameterLayout::Entry& entry = *entries_.at(name);
        return Tensor(values_ + entry.offset, Dtype::f32, shape);
    }
    bool has(const std::string& name) const override { return entries_.contains(name); }
    std::string where() const override { return "the run's parameters"; }
    void forget_taken() override {}
    bool stores_out_in() const override { return true; }

  private:
    float* values_;
    std::map<std::string, const ParameterLayout::Entry*> entries_;
};

}  // namespace

std::string sample_text(Context& ctx, const Config& config, const ParameterLayout& layout,
                        const Tensor& parameters, const Bpe& bpe, const GenerateOptions& options,
                        const std::string& prompt, uint64_t index) {
    const Arena::Scope scope(ctx.arena);
    ParameterSource source(layout, parameters);
    const Model model =
        read_model(source, config, precision_of("f32"), ctx.arena.source(), ctx.threads);
    Generator generate(ctx, model, bpe, options);
    return prompt + generate(prompt, index, {}).text;
}

void append_sample(const std::filesystem::path& file, int64_t step, const std::string& text) {
    const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    require(fd >= 0, file.string(), ": cannot open: ", std::strerror(errno));
    const Closing closing{fd};
    ByteWriter out(fd, file.string());
    out.write(concat("step ", step, ":\n", text, "\n\n"));
    out.flush();
}

}  // namespace hark::gpt
