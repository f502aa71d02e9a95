# How every library, tool and test of hark is declared.

find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(PkgConfig REQUIRED)

# Warnings and optimisation for our own C++ code. -ffp-contract=off: the same bits from the same
# source whatever the compiler fuses; kernels that want FMA say so with intrinsics. -fsigned-char: a
# char has a sign on every processor, as x86's has.
add_library(hark_options INTERFACE)
target_compile_options(hark_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wno-missing-field-initializers;-Wno-restrict;-ffp-contract=off;-fsigned-char;${OpenMP_CXX_FLAGS}>)
target_include_directories(hark_options INTERFACE ${CMAKE_SOURCE_DIR}/libs ${CMAKE_BINARY_DIR}/libs)
# A library takes up to half a millisecond at a start: no program loads one that it does not use.
# WebAssembly's linker has neither shared libraries nor this option.
if(NOT EMSCRIPTEN)
    target_link_options(hark_options INTERFACE -Wl,--as-needed)
endif()
if(HARK_COVERAGE)
    target_compile_options(hark_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:--coverage>)
    target_link_options(hark_options INTERFACE --coverage)
elseif(HARK_SANITIZE)
    # g++ 12's instrumented std::regex is wrongly said to use uninitialised members.
    target_compile_options(hark_options INTERFACE
        $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=address,undefined;-fno-sanitize-recover=undefined;-fno-omit-frame-pointer;-g1;-Wno-maybe-uninitialized>)
    if(HARK_SANITIZE_QUICK)
        target_compile_options(hark_options INTERFACE
            $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize=null,alignment>)
    endif()
    target_link_options(hark_options INTERFACE -fsanitize=address,undefined)
    # A fifth less time to start: their tables are relocated when they are linked. The tests start
    # thousands of programs.
    target_link_options(hark_options INTERFACE
        $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
    # Many programs with debug information: GNU ld takes twice as long as gold, and five times as long
    # as mold or lld.
    find_program(HARK_LINKER NAMES ld.mold ld.lld ld.gold)
    if(HARK_LINKER)
        get_filename_component(linker ${HARK_LINKER} EXT)
        string(SUBSTRING ${linker} 1 -1 linker)
        target_link_options(hark_options INTERFACE -fuse-ld=${linker})
    endif()
endif()

# The same bytes from any folder. Debuggers and gcov want the true paths.
if(CMAKE_BUILD_TYPE STREQUAL "Release")
    foreach(map ${CMAKE_SOURCE_DIR}=. ${CMAKE_BINARY_DIR}=build)
        target_compile_options(hark_options INTERFACE
            $<$<COMPILE_LANGUAGE:CXX>:-ffile-prefix-map=${map}>
            $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-ffile-prefix-map=${map}>)
    endforeach()
endif()

# Most of the time of a small source is its headers'. So sources are compiled several to a unit: a
# build from nothing takes less than half as long. Names in anonymous namespaces are unique in a
# library, and in a folder of tests. With OFF a change of one source compiles it alone.
# Of a unit of 16 sources half the time is its headers': larger units are cheaper still, but a last one
# would run alone.
option(HARK_UNITY "Compile sources several to a unit" ON)
set(CMAKE_UNITY_BUILD ${HARK_UNITY})
set(CMAKE_UNITY_BUILD_BATCH_SIZE 64)
if(HARK_UNITY)  # g++ takes a type of a unit's second source for one of a header
    target_compile_options(hark_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # a unit may take 0.5 GB before g++ looks for garbage
        target_compile_options(hark_options INTERFACE
            "$<$<COMPILE_LANGUAGE:CXX>:SHELL:--param ggc-min-heapsize=500000>")
    endif()
endif()

# hark_library(NAME SOURCES... WITHOUT... LIBS...): a static library of SOURCES or, without any, of
# all .cc files of this folder and its rooms; a file whose path matches one of WITHOUT is left out.
function(hark_library name)
    cmake_parse_arguments(ARG "" "" "SOURCES;WITHOUT;LIBS;PRIVATE_LIBS" ${ARGN})
    if(NOT ARG_SOURCES)
        file(GLOB_RECURSE ARG_SOURCES RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS *.cc)
        foreach(pattern ${ARG_WITHOUT})
            list(FILTER ARG_SOURCES EXCLUDE REGEX "${pattern}")
        endforeach()
    endif()
    if(EMSCRIPTEN)
        hark_replace_sources(ARG_SOURCES)
    endif()
    add_library(hark_${name} STATIC ${ARG_SOURCES})
    target_link_libraries(hark_${name} PUBLIC hark_options ${ARG_LIBS} PRIVATE ${ARG_PRIVATE_LIBS})
endfunction()

# hark_plugin(NAME SOURCES... LIBS... COMPONENT C): builds libhark-NAME.so, which is opened at run time
# (kernels/runtime/plugin.h) and linked by nothing.
function(hark_plugin name)
    cmake_parse_arguments(ARG "" "COMPONENT" "SOURCES;LIBS" ${ARGN})
    add_library(hark_${name} SHARED ${ARG_SOURCES})
    target_link_libraries(hark_${name} PRIVATE hark_options hark_core ${ARG_LIBS})
    # The tools have hark_core too: the library keeps its own copy to itself.
    target_link_options(hark_${name} PRIVATE LINKER:--exclude-libs,ALL)
    set_target_properties(hark_${name} PROPERTIES OUTPUT_NAME hark-${name} CXX_VISIBILITY_PRESET hidden)
    # Not among the system's libraries: the loader does not look for it.
    install(TARGETS hark_${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/hark COMPONENT ${ARG_COMPONENT})
endfunction()

# hark_texts(FILES...): each of these files of this folder as a string literal, FILE.inc, which a
# source includes by its path below libs/.
function(hark_texts)
    cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY ${CMAKE_SOURCE_DIR} OUTPUT_VARIABLE folder)
    foreach(file ${ARGN})
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${file})
        file(READ ${file} text)
        file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/${folder}/${file}.inc
            CONTENT "R\"hark(@text@)hark\"\n" @ONLY)
    endforeach()
endfunction()

# hark_loops(SOURCES...): loops of numbers, which are optimised under the sanitizers too.
function(hark_loops)
    if(HARK_SANITIZE)
        set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_OPTIONS -O1)
    endif()
endfunction()

# hark_tool(NAME LIBS... SCRIPTS...): apps/NAME.cc -> bin/NAME, and its man pages, which it makes
# itself, from SCRIPTS too.
function(hark_tool name)
    cmake_parse_arguments(ARG "" "" "LIBS;SCRIPTS" ${ARGN})
    add_executable(${name} ${name}.cc)
    set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)
    target_link_libraries(${name} PRIVATE ${ARG_LIBS})
    if(EMSCRIPTEN)
        return()
    endif()
    install(TARGETS ${name} RUNTIME COMPONENT tools)
    if(HARK_SANITIZE)
        return()
    endif()
    file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/man)
    set(page ${CMAKE_BINARY_DIR}/man/${name}.1)
    add_custom_command(OUTPUT ${page}
        COMMAND ${CMAKE_SOURCE_DIR}/cmake/man_pages.sh $<TARGET_FILE:${name}> ${CMAKE_BINARY_DIR}/man
        DEPENDS ${name} ${CMAKE_SOURCE_DIR}/cmake/man_pages.sh ${ARG_SCRIPTS} VERBATIM)
    add_custom_target(${name}-man ALL DEPENDS ${page})
    set_property(GLOBAL APPEND PROPERTY HARK_TOOLS ${name})
endfunction()

# hark_tests(LIBS... DEPENDS... WITHOUT... SLOW...): tests/FOLDER/*_test.cc -> one binary,
# tests/FOLDER_tests, and one ctest test per file: FOLDER.NAME runs the cases of NAME_test.cc.
# Labels: gpu for *cuda_test.cc and *gpu_test.cc, slow for those named in SLOW, quick for the rest.
# WITHOUT names files that are left out; under the sanitizers those of SLOW and of a GPU are, too.
function(hark_tests)
    cmake_parse_arguments(ARG "" "" "LIBS;DEPENDS;WITHOUT;SLOW" ${ARGN})
    get_filename_component(folder ${CMAKE_CURRENT_SOURCE_DIR} NAME)
    file(GLOB files RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS *_test.cc)
    if(HARK_SANITIZE AND NOT HARK_SANITIZE_KERNELS)
        list(APPEND ARG_WITHOUT ${ARG_SLOW})  # they compare numbers: the release build has them
        list(FILTER files EXCLUDE REGEX "(cuda|gpu)_test[.]cc$")
    endif()
    # Without HARK_READER_TESTS only what the sanitizers' build leaves out: slow files, GPU files.
    if(NOT HARK_READER_TESTS AND NOT folder MATCHES "^(kernels|nn|speech)$")
        list(JOIN ARG_SLOW "|" slow)
        list(FILTER files INCLUDE REGEX "^(${slow}|.*cuda|.*gpu)_test[.]cc$")
        if(NOT files)
            return()
        endif()
    endif()
    list(TRANSFORM ARG_WITHOUT APPEND _test.cc)
    list(REMOVE_ITEM files none ${ARG_WITHOUT})
    set(target ${folder}_tests)
    add_executable(${target} ${files})
    target_link_libraries(${target} PRIVATE ${ARG_LIBS} hark_test_support)
    if(ARG_DEPENDS)
        add_dependencies(${target} ${ARG_DEPENDS})
    endif()
    set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    foreach(file ${files})
        string(REGEX REPLACE "_test[.]cc$" "" name ${file})
        set(label quick)
        if(name MATCHES "(cuda|gpu)$")
            set(label gpu)
        elseif(name IN_LIST ARG_SLOW)
            set(label slow)
        endif()
        set(cost 1)
        list(FIND HARK_LONG_TESTS ${folder}.${name} place)
        if(NOT place EQUAL -1)
            math(EXPR cost "1000 - ${place}")
        endif()
        add_test(NAME ${folder}.${name} COMMAND ${target} --file=${file})
        set_tests_properties(${folder}.${name} PROPERTIES TIMEOUT 1200 LABELS ${label} COST ${cost}
            SKIP_RETURN_CODE 77
            # Not the user's own configuration. Threads that wait leave the processor to other tests.
            ENVIRONMENT "XDG_CONFIG_HOME=${CMAKE_BINARY_DIR}/no-config;OMP_WAIT_POLICY=passive")
    endforeach()
endfunction()

# hark_given_language(PREFIX NAMES...): these tests transcribe English recordings for other reasons than
# their language, whose detection takes half of a short one's time: it is given. A test of detection
# takes that back (DetectedLanguages of tests/support/process.h).
function(hark_given_language prefix)
    hark_test_variable(HARK_LANGUAGE=en ${prefix} ${ARGN})
endfunction()

# hark_in_int8(PREFIX NAMES...): these tests look at files, pipes, formats and processes, not at numbers.
# A short recording takes three fifths of the time in int8, most of which is the encoder's.
function(hark_in_int8 prefix)
    hark_test_variable(HARK_DTYPE=int8 ${prefix} ${ARGN})
endfunction()

# Sets a variable of the tests' environment.
function(hark_test_variable assignment prefix)
    foreach(name ${ARGN})
        if(TEST ${prefix}${name})
            set_property(TEST ${prefix}${name} APPEND PROPERTY ENVIRONMENT ${assignment})
        endif()
    endforeach()
endfunction()
