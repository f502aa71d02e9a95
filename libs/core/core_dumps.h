// Whether the system keeps the memory of a program that breaks.
#pragma once

namespace hark {

// From here on the system writes no dump of this process, which would hold recordings and texts,
// and no other process of the user can trace it.
void forbid_core_dumps();

}  // namespace hark
