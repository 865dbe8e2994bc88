# flags.cmake -- how everything is compiled: the target stoker_flags carries it.

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

option(STOKER_WERROR "warnings are errors" OFF)
set(STOKER_SANITIZE "" CACHE STRING "what -fsanitize= is given: address,undefined or thread")
set(CMAKE_C_FLAGS_RELEASE "-O2 -g1")
set(CMAKE_C_FLAGS_DEBUG "-O0 -g3")
if(STOKER_SANITIZE)
    set(CMAKE_C_FLAGS_DEBUG "-O0 -g1") # a report wants lines, no variables
endif()

add_library(stoker_flags INTERFACE)
target_compile_definitions(stoker_flags INTERFACE _GNU_SOURCE _FILE_OFFSET_BITS=64)
target_compile_options(stoker_flags INTERFACE -Wall -Wextra -Werror=implicit-function-declaration)
if(STOKER_WERROR)
    target_compile_options(stoker_flags INTERFACE -Werror)
endif()
if(STOKER_SANITIZE)
    target_compile_options(stoker_flags INTERFACE -fsanitize=${STOKER_SANITIZE}
        -fno-sanitize-recover=all -fno-omit-frame-pointer)
    # libFuzzer brings its own main: only the fuzz targets link it.
    string(REPLACE "fuzzer-no-link," "" sanitize_link "${STOKER_SANITIZE}")
    target_link_options(stoker_flags INTERFACE -fsanitize=${sanitize_link})
endif()

# Inlining across files, in release. The objects are fat: they hold machine code too, so that whoever
# links without it (the unit tests) can. Clang 14 has no fat objects and goes without.
option(STOKER_LTO "inline across files (GCC, release)" ON)
if(NOT CMAKE_BUILD_TYPE STREQUAL "Release" OR NOT CMAKE_C_COMPILER_ID STREQUAL "GNU"
   OR STOKER_SANITIZE)
    set(STOKER_LTO OFF)
endif()
add_library(stoker_linked INTERFACE)
target_link_libraries(stoker_linked INTERFACE stoker_flags)
if(STOKER_LTO)
    target_compile_options(stoker_flags INTERFACE -flto=auto -ffat-lto-objects)
    target_link_options(stoker_linked INTERFACE -flto=auto -O2)
endif()
