# The CUDA compiler, for all folders that have kernels.

# Machine code for the architectures named, and PTX that a newer driver compiles for newer ones.
# HARK_CUDA=ON (preset cuda) is for distribution; AUTO builds in half the time.
if(CMAKE_CUDA_ARCHITECTURES MATCHES "(^|;)(90(-|;|$)|native)")
    message(FATAL_ERROR "CMAKE_CUDA_ARCHITECTURES: expected 90a for compute capability 9.0, whose code the "
        "kernels for it take for granted, found ${CMAKE_CUDA_ARCHITECTURES}")
endif()
if(NOT CMAKE_CUDA_ARCHITECTURES)
    if(HARK_CUDA STREQUAL "AUTO")
        set(CMAKE_CUDA_ARCHITECTURES 80 90a-real)
    else()
        set(CMAKE_CUDA_ARCHITECTURES 80 86-real 90a-real)
    endif()
endif()
if(HARK_NVCC AND NOT CMAKE_CUDA_COMPILER)
    set(CMAKE_CUDA_COMPILER ${HARK_NVCC})
endif()
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
enable_language(CUDA)
set(CMAKE_CUDA_STANDARD 20)
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know nvcc's flag
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
# Debian 12's CMake takes a library for granted that CUDA 13 no longer has, and that hark does not use.
if(NOT TARGET CUDA::nvToolsExt)
    add_library(CUDA::nvToolsExt INTERFACE IMPORTED)
endif()
find_package(CUDAToolkit 12.4 REQUIRED)
# For packages: 13.0, and the first driver that runs what it compiles.
string(REGEX MATCH "^[0-9]+\\.[0-9]+" version ${CUDAToolkit_VERSION})
set(HARK_CUDA_VERSION ${version} CACHE INTERNAL "version of CUDA")
if(CUDAToolkit_VERSION VERSION_LESS 13)
    set(HARK_CUDA_DRIVER 525 CACHE INTERNAL "oldest driver for it")
else()
    set(HARK_CUDA_DRIVER 580 CACHE INTERNAL "oldest driver for it")
endif()

option(HARK_CUDA_UNOPTIMISED "Compile kernels without optimisation, for a machine that cannot run them" OFF)
