# install.cmake -- headers, both libraries, what pkg-config and CMake need to find them, the command.

include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/stoker")

install(DIRECTORY include/stoker DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT core
        FILES_MATCHING PATTERN "*.h")
install(TARGETS stoker_shared LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT core)
install(FILES "${STOKER_ARCHIVE}" DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT core)
if(TARGET stoker)
    install(TARGETS stoker RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT core)
endif()

file(RELATIVE_PATH pc_to_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" pc_to_prefix "${pc_to_prefix}")
configure_file(cmake/stoker.pc.in stoker.pc @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/stoker.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig"
        COMPONENT core)

configure_package_config_file(cmake/stokerConfig.cmake.in stokerConfig.cmake
    INSTALL_DESTINATION "${package_dir}" PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(stokerConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/stokerConfig.cmake"
              "${PROJECT_BINARY_DIR}/stokerConfigVersion.cmake"
        DESTINATION "${package_dir}" COMPONENT core)

install(FILES cli/completion/stoker.bash RENAME stoker OPTIONAL COMPONENT core
        DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions")
install(FILES cli/completion/_stoker OPTIONAL COMPONENT core
        DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions")
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT core)
