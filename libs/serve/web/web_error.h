// Why a request is refused: a status, and what the answer says of it.
#pragma once

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
};

}  // namespace hark::serve
