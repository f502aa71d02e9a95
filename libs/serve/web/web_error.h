// Why a request is refused: a status, and what the answer says of it.
#pragma once

#include <exception>
#include <string>

#include "core/error.h"

namespace hark::serve {

class WebError : public Error {
  public:
    // `param`: the field that is wrong; `code`: a word for programs. Both may be empty.
    WebError(int status, const std::string& message, std::string param = "", std::string code = "")
        : Error(message), status(status), param(std::move(param)), code(std::move(code)) {}

    int status;
    std::string param, code;
    std::string allow;  // of 405: the methods of this path, "GET, POST"
};

// The answer to a request that this ended: a WebError as it is, 503 if memory did not suffice, else
// 500. `of_error`: the status of another Error.
WebError web_error_of(const std::exception& why, int of_error = 500);

}  // namespace hark::serve
