#include "gpt/train/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "core/files/files.h"
#include "core/files/io.h"
#include "core/json/json.h"
#include "formats/safetensors.h"
#include "gpt/families/model_folder.h"
#include "gpt/train/trainer.h"
#include "kernels/comm/processes.h"
#include "kernels/runtime/transfer.h"

namespace hark::gpt {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWeights = "model.safetensors";
constexpr const char* kOptimizer = "optimizer.safetensors";
constexpr const char* kTraining = "training.json";
constexpr const char* kUnfinished = ".unfinished-";
std::string name_of_step(int64_t step) {
    const std::string digits = std::to_string(step);
    return "step-" + std::string(digits.size() < 8 ? 8 - digits.size() : 0, '0') + digits;
}

// Flushes the folder's entries to the disk.
void flush_folder(const fs::path& folder) {
    const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    require(fd >= 0, folder.string(), ": cannot open: ", std::strerror(errno));
    const bool flushed = ::fsync(fd) == 0;
    const int reason = errno;
    ::close(fd);
    require(flushed, folder.string(), ": cannot flush to the disk: ", std::strerror(reason));
}

// The step of a checkpoint's folder; nullopt for any other folder.
std::optional<int64_t> step_of(const fs::path& folder) {
    const std::string name = folder.filename().string();
    if (!name.starts_with("step-")) return std::nullopt;
    int64_t step = 0;
    const char* end = name.data() + name.size();
    const auto [rest, problem] = std::from_chars(name.data() + 5, end, step);
    if (problem != std::errc() || rest != end || name_of_step(step) != name) return std::nullopt;
    return step;
}

// Floats of a moment in a file: in the parameters' order, without the vocabulary's padding.
int64_t stored_size(const ParameterLayout& layout) {
    int64_t size = 0;
    for (const ParameterLayout::Entry& entry : layout.entries()) size += entry.stored_size();
    return size;
}

void write_moments(Context& ctx, const fs::path& file, const ParameterLayout& layout,
                   const std::function<Tensor(StateTensor)>& gather) {
    SafetensorsHeader header;
    const int64_t size = stored_size(layout);
    const uint64_t bytes = static_cast<uint64_t>(size) * sizeof(float);
    header.tensors = {{"m", "F32", {size}, 0, bytes}, {"v", "F32", {size}, bytes, 2 * bytes}};
    header.data_bytes = 2 * bytes;
    AtomicFile out(file);
    ByteWriter writer(out.fd(), out.name());
    writer.write(format_safetensors_header(header));
    for (const StateTensor moment : {StateTensor::m, StateTensor::v}) {
        const Scratch scratch(ctx);
        const Tensor values = gather(moment);
        for (const ParameterLayout::Entry& entry : layout.entries())
            writer.write(values.as<float>() + entry.offset,
                         static_cast<size_t>(entry.stored_size()) * sizeof(float));
    }
    writer.flush();
    out.commit();
}

void read_moment(const SafetensorsFile& file, const char* name, const ParameterLayout& layout,
                 const Tensor& to) {
    const TensorEntry* entry = file.find(name);
    require(entry != nullptr, file.name(), ": expected a tensor '", name, "', found none");
    const Tensor stored = file.tensor(*entry);
    const int64_t size = stored_size(layout);
    require(stored.dtype == Dtype::f32 && stored.size() == size, file.name(), ": '", name,
            "': expected f32 (", size, "), found ", stored);
    const float* from = stored.as<float>();
    std::fill_n(to.as<float>(), to.size(), 0.0f);
    for (const ParameterLayout::Entry& of : layout.entries()) {
        std::copy_n(from, of.stored_size(), to.as<float>() + of.offset);
        from += of.stored_size();
    }
}

}  // namespace

RunFolder::~RunFolder() {
    if (lock_ >= 0) ::close(lock_);
}

void RunFolder::claim() {
    std::error_code failed;
    fs::create_directories(path_, failed);
    require(!failed, path_.string(), ": cannot make the folder: ", failed.message());
    const std::string lock = (path_ / ".lock").string();
    lock_ = ::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    require(lock_ >= 0, lock, ": cannot open: ", std::strerror(errno));
    require(::flock(lock_, LOCK_EX | LOCK_NB) == 0, path_.string(),
            ": another gpt-train is running in this folder");
    for (const char* name : {kWeights, "model.safetensors.index.json", "pytorch_model.bin"})
        require(newest() || !fs::exists(fs::symlink_status(path_ / name)) ||
                    fs::is_symlink(path_ / name),
                path_.string(), ": expected a folder for a new run, found a model's ", name,
                "; give --output-dir a folder of its own");
    for (const fs::directory_entry& entry : fs::directory_iterator(path_))
        if (entry.path().filename().string().starts_with(kUnfinished)) fs::remove_all(entry.path());
}

void RunFolder::describe(const DecoderConfig& config, const fs::path& tokenizer) const {
    describe_model(path_, config, tokenizer, Dtype::f32);
}

std::vector<fs::path> RunFolder::checkpoints() const {
    std::vector<fs::path> found;
    if (!fs::is_directory(path_)) return found;
    for (const fs::directory_entry& entry : fs::directory_iterator(path_))
        if (entry.is_directory() && step_of(entry.path())) found.push_back(entry.path());
    std::sort(found.begin(), found.end(),
              [](const fs::path& a, const fs::path& b) { return step_of(a) < step_of(b); });
    return found;
}

// Renames first: a run that is killed leaves a complete checkpoint, or one that claim() removes.
void RunFolder::prune(int64_t keep) const {
    const std::vector<fs::path> all = checkpoints();
    for (size_t i = 0; i + static_cast<size_t>(keep) < all.size(); ++i) {
        const fs::path going = path_ / (kUnfinished + all[i].filename().string());
        fs::rename(all[i], going);
        fs::remove_all(going);
    }
}

void RunFolder::link_newest() const {
    const fs::path target = newest().value().filename() / kWeights, link = path_ / kWeights;
    if (fs::is_symlink(link) && fs::read_symlink(link) == target) return;
    const fs::path fresh = path_ / (kUnfinished + std::string("link"));
    fs::remove(fresh);
    fs::create_symlink(target, fresh);
    fs::rename(fresh, link);
    flush_folder(path_);
}

std::optional<fs::path> RunFolder::newest() const {
    const std::vector<fs::path> all = checkpoints();
    return all.empty() ? std::nullopt : std::optional(all.back());
}

RunState RunFolder::load(Trainer& trainer, const RunState& expected) const {
    const fs::path folder = newest().value();
    const std::string where = (folder / kTraining).string();
    const nlohmann::json root = parse_json(read_file(folder / kTraining, size_t{1} << 20), where);
    const auto text = [&](const char* key) {
        require(root.contains(key) && root[key].is_string(), where, ": expected a string '", key,
                "'");
        return root[key].get<std::string>();
    };
    require(root.is_object() && root.contains("step") && root["step"].is_number_unsigned(), where,
            ": expected a whole number 'step'");
    const auto numbers = [&](const char* key) {
        const bool array = root.contains(key) && root[key].is_array() &&
                           std::all_of(root[key].begin(), root[key].end(),
                                       [](const auto& value) { return value.is_number(); });
        require(array, where, ": expected an array of numbers '", key, "'");
        require(root[key].size() <= OutlierWindow::kValues, where, ": '", key,
                "': expected at most ", OutlierWindow::kValues, " numbers, found ",
                root[key].size());
        return OutlierWindow(root[key].get<std::vector<double>>());
    };
    const RunState state = {root["step"].get<int64_t>(),
                            text("run"),
                            text("data"),
                            {numbers("losses"), numbers("norms")}};
    require(state.step == step_of(folder), where, ": expected the step of its folder, found ",
            state.step);
    const auto [begun_with, found] = differences(state.identity, expected.identity);
    require(state.identity == expected.identity, where, ": this run was begun with ", begun_with,
            " (got ", found, "); give the same, or another --output-dir for a new run");
    require(state.data == expected.data, where, ": this run was begun on the tokens ", state.data,
            " (got ", expected.data, "); give the same files under the same names");
    const ParameterLayout& layout = trainer.layout();
    SafetensorsDirectory source(folder, layout.prefix());
    trainer.fill(StateTensor::parameters, [&](Tensor all) { layout.read(all, source); });
    const SafetensorsFile moments(folder / kOptimizer);
    trainer.fill(StateTensor::m, [&](Tensor all) { read_moment(moments, "m", layout, all); });
    trainer.fill(StateTensor::v, [&](Tensor all) { read_moment(moments, "v", layout, all); });
    if (lock_ >= 0) link_newest();  // if the run was killed between rename and link
    return state;
}

void RunFolder::save(Context& ctx, const ParameterLayout& layout, const RunState& state,
                     const std::function<Tensor(StateTensor)>& gather, int64_t keep) const {
    const std::string name = name_of_step(state.step);
    const fs::path unfinished = path_ / (kUnfinished + name);
    try {
        fs::remove_all(unfinished);
        fs::create_directory(unfinished);
        {
            const Scratch scratch(ctx);
            layout.write(gather(StateTensor::parameters), unfinished / kWeights);
        }
        write_moments(ctx, unfinished / kOptimizer, layout, gather);
        const nlohmann::ordered_json root = {{"step", state.step},
                                             {"run", state.identity},
                                             {"data", state.data},
                                             {"losses", state.outliers.losses.values()},
                                             {"norms", state.outliers.norms.values()}};
        write_file(unfinished / kTraining, root.dump(2) + "\n");
        copy_description(path_, unfinished);
        flush_folder(unfinished);
        fs::remove_all(path_ / name);
        fs::rename(unfinished, path_ / name);
        flush_folder(path_);
        link_newest();
        prune(keep);
    } catch (const fs::filesystem_error& error) {
        std::error_code ignored;
        fs::remove_all(unfinished, ignored);
        fail(error.path1().string(), ": cannot save the checkpoint: ", error.code().message());
    } catch (...) {
        std::error_code ignored;
        fs::remove_all(unfinished, ignored);
        throw;
    }
}

}  // namespace hark::gpt
