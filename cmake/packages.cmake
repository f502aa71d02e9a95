# Debian packages, by `cpack -G DEB` in a build with HARK_PACKAGE; packages/build.sh does all of it.

if(NOT HARK_PACKAGE)
    return()
endif()
set(HARK_MAINTAINER "the hark authors <hark@packages.invalid>" CACHE STRING "Who answers for the packages")

# package_files: what a package has of itself. Tools first: the bill of materials reads what they link.
set(folder ${CMAKE_BINARY_DIR}/packages)
get_property(tools GLOBAL PROPERTY HARK_TOOLS)
set(programs)
foreach(tool ${tools})
    list(APPEND programs $<TARGET_FILE:${tool}>)
endforeach()
list(APPEND programs $<TARGET_FILE:hark_av>)
add_custom_target(package_files ALL
    COMMAND ${CMAKE_SOURCE_DIR}/packages/files.sh ${folder} ${PROJECT_VERSION} ${HARK_COMMIT} ${HARK_MAINTAINER}
        ${CMAKE_BINARY_DIR}/man
    COMMAND ${CMAKE_SOURCE_DIR}/packages/sbom.sh hark ${PROJECT_VERSION} ${HARK_COMMIT} ${programs}
        > ${folder}/doc/hark/sbom.spdx.json
    VERBATIM)
foreach(tool ${tools})
    add_dependencies(package_files ${tool}-man)
endforeach()
add_dependencies(package_files hark_av)
if(TARGET hark_cuda)
    cmake_path(GET CUDA_cublasLt_LIBRARY PARENT_PATH cuda_libraries)
    set(cuda_files -L ${cuda_libraries})
    if(TARGET hark_nccl)
        cmake_path(GET HARK_NCCL_LIBRARY PARENT_PATH nccl_libraries)
        list(APPEND cuda_files -L ${nccl_libraries} $<TARGET_FILE:hark_nccl>)
        add_dependencies(package_files hark_nccl)
    endif()
    add_custom_command(TARGET package_files POST_BUILD
        COMMAND ${CMAKE_SOURCE_DIR}/packages/sbom.sh hark-cuda ${PROJECT_VERSION} ${HARK_COMMIT} ${cuda_files}
            $<TARGET_FILE:hark_cuda> > ${folder}/doc/hark-cuda/sbom.spdx.json VERBATIM)
    add_dependencies(package_files hark_cuda)
endif()

set(CPACK_PACKAGE_NAME hark)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT ${HARK_MAINTAINER})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
    WORLD_READ WORLD_EXECUTE)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE gzip)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

# hark_package(COMPONENT NAME SECTION DESCRIPTION FIELD VALUE...)
function(hark_package component name section description)
    string(TOUPPER ${component} upper)
    install(DIRECTORY ${folder}/doc/${name} DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc COMPONENT ${component})
    set(fields PACKAGE_NAME ${name} PACKAGE_SECTION ${section} DESCRIPTION "${description}" ${ARGN})
    while(fields)
        list(POP_FRONT fields field value)
        if(field STREQUAL "DESCRIPTION")
            set(CPACK_COMPONENT_${upper}_DESCRIPTION "${value}" PARENT_SCOPE)
        else()
            set(CPACK_DEBIAN_${upper}_${field} "${value}" PARENT_SCOPE)
        endif()
    endwhile()
    list(APPEND CPACK_COMPONENTS_ALL ${component})
    set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} PARENT_SCOPE)
endfunction()

set(CPACK_COMPONENTS_ALL)
hark_package(tools hark sound "speech to text to language model, as small Unix tools
hark writes down what is said in recordings, with Whisper, and passes the
text on to a language model: one command, or tools joined by pipes."
    PACKAGE_SHLIBDEPS ON
    PACKAGE_DEPENDS "curl, jq"
    PACKAGE_RECOMMENDS "hark-models-demo"
    PACKAGE_SUGGESTS "hark-cuda, hark-doc, ffmpeg, gnuplot-nox, parallel")
if(TARGET hark_cuda)
    string(REPLACE . - cuda_dashed ${HARK_CUDA_VERSION})
    # Debian has no cuBLAS of this version: it comes from NVIDIA's packages or installer.
    hark_package(cuda hark-cuda contrib/sound "speech to text to language model (NVIDIA GPUs)
The library by which hark's tools compute on an NVIDIA GPU. It needs a driver
of version ${HARK_CUDA_DRIVER} or newer and the library cuBLASLt of CUDA ${HARK_CUDA_VERSION}, which is in
NVIDIA's package libcublas-${cuda_dashed}. Training on several GPUs takes NVIDIA's NCCL."
        PACKAGE_SHLIBDEPS OFF
        PACKAGE_DEPENDS "hark (= ${PROJECT_VERSION}), libc6 (>= 2.34), libgcc-s1 (>= 3.0), libstdc++6 (>= 12)"
        PACKAGE_RECOMMENDS "libcublas-${cuda_dashed}"
        PACKAGE_SUGGESTS "libnccl2")
endif()
hark_package(models hark-models-demo sound "speech to text to language model (toy models)
Two small models to try hark's tools with: they understand synthetic voices
only. Models for people's voices are fetched by hark model get."
    PACKAGE_ARCHITECTURE all)
hark_package(doc hark-doc doc "speech to text to language model (documents)
How hark's tools, formats, models and kernels work."
    PACKAGE_ARCHITECTURE all)
include(CPack)
