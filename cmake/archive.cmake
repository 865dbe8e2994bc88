# archive.cmake -- libstoker.a, as installed: the engine in one object whose only global names are
# stk_*, so that a program that links it may have a `fail` or a `queue_push` of its own.

set(STOKER_ARCHIVE "${PROJECT_BINARY_DIR}/libstoker.a")
set(archive_object "${PROJECT_BINARY_DIR}/stoker.o")
set(archive_flags -r -nostdlib)
if(STOKER_LTO)
    list(APPEND archive_flags -O2 -g1 -fPIC -fvisibility=hidden -flto=auto -flinker-output=nolto-rel)
endif()
add_custom_command(
    OUTPUT "${STOKER_ARCHIVE}"
    COMMAND "${CMAKE_C_COMPILER}" ${archive_flags} -o "${archive_object}"
            "$<TARGET_OBJECTS:stoker_static>"
    COMMAND "${CMAKE_OBJCOPY}" --localize-hidden "${archive_object}"
    COMMAND "${CMAKE_COMMAND}" -E rm -f "${STOKER_ARCHIVE}"
    COMMAND "${CMAKE_AR}" rcs "${STOKER_ARCHIVE}" "${archive_object}"
    DEPENDS stoker_static "$<TARGET_OBJECTS:stoker_static>"
    COMMENT "Joining libstoker.a"
    COMMAND_EXPAND_LISTS VERBATIM)
add_custom_target(stoker_archive ALL DEPENDS "${STOKER_ARCHIVE}")
