# HARK_COMMIT: the commit that is built, for --version: git's, else that of the archive that git made.

file(STRINGS ${CMAKE_SOURCE_DIR}/cmake/commit.txt HARK_COMMIT LIMIT_COUNT 1)
if(HARK_COMMIT MATCHES "Format")  # a checkout: `git archive` has not filled it in
    set(HARK_COMMIT unknown)
    find_package(Git QUIET)
    if(GIT_FOUND)
        execute_process(COMMAND ${GIT_EXECUTABLE} rev-parse HEAD
            WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} OUTPUT_VARIABLE head OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
        execute_process(COMMAND ${GIT_EXECUTABLE} rev-parse --git-path logs/HEAD
            WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} OUTPUT_VARIABLE log OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    endif()
    if(head)
        set(HARK_COMMIT ${head})
        cmake_path(ABSOLUTE_PATH log BASE_DIRECTORY ${CMAKE_SOURCE_DIR})
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${log})
    endif()
endif()
string(SUBSTRING ${HARK_COMMIT} 0 12 HARK_COMMIT)
