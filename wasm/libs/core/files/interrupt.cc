// Without threads nothing sets an Interrupt while somebody waits.
#include "core/files/io.h"

namespace hark {

Interrupt::Interrupt() : event_(0) {}

Interrupt::~Interrupt() = default;

void Interrupt::set() { event_ = 1; }

bool Interrupt::wait_for(int) const { return event_ == 0; }

}  // namespace hark
