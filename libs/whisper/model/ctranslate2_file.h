// Models as CTranslate2's converter writes them, which is what faster-whisper reads.
#pragma once

#include "whisper/model/model_file.h"

namespace hark::whisper {

// A directory with model.bin, config.json (alignment heads) and tokenizer.json, vocabulary.json or
// vocabulary.txt. Matrices are f32, f16, bf16, or int8 with a scale a row, which are taken as f32.
// Throws Error naming file and tensor.
// Source: OpenNMT/CTranslate2 python/ctranslate2/specs/model_spec.py, _serialize, and
// src/models/model.cc.
std::unique_ptr<ModelFile> open_ctranslate2(const std::filesystem::path& directory);

}  // namespace hark::whisper
