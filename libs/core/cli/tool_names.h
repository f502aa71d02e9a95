// The names of all tools: pages of the manual, and sections of a configuration file.
#pragma once

namespace hark {

inline constexpr const char* kToolNames[] = {
    "audio-decode", "vad",         "mel",        "whisper-transcribe", "whisper-eval",
    "gpt-generate", "gpt-eval",    "gpt-embed",  "gpt-tokenize",       "gpt-train",
    "hark-advise",  "hark-doctor", "hark-model", "hark-redact",        "hark-serve",
    "hark-shard",   "hark-trace"};

}  // namespace hark
