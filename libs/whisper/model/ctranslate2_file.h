// Models from CTranslate2's converter, the format of faster-whisper.
#pragma once

#include "whisper/model/model_file.h"

namespace hark::whisper {

// Opens a directory with model.bin, config.json (alignment heads) and tokenizer.json,
// vocabulary.json or vocabulary.txt. Matrices of int8, one scale per row, and int16, one scale,
// become f32. Throws Error naming file and tensor.
// Source: CTranslate2 specs/model_spec.py, _serialize and _quantize; src/models/model.cc.
std::unique_ptr<ModelFile> open_ctranslate2(const std::filesystem::path& directory);

}  // namespace hark::whisper
