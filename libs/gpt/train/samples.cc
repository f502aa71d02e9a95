#include "gpt/train/samples.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>

#include "core/error.h"
#include "core/files/files.h"
#include "core/files/io.h"
#include "gpt/answers/generate.h"
#include "gpt/decoder/model.h"
#include "text/bpe.h"

namespace hark::gpt {
namespace {

struct Closing {
    int fd;
    ~Closing() { ::close(fd); }
};

// Parameters in memory as a source of tensors.
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
    void release_tensors() override {}
    bool stores_out_in() const override { return true; }

  private:
    float* values_;
    std::map<std::string, const ParameterLayout::Entry*> entries_;
};

// The step of the sample that begins at `at` of `text`; nullopt if none does.
std::optional<int64_t> step_at(const std::string& text, size_t at) {
    constexpr std::string_view kHeading = "step ";
    if (text.compare(at, kHeading.size(), kHeading) != 0) return std::nullopt;
    int64_t step = 0;
    const char* end = text.data() + text.size();
    const auto [rest, problem] = std::from_chars(text.data() + at + kHeading.size(), end, step);
    const bool whole = problem == std::errc() && std::string_view(rest, end).starts_with(":\n");
    return whole ? std::optional(step) : std::nullopt;
}

}  // namespace

std::string sample_text(Context& ctx, const DecoderConfig& config, const ParameterLayout& layout,
                        const Tensor& parameters, const Bpe& bpe, const GenerateOptions& options,
                        const std::string& prompt, uint64_t index) {
    const Arena::Scope scope(ctx.arena);
    ParameterSource source(layout, parameters);
    const Model model =
        read_model(source, config, precision_of("f32"), ctx.arena.source(), ctx.threads);
    const Tokenizer tokenizer = Tokenizer::from_bpe(bpe, "the run's tokenizer");
    // A prompt longer than the context keeps its end. The answer ends where the context does.
    std::vector<int32_t> ids = tokenizer.encode(prompt, {.add_specials = true});
    const int64_t context = config.n_positions;
    if (std::ssize(ids) > context)
        ids.erase(ids.begin(), ids.end() - context + std::min(options.max_tokens, context / 2));
    GenerateOptions fitting = options;
    fitting.max_tokens = std::min(options.max_tokens, context - std::ssize(ids) + 1);
    fitting.seed = static_cast<int64_t>(static_cast<uint64_t>(options.seed) + index);
    Generator generate(ctx, model, tokenizer, fitting);
    const Completion answer = generate(ids, fitting);
    require(answer.error.empty(), answer.error);
    return prompt + answer.text;
}

void append_sample(const std::filesystem::path& file, int64_t step, const std::string& text) {
    const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    require(fd >= 0, file.string(), ": cannot open: ", std::strerror(errno));
    const Closing closing{fd};
    ByteWriter out(fd, file.string());
    out.write(concat("step ", step, ":\n", text, "\n\n"));
    out.flush();
}

int64_t cut_samples(const std::filesystem::path& file, int64_t step) {
    if (!std::filesystem::exists(file)) return -1;
    const std::string all = read_file(file);
    int64_t last = -1;
    size_t end = 0;  // of what stays
    while (const auto found = step_at(all, end)) {
        size_t next = end;
        do next = all.find("\n\n", next + 1);
        while (next != all.npos && next + 2 < all.size() && !step_at(all, next + 2));
        if (*found > step || next == all.npos) {
            write_file(file, all.substr(0, end));
            break;
        }
        last = *found;
        end = next + 2;
    }
    return last;
}

}  // namespace hark::gpt
