// There are no libraries to open.
#pragma once

inline constexpr int RTLD_NOW = 0, RTLD_LOCAL = 0, RTLD_GLOBAL = 0;

inline void* dlopen(const char*, int) { return nullptr; }
inline void* dlsym(void*, const char*) { return nullptr; }
inline char* dlerror() { return nullptr; }
