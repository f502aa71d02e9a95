// There are no processes to control.
#pragma once

inline constexpr int PR_SET_DUMPABLE = 4;

inline int prctl(int, ...) { return -1; }
