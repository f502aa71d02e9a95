# The preset wasm: what is in place of the system's libraries, and how emscripten links a tool.

set(HARK_WASM_LIBRARIES ${CMAKE_BINARY_DIR}/libraries CACHE PATH "Folder that wasm/libraries.sh has filled")
if(NOT EXISTS ${HARK_WASM_LIBRARIES}/made)
    message(FATAL_ERROR "${HARK_WASM_LIBRARIES} has no libraries; run: wasm/libraries.sh ${HARK_WASM_LIBRARIES}")
endif()

# jthread is experimental in this libc++. Pragmas of OpenMP mean nothing here.
add_compile_options(-msimd128 -fwasm-exceptions -Wno-unknown-pragmas -Wno-unknown-warning-option
    -Wno-deprecated-declarations)
add_compile_definitions(_LIBCPP_ENABLE_EXPERIMENTAL)
include_directories(BEFORE ${CMAKE_SOURCE_DIR}/wasm/libs ${CMAKE_SOURCE_DIR}/wasm/system)
include_directories(SYSTEM ${HARK_WASM_LIBRARIES}/include)

# A script with a function, createTool(), which wasm/tool.mjs calls under node and in a worker. (EXPORT_ES6 of
# emscripten 3.1 imports a module of node, which no browser has.)
set(CMAKE_EXECUTABLE_SUFFIX .js)
add_link_options(-fwasm-exceptions -sMODULARIZE -sEXPORT_NAME=createTool -sINVOKE_RUN=0 -sEXIT_RUNTIME
    -sENVIRONMENT=node,worker -lnodefs.js -sEXPORTED_RUNTIME_METHODS=FS,ENV,callMain
    -sALLOW_MEMORY_GROWTH -sMAXIMUM_MEMORY=4GB -sSTACK_SIZE=8MB)

# find_package() finds these declared.
foreach(package boost nlohmann_json openmp pkgconfig threads zlib)
    file(WRITE ${CMAKE_FIND_PACKAGE_REDIRECTS_DIR}/${package}-config.cmake "")
endforeach()
# What asks pkg-config for a library goes without it.
function(pkg_check_modules name)
    if("REQUIRED" IN_LIST ARGN)
        message(FATAL_ERROR "${name}: not built for WebAssembly")
    endif()
endfunction()
foreach(target nlohmann_json::nlohmann_json OpenMP::OpenMP_CXX Threads::Threads)
    add_library(${target} INTERFACE IMPORTED GLOBAL)
endforeach()
foreach(library Boost::program_options ZLIB::ZLIB)
    add_library(${library} STATIC IMPORTED GLOBAL)
endforeach()
set_target_properties(Boost::program_options PROPERTIES
    IMPORTED_LOCATION ${HARK_WASM_LIBRARIES}/lib/libboost_program_options.a)
set_target_properties(ZLIB::ZLIB PROPERTIES IMPORTED_LOCATION ${HARK_WASM_LIBRARIES}/lib/libz.a)
set(HARK_PCRE2 ${HARK_WASM_LIBRARIES}/lib/libpcre2-8.a)
set(HARK_UTF8PROC ${HARK_WASM_LIBRARIES}/lib/libutf8proc.a)

# hark_replace_sources(LIST): a source in wasm/libs replaces that of the same path in libs.
function(hark_replace_sources list)
    cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY ${CMAKE_SOURCE_DIR} OUTPUT_VARIABLE folder)
    set(sources)
    foreach(source ${${list}})
        set(own ${CMAKE_SOURCE_DIR}/wasm/${folder}/${source})
        if(EXISTS ${own})
            set(source ${own})
        endif()
        list(APPEND sources ${source})
    endforeach()
    set(${list} ${sources} PARENT_SCOPE)
endfunction()
