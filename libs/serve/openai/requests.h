// The JSON requests of OpenAI's API, read. Every function throws WebError 400 that names the field
// that is wrong.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "serve/text/text_job.h"

namespace hark::serve {

// Of /v1/chat/completions and /v1/completions.
struct TextQuery {
    std::string model;
    bool is_chat = false;
    bool streams = false, streams_usage = false;
    bool echoes = false;           // the prompt before its answer
    bool one_call = false;         // of a tool per answer, at most
    int64_t samples = 1;           // answers per prompt
    int64_t max_tokens = 0;        // of an answer, if the settings have none; 0: what fits
    std::vector<TextOrIds> texts;  // of a completion
    gpt::Prompt prompt;            // the chat, or a completion's settings
};
TextQuery read_chat(const std::string& body);
TextQuery read_completion(const std::string& body);

struct EmbeddingQuery {
    std::string model;
    std::vector<TextOrIds> texts;
    bool is_base64 = false;
    int64_t dimensions = 0;  // 0: all
};
EmbeddingQuery read_embedding(const std::string& body);

struct TokenizeQuery {
    std::string model;
    std::string text;
    bool add_specials = true;
};
TokenizeQuery read_tokenize(const std::string& body);

struct DetokenizeQuery {
    std::string model;
    std::vector<int32_t> ids;
};
DetokenizeQuery read_detokenize(const std::string& body);

}  // namespace hark::serve
