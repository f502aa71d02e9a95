// Parts of a recording that other threads may decode.
#pragma once

#include <memory>

namespace hark {

// A part that one thread decodes, once.
class SharedPart {
  public:
    virtual ~SharedPart() = default;
    // Whether no thread has begun it.
    virtual bool is_open() const = 0;
    // Decodes it, if it is open. Throws nothing: the recording's own thread decodes a part that has
    // failed again, and meets the error in its place.
    virtual void decode() = 0;
};

class Helpers {
  public:
    virtual ~Helpers() = default;
    // Lets a thread that has nothing else to do decode the part, if it is still there. The oldest
    // input's parts come first.
    virtual void offer(std::weak_ptr<SharedPart> part) = 0;
};

}  // namespace hark
