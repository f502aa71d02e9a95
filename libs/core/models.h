// Where --model NAME finds a model.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace hark {

// `name` is a path where it contains '/', of a directory or a file. Otherwise the directories NAME
// and `KIND-NAME` (kind "whisper" or "gpt"), then files of these names, NAME.pt and
// ggml-NAME.bin (Whisper) or NAME.gguf (GPT), are looked for under ~/.local/share/hark/models,
// <executable>/../share/hark/models and the source tree's models. An empty name means the default
// that the user has set: the link `KIND-default` in the first of these. Throws Error that lists
// where it has looked, or, without a default, the ways on; or, of a directory without config.json,
// what a model's directory holds and what this one does.
std::filesystem::path find_model(const std::string& name, const std::string& kind);
// The same for a NAME, which has no '/'; empty if there is none.
std::filesystem::path find_named_model(const std::string& name, const std::string& kind);
// Throws Error: there is no NAME of any of these kinds, and where find_named_model() has looked.
[[noreturn]] void fail_unnamed(const std::string& name, const std::vector<std::string>& kinds);

// The folders that a NAME is looked for in, in their order.
std::vector<std::filesystem::path> model_folders();
// The first of them, ~/.local/share/hark/models; empty where $HOME is.
std::filesystem::path user_models();

}  // namespace hark
