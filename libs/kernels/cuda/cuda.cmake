# The CUDA side of the kernels: libhark-cuda.so.

if(NOT HARK_WITH_CUDA)
    return()
endif()

# All .cu files of all libraries: a kernel of one model is in that model's folder. With HARK_UNITY
# one unit per room, without the sources that take as long as a unit. Unoptimised, most of the time
# is the headers': 16 sources per unit.
file(GLOB_RECURSE HARK_CUDA_SOURCES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/libs/*.cu)
if(HARK_UNITY)
    set(units)
    set(place 0)
    set(alone ${HARK_CUDA_SOURCES})
    list(FILTER alone INCLUDE REGEX "wgmma|tile")
    list(REMOVE_ITEM HARK_CUDA_SOURCES ${alone})
    foreach(source ${HARK_CUDA_SOURCES})
        file(RELATIVE_PATH path ${CMAKE_SOURCE_DIR}/libs ${source})
        get_filename_component(unit ${path} DIRECTORY)
        string(REPLACE "/" "_" unit ${unit})
        if(HARK_CUDA_UNOPTIMISED)
            math(EXPR unit "${place} / 16")
            math(EXPR place "${place} + 1")
        endif()
        list(APPEND units ${unit})
        string(APPEND unit_${unit} "#include \"${path}\"\n")
    endforeach()
    list(REMOVE_DUPLICATES units)
    set(HARK_CUDA_SOURCES ${alone})
    foreach(unit ${units})
        file(CONFIGURE OUTPUT units/${unit}.cu CONTENT "${unit_${unit}}")
        list(APPEND HARK_CUDA_SOURCES ${CMAKE_CURRENT_BINARY_DIR}/units/${unit}.cu)
    endforeach()
endif()
# Without optimisation if that is asked for: a third of the time. Such code calls functions between wgmma,
# and ptxas notes at each that this is slow. cuda_build.sh compiles with optimisation, and fails on any note.
function(hark_compile_quickly target)
    if(HARK_CUDA_UNOPTIMISED)
        target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-Xcicc=-O1;-Xptxas=-O0,-w>)
        set(launcher ${CMAKE_SOURCE_DIR}/libs/kernels/cuda/without_wgmma_notes.sh ${CMAKE_CUDA_COMPILER_LAUNCHER})
        set_target_properties(${target} PROPERTIES CUDA_COMPILER_LAUNCHER "${launcher}")
    endif()
endfunction()

add_library(hark_cuda SHARED ${HARK_CUDA_SOURCES})
target_link_libraries(hark_cuda PRIVATE hark_options hark_core CUDA::cublasLt)
target_compile_options(hark_cuda PRIVATE
    $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wno-missing-field-initializers>)
hark_compile_quickly(hark_cuda)
# The tools have hark_core too: the library hides its own copy. Exceptions still pass, since
# libstdc++ compares types by name.
target_link_options(hark_cuda PRIVATE LINKER:--exclude-libs,ALL LINKER:--as-needed)
set_target_properties(hark_cuda PROPERTIES
    OUTPUT_NAME hark-cuda
    UNITY_BUILD OFF
    CXX_VISIBILITY_PRESET hidden
    CUDA_VISIBILITY_PRESET hidden
    INSTALL_RPATH "$<$<NOT:$<BOOL:${HARK_PACKAGE}>>:/usr/local/cuda/lib64>")
install(TARGETS hark_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/hark COMPONENT cuda)
