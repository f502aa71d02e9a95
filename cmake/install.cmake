# What is installed next to the tools: the commands of `hark`, man pages, completions, models,
# presets and documents. Components are the packages of packages.cmake.
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME tools)

foreach(command transcribe live ask summarize batch train plot plot-transcript plot-run search lambda
        worker parallel slurm)
    if(EXISTS ${CMAKE_SOURCE_DIR}/pipelines/${command}.sh)
        install(PROGRAMS pipelines/${command}.sh DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/hark
            RENAME ${command})
        list(APPEND links pipelines/${command}.sh ${command})
    endif()
endforeach()
set(parts fetch.sh flags.sh generate.sh help.sh measures.sh outputs.sh recordings.sh server.sh shards.sh
    plot-transcript.awk)
foreach(part ${parts})
    install(FILES pipelines/${part} DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/hark)
    list(APPEND links pipelines/${part} ${part})
endforeach()
install(DIRECTORY pipelines/cloud DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/hark)
# A package's hark does not look for scripts in the source tree, and its man pages are of these too.
if(HARK_PACKAGE)
    list(APPEND links pipelines/cloud cloud)
    file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/libexec/hark)
    while(links)
        list(POP_FRONT links script name)
        file(CREATE_LINK ${CMAKE_SOURCE_DIR}/${script} ${CMAKE_BINARY_DIR}/libexec/hark/${name} SYMBOLIC)
    endwhile()
endif()
install(DIRECTORY models/ DESTINATION ${CMAKE_INSTALL_DATADIR}/hark/models COMPONENT models)
install(DIRECTORY presets/ DESTINATION ${CMAKE_INSTALL_DATADIR}/hark/presets)
install(FILES README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT doc)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT doc)
if(HARK_PACKAGE)  # packages.cmake has the licence, and compressed pages
    install(DIRECTORY ${CMAKE_BINARY_DIR}/packages/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
else()
    install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
    install(DIRECTORY ${CMAKE_BINARY_DIR}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()
# Units of systemd: a user enables hark-serve.socket.
foreach(unit hark-serve.service hark-serve.socket)
    configure_file(${CMAKE_SOURCE_DIR}/cmake/${unit}.in ${CMAKE_BINARY_DIR}/systemd/${unit} @ONLY)
    install(FILES ${CMAKE_BINARY_DIR}/systemd/${unit} DESTINATION lib/systemd/user)
endforeach()
install(FILES completions/_hark DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
# bash and fish look for a file of the command's name.
foreach(tool hark audio-decode vad mel whisper-transcribe whisper-eval gpt-generate gpt-eval gpt-embed
        gpt-tokenize gpt-train hark-advise hark-doctor hark-model hark-redact hark-serve hark-shard hark-trace)
    install(FILES completions/hark.bash RENAME ${tool}
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
    install(FILES completions/hark.fish RENAME ${tool}.fish
        DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endforeach()
