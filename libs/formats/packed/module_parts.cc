#include "formats/packed/module_parts.h"

#include "core/half.h"

namespace hark {
namespace {

std::string shape_text(const std::string& dtype, const std::vector<int64_t>& shape) {
    std::string text = dtype + " (";
    for (size_t i = 0; i < shape.size(); ++i) text += concat(i > 0 ? ", " : "", shape[i]);
    return text + ")";
}

template <class T>
void widen_part(const RawTensor& raw, std::vector<float>& values) {
    for (size_t i = 0; i < values.size(); ++i)
        values[i] = to_float(load_value<T>(raw.data, static_cast<int64_t>(i)));
}

}  // namespace

std::string ModuleParts::place(const std::string& part) const {
    const RawTensor raw = folder_.find_raw(name(part));
    return raw ? concat(raw.file->name(), ": tensor '", raw.entry->name, "': ")
               : concat(folder_.where(), ": tensor '", folder_.prefix(), name(part), "': ");
}

std::string ModuleParts::full_name(const std::string& part) const {
    const RawTensor raw = take(part);
    return raw.entry->name.substr(0, raw.entry->name.size() - part.size() - 1);
}

bool ModuleParts::has(const std::string& part, const char* dtype) const {
    const RawTensor raw = folder_.find_raw(name(part));
    return raw && raw.entry->dtype == dtype;
}

RawTensor ModuleParts::take(const std::string& part) const {
    const RawTensor raw = folder_.take_raw(name(part));
    check(static_cast<bool>(raw), part, "expected a part of a packed matrix, found none");
    return raw;
}

const std::byte* ModuleParts::take(const std::string& part, const char* dtype,
                                   const std::vector<int64_t>& shape) const {
    const RawTensor raw = take(part);
    check(raw.entry->dtype == dtype && raw.entry->shape == shape, part, "expected ",
          shape_text(dtype, shape), ", found ", shape_text(raw.entry->dtype, raw.entry->shape));
    return raw.data;
}

FloatPart ModuleParts::floats(const std::string& part) const {
    const RawTensor raw = take(part);
    FloatPart floats;
    floats.shape = raw.entry->shape;
    int64_t count = 1;
    for (const int64_t n : raw.entry->shape) count *= n;
    floats.values.resize(static_cast<size_t>(count));
    const std::string& dtype = raw.entry->dtype;
    check(dtype == "F32" || dtype == "F16" || dtype == "BF16", part,
          "expected F32, F16 or BF16, found ", dtype);
    if (dtype == "F32") {
        widen_part<float>(raw, floats.values);
    } else if (dtype == "F16") {
        widen_part<f16_t>(raw, floats.values);
        floats.dtype = Dtype::f16;
    } else {
        widen_part<bf16_t>(raw, floats.values);
        floats.dtype = Dtype::bf16;
    }
    return floats;
}

FloatPart ModuleParts::floats(const std::string& part, const std::vector<int64_t>& shape) const {
    FloatPart found = floats(part);
    check(found.shape == shape, part, "expected the shape ", shape_text("", shape).substr(1),
          ", found ", shape_text("", found.shape).substr(1));
    return found;
}

}  // namespace hark
