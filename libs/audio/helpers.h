// Parts of a recording that other threads decode and resample.
#pragma once

#include <cstdint>
#include <memory>

namespace hark {

struct AudioBlock;

// What the samples of a part become, while it is decoded.
class PartSink {
  public:
    virtual ~PartSink() = default;
    // Takes the samples of the pre-roll and, after begin(), of the part. Throws Error if the
    // recording's own thread has to resample it.
    virtual void push(const AudioBlock& block) = 0;
    virtual void begin() = 0;
};

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
    // The first sample that is pushed is the recording's `position`, per channel, counted from
    // where its format has changed last.
    virtual std::shared_ptr<PartSink> make_sink(int64_t position) = 0;
    // Lets a thread that has nothing else to do decode the part, if it is still there. The oldest
    // input's parts come first.
    virtual void offer(std::weak_ptr<SharedPart> part) = 0;
};

}  // namespace hark
