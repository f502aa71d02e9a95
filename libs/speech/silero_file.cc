// Reads the two formats in which Silero VAD's weights are published.
#include <cstring>
#include <map>
#include <string>

#include "core/error.h"
#include "core/files/byte_cursor.h"
#include "core/files/mapped_file.h"
#include "formats/safetensors.h"
#include "speech/silero.h"

namespace hark {
namespace {

constexpr int64_t kHidden = SileroModel::kHidden;
constexpr uint32_t kGgmlMagic = 0x67676d6c;
constexpr uint32_t kMaxName = 256;

struct Wanted {
    const char *safetensors, *ggml;  // its names
    std::vector<int64_t> shape;
};

const std::vector<Wanted>& wanted_tensors() {
    static const std::vector<Wanted> table = {
        {"stft_conv.weight", "_model.stft.forward_basis_buffer", {258, 1, 256}},
        {"conv1.weight", "_model.encoder.0.reparam_conv.weight", {128, 129, 3}},
        {"conv1.bias", "_model.encoder.0.reparam_conv.bias", {128}},
        {"conv2.weight", "_model.encoder.1.reparam_conv.weight", {64, 128, 3}},
        {"conv2.bias", "_model.encoder.1.reparam_conv.bias", {64}},
        {"conv3.weight", "_model.encoder.2.reparam_conv.weight", {64, 64, 3}},
        {"conv3.bias", "_model.encoder.2.reparam_conv.bias", {64}},
        {"conv4.weight", "_model.encoder.3.reparam_conv.weight", {128, 64, 3}},
        {"conv4.bias", "_model.encoder.3.reparam_conv.bias", {128}},
        {"lstm_cell.weight_ih", "_model.decoder.rnn.weight_ih", {4 * kHidden, kHidden}},
        {"lstm_cell.weight_hh", "_model.decoder.rnn.weight_hh", {4 * kHidden, kHidden}},
        {"lstm_cell.bias_ih", "_model.decoder.rnn.bias_ih", {4 * kHidden}},
        {"lstm_cell.bias_hh", "_model.decoder.rnn.bias_hh", {4 * kHidden}},
        {"final_conv.weight", "_model.decoder.decoder.2.weight", {1, kHidden, 1}},
        {"final_conv.bias", "_model.decoder.decoder.2.bias", {1}},
    };
    return table;
}

const Wanted* wanted_named(const std::string& name) {
    for (const Wanted& wanted : wanted_tensors())
        if (name == wanted.safetensors || name == wanted.ggml) return &wanted;
    return nullptr;
}

std::string text_of(const std::vector<int64_t>& shape) {
    std::string text;
    for (int64_t n : shape) text += (text.empty() ? "" : ", ") + std::to_string(n);
    return "(" + text + ")";
}

// ggml files leave out dimensions of 1.
std::vector<int64_t> without_ones(std::vector<int64_t> shape) {
    std::erase(shape, 1);
    return shape;
}

// The tensors found, by their safetensors names, in the shapes wanted.
class Found {
  public:
    explicit Found(std::string file) : file_(std::move(file)) {}

    // Takes a tensor if it is wanted. `data` is aligned for its dtype.
    void add(const std::string& name, const std::vector<int64_t>& shape, Dtype dtype,
             const void* data) {
        const Wanted* wanted = wanted_named(name);
        require(wanted != nullptr, file_, ": no weights of Silero VAD at 16 kHz (got a tensor '",
                name, "')");
        require(without_ones(shape) == without_ones(wanted->shape), file_, ": '", name,
                "': wrong shape (got ", text_of(shape), ", expected ", text_of(wanted->shape), ")");
        require(dtype == Dtype::f32 || dtype == Dtype::f16, file_, ": '", name,
                "': wrong type (got ", safetensors_name(dtype), ", expected F32 or F16)");
        Tensor tensor;
        tensor.data = const_cast<void*>(data);
        tensor.dtype = dtype;
        tensor.rank = static_cast<int>(wanted->shape.size());
        std::copy(wanted->shape.begin(), wanted->shape.end(), tensor.shape.begin());
        require(tensors_.emplace(wanted->safetensors, tensor).second, file_, ": '", name,
                "' is there twice");
    }

    std::shared_ptr<const SileroModel> model() const {
        auto made = std::make_shared<SileroModel>();
        SileroModel& m = *made;
        WeightStore& memory = m.memory;
        try {
            m.basis = memory.matrix({of("stft_conv.weight").reshaped({258, 256})});
            for (size_t i = 0; i < m.convolutions.size(); ++i) {
                const std::string name = "conv" + std::to_string(i + 1);
                m.convolutions[i] = memory.convolution(of(name + ".weight"));
                m.biases[i] = memory.vector({of(name + ".bias")});
            }
            m.input = memory.matrix({of("lstm_cell.weight_ih")});
            m.recurrent = memory.matrix({of("lstm_cell.weight_hh")});
            m.input_bias = memory.vector({of("lstm_cell.bias_ih")});
            m.recurrent_bias = memory.vector({of("lstm_cell.bias_hh")});
            m.output = memory.matrix({of("final_conv.weight").reshaped({1, kHidden})});
            m.output_bias = memory.vector({of("final_conv.bias")});
        } catch (const Error& failure) {
            fail(file_, ": ", failure.what());
        }
        return made;
    }

  private:
    Tensor of(const std::string& name) const {
        const auto found = tensors_.find(name);
        require(found != tensors_.end(), "no weights of Silero VAD at 16 kHz (no tensor '", name,
                "')");
        return found->second;
    }

    std::string file_;
    std::map<std::string, Tensor> tensors_;
};

void read_ggml_header(ByteCursor& in) {
    const auto expect = [&](const char* what, uint32_t wanted) {
        in.what = what;
        in.number<uint32_t>(wanted, wanted);
    };
    expect("magic", kGgmlMagic);
    in.what = "the model's type";
    const std::string_view type = in.take(in.number<uint32_t>(0, kMaxName));
    require(type == "silero-16k", in.place(), ": wrong model (got '", type,
            "', expected silero-16k)");
    in.what = "the version";
    in.take(3 * sizeof(uint32_t));  // the shapes tell the sizes
    expect("window", SileroModel::kStep);
    expect("context", SileroModel::kContext);
    constexpr uint32_t kLayers[4][2] = {{129, 128}, {128, 64}, {64, 64}, {64, 128}};
    expect("encoder layers", 4);
    for (const auto& layer : kLayers) {
        expect("input channels", layer[0]);
        expect("output channels", layer[1]);
        expect("kernel size", 3);
    }
    expect("LSTM input", kHidden);
    expect("LSTM hidden", kHidden);
    expect("last input", kHidden);
    expect("last output", 1);
}

// Source: ggml-org/whisper.cpp, models/convert-silero-vad-to-ggml.py.
std::shared_ptr<const SileroModel> load_ggml(const MappedFile& file) {
    ByteCursor in(file.text(), file.name());
    read_ggml_header(in);
    Found found(file.name());
    std::vector<std::vector<char>> aligned;  // the file's tensors are at any offset
    while (in.left() > 0) {
        in.what = concat("the tensor at byte ", in.at());
        const auto rank = in.number<uint32_t>(0, Tensor::kMaxRank),
                   length = in.number<uint32_t>(0, kMaxName), type = in.number<uint32_t>();
        std::vector<int64_t> shape(rank);
        for (auto n = shape.rbegin(); n != shape.rend(); ++n) *n = in.number<uint32_t>();
        const std::string name(in.take(length));
        in.what = "'" + name + "'";
        require(type <= 1, in.place(), ": wrong type (got ", type, ", expected 0 or 1)");
        uint64_t bytes = type == 0 ? 4 : 2;
        for (int64_t n : shape) {
            bytes *= static_cast<uint64_t>(n);
            require(bytes <= file.size(), in.place(), " ", text_of(shape),
                    " is larger than the file");
        }
        const std::string_view data = in.take(bytes);
        aligned.emplace_back(data.begin(), data.end());
        found.add(name, shape, type == 0 ? Dtype::f32 : Dtype::f16, aligned.back().data());
    }
    return found.model();
}

std::shared_ptr<const SileroModel> load_safetensors(const std::filesystem::path& path) {
    const SafetensorsFile file(path);
    Found found(file.name());
    for (const TensorEntry& entry : file.entries())
        found.add(entry.name, entry.shape, file.tensor(entry).dtype, file.tensor(entry).data);
    return found.model();
}

}  // namespace

std::shared_ptr<const SileroModel> load_silero(const std::filesystem::path& path) {
    const MappedFile file(path);
    uint32_t magic = 0;
    if (file.size() >= sizeof magic) std::memcpy(&magic, file.data(), sizeof magic);
    return magic == kGgmlMagic ? load_ggml(file) : load_safetensors(path);
}

}  // namespace hark
