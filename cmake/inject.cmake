# inject.cmake -- what `stoker run` puts beside a watched command: libstoker_inject.so of inject/*.c, which
# CUDA loads into the command, and the Python hook inject/site with a module in C. They are embedded in
# the library, so that they are there wherever it is. As a script (cmake -P) it writes the file that
# embeds them.

# --- the script: -DLIBRARY=path -DMODULE=path (or empty) -DSITE=folder -DNAMES=a.py,b/c.py -DTO=FILE.c ---

if(CMAKE_SCRIPT_MODE_FILE)
    set(arrays "")
    set(rows "")
    set(number 0)
    function(inject_row name path)
        file(READ "${path}" bytes HEX)
        string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
        string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
        set(arrays "${arrays}static const unsigned char file_${number}[] = {\n${bytes}0};\n" PARENT_SCOPE)
        set(rows "${rows}    {\"${name}\", file_${number}, sizeof file_${number} - 1},\n" PARENT_SCOPE)
        math(EXPR number "${number} + 1")
        set(number ${number} PARENT_SCOPE)
    endfunction()
    if(LIBRARY)
        inject_row("libstoker_inject.so" "${LIBRARY}")
    endif()
    if(MODULE)
        inject_row("site/stoker_watch/_moments.abi3.so" "${MODULE}")
    endif()
    string(REPLACE "," ";" names "${NAMES}")
    foreach(name IN LISTS names)
        inject_row("site/${name}" "${SITE}/${name}")
    endforeach()
    file(WRITE "${TO}" "#include \"watch/run_folder.h\"\n\n${arrays}\n"
                       "const struct run_file run_files[] = {\n${rows}    {0},\n};\n")
    return()
endif()

# --- the build -----------------------------------------------------------------------------------------

# It runs inside programs of others, so it is small, shows no names but its entry, and takes nothing from
# the library or from sanitizers.
set(inject_folder "${PROJECT_BINARY_DIR}/inject")
set(inject_library "")
set(inject_target "")
file(GLOB inject_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/inject/*.c")
if(inject_sources)
    add_library(stoker_inject SHARED ${inject_sources})
    set_target_properties(stoker_inject PROPERTIES C_VISIBILITY_PRESET hidden
        LIBRARY_OUTPUT_DIRECTORY "${inject_folder}")
    target_include_directories(stoker_inject PRIVATE "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/inject")
    target_compile_definitions(stoker_inject PRIVATE _GNU_SOURCE _FILE_OFFSET_BITS=64)
    target_compile_options(stoker_inject PRIVATE -Wall -Wextra -Werror=implicit-function-declaration -g0)
    if(STOKER_WERROR)
        target_compile_options(stoker_inject PRIVATE -Werror)
    endif()
    target_link_options(stoker_inject PRIVATE -Wl,--no-undefined -Wl,-s)
    target_link_libraries(stoker_inject PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
    set(inject_library "$<TARGET_FILE:stoker_inject>")
    set(inject_target stoker_inject)
endif()

# The hook's module for any CPython from 3.11 on. Without Python's headers the hook is Python alone, and
# costs a step of the script some 30 us more.
find_package(Python 3.11 QUIET COMPONENTS Interpreter Development.Module)
set(inject_module "")
if(Python_Development.Module_FOUND)
    add_library(stoker_moments MODULE "${PROJECT_SOURCE_DIR}/inject/site/stoker_watch/_moments.c")
    set_target_properties(stoker_moments PROPERTIES C_VISIBILITY_PRESET hidden
        OUTPUT_NAME _moments PREFIX "" SUFFIX ".abi3.so" LIBRARY_OUTPUT_DIRECTORY "${inject_folder}")
    target_include_directories(stoker_moments PRIVATE "${PROJECT_SOURCE_DIR}/src")
    target_compile_definitions(stoker_moments PRIVATE Py_LIMITED_API=0x030B0000 _GNU_SOURCE)
    target_compile_options(stoker_moments PRIVATE -Wall -Wextra -g0)
    if(STOKER_WERROR)
        target_compile_options(stoker_moments PRIVATE -Werror)
    endif()
    target_link_options(stoker_moments PRIVATE -Wl,-s)
    target_link_libraries(stoker_moments PRIVATE Python::Module)
    set(inject_module "$<TARGET_FILE:stoker_moments>")
    list(APPEND inject_target stoker_moments)
else()
    message(STATUS "no headers of Python 3.11 or newer: the hook of `stoker run` is Python alone")
endif()

file(GLOB_RECURSE inject_site CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/inject/site"
     "${PROJECT_SOURCE_DIR}/inject/site/*.py")
set(inject_site_paths ${inject_site})
list(TRANSFORM inject_site_paths PREPEND "${PROJECT_SOURCE_DIR}/inject/site/")
list(JOIN inject_site "," inject_names)
add_custom_command(
    OUTPUT "${inject_folder}/watch_files.c"
    COMMAND "${CMAKE_COMMAND}" "-DLIBRARY=${inject_library}" "-DMODULE=${inject_module}" "-DSITE=${PROJECT_SOURCE_DIR}/inject/site"
            "-DNAMES=${inject_names}" "-DTO=${inject_folder}/watch_files.c"
            -P "${PROJECT_SOURCE_DIR}/cmake/inject.cmake"
    DEPENDS ${inject_target} ${inject_site_paths} "${PROJECT_SOURCE_DIR}/cmake/inject.cmake"
    COMMENT "Embedding what is put beside watched commands"
    VERBATIM)
target_sources(stoker_static PRIVATE "${inject_folder}/watch_files.c")
