# The libraries that link the processes of a run: libhark-mpi.so if MPI is found, libhark-nccl.so if
# CUDA and NCCL are found.

# Processes that find one another without MPI. OpenSSL's libcrypto has the proof that they have the
# same token; only gpt-train links it. Libraries are built without it too, as for other systems.
pkg_check_modules(CRYPTO IMPORTED_TARGET libcrypto)
if(CRYPTO_FOUND)
    file(GLOB sources CONFIGURE_DEPENDS comm/rendezvous/*.cc)
    hark_library(rendezvous SOURCES ${sources} LIBS hark_kernels PRIVATE_LIBS PkgConfig::CRYPTO)
endif()

set(HARK_WITH_MPI OFF)
if(NOT HARK_MPI STREQUAL "OFF")
    if(HARK_MPI STREQUAL "AUTO")
        find_package(MPI COMPONENTS C)
    else()
        find_package(MPI REQUIRED COMPONENTS C)
    endif()
    set(HARK_WITH_MPI ${MPI_C_FOUND})
endif()
if(HARK_WITH_MPI)
    hark_plugin(mpi SOURCES comm/mpi_library.cc LIBS MPI::MPI_C COMPONENT cuda)
    target_compile_definitions(hark_mpi PRIVATE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
    set(HARK_MPIEXEC ${MPIEXEC_EXECUTABLE} CACHE INTERNAL "starts the tests of several ranks")
else()
    message(STATUS "No MPI: several processes cannot be started by mpirun or srun")
endif()

if(HARK_WITH_CUDA)
    find_path(HARK_NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
    find_library(HARK_NCCL_LIBRARY nccl HINTS ${CUDAToolkit_LIBRARY_DIR})
    if(HARK_NCCL_INCLUDE_DIR AND HARK_NCCL_LIBRARY)
        hark_plugin(nccl SOURCES comm/nccl_library.cc LIBS ${HARK_NCCL_LIBRARY} CUDA::cudart_static
            COMPONENT cuda)
        target_include_directories(hark_nccl SYSTEM PRIVATE ${HARK_NCCL_INCLUDE_DIR})
        set_target_properties(hark_nccl PROPERTIES
            INSTALL_RPATH "$<$<NOT:$<BOOL:${HARK_PACKAGE}>>:/usr/local/cuda/lib64>")
    else()
        message(STATUS "No NCCL: several GPUs cannot train one model")
    endif()
endif()
