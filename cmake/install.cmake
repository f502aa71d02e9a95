# What is installed next to the tools: the commands of `hark`, models, presets and documents.

foreach(command transcribe live ask batch train plot plot-transcript plot-run)
    if(EXISTS ${CMAKE_SOURCE_DIR}/pipelines/${command}.sh)
        install(PROGRAMS pipelines/${command}.sh DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/hark
            RENAME ${command})
    endif()
endforeach()
install(FILES pipelines/flags.sh pipelines/help.sh pipelines/recordings.sh
    pipelines/plot-transcript.awk DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/hark)
install(DIRECTORY models/ DESTINATION ${CMAKE_INSTALL_DATADIR}/hark/models)
install(DIRECTORY presets/ DESTINATION ${CMAKE_INSTALL_DATADIR}/hark/presets)
install(FILES README.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR})
