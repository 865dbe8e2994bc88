# tests.cmake -- unit tests and fuzz targets. `cmake --build DIR --target tests` builds them all, ctest
# runs them: each is a process of its own with a time limit, labelled by its folder.

pkg_check_modules(CMOCKA IMPORTED_TARGET cmocka)
if(NOT CMOCKA_FOUND)
    message(STATUS "cmocka is not installed: there is no target `tests`")
    return()
endif()
add_custom_target(tests DEPENDS stoker_shared stoker_archive)
add_custom_target(tests_fuzz)
foreach(folder IN ITEMS base trace work net store filter index transform format codec pipeline dataset
                  loader pack show gpu watch)
    add_custom_target(tests_${folder}) # one folder's alone
endforeach()
if(STOKER_LTO)
    set(no_lto -fno-lto) # the machine code in the fat objects will do; links are quick
endif()

file(GLOB unit_tests CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}"
     "${PROJECT_SOURCE_DIR}/tests/unit/*/test_*.c")
if(NOT HAVE_NET)
    list(FILTER unit_tests EXCLUDE REGEX "/net/|/test_remote[a-z_]*\\.c$|upload\\.c$")
endif()
foreach(source IN LISTS unit_tests)
    get_filename_component(name "${source}" NAME_WE)
    get_filename_component(folder "${source}" DIRECTORY)
    get_filename_component(folder "${folder}" NAME)
    add_executable(${name} EXCLUDE_FROM_ALL "${source}")
    target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests/unit")
    target_compile_options(${name} PRIVATE ${no_lto} -UNDEBUG)
    target_link_options(${name} PRIVATE ${no_lto})
    target_link_libraries(${name} PRIVATE stoker_static stoker_flags PkgConfig::CMOCKA)
    if(source MATCHES "/net/|/test_remote|upload") # a server to ask
        target_sources(${name} PRIVATE tests/unit/net/answering.c)
    endif()
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/unit")
    add_dependencies(tests_${folder} ${name})
    add_dependencies(tests ${name})
    add_test(NAME ${folder}/${name} COMMAND ${name} WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
    set_tests_properties(${folder}/${name} PROPERTIES TIMEOUT 60 LABELS "unit;${folder}")
endforeach()

include(cmake/sim_cuda.cmake) # a CUDA driver for tests without a GPU
sim_library(sim_cuda_nvml nvidia-ml 1 tests/unit/gpu/fake_nvml.c)

# What there is without a driver, and with one that is too old. A libcuda.so.1 that is no library hides
# that of a machine with a GPU.
file(WRITE "${PROJECT_BINARY_DIR}/no_cuda/libcuda.so.1" "not a library\n")
add_library(old_cuda SHARED EXCLUDE_FROM_ALL tests/unit/gpu/old_cuda.c)
set_target_properties(old_cuda PROPERTIES OUTPUT_NAME cuda SOVERSION 1
    LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/old_cuda")
add_dependencies(test_gpu_absent old_cuda)
set_property(TEST gpu/test_gpu_absent PROPERTY ENVIRONMENT "LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/no_cuda")
add_test(NAME gpu/test_gpu_old COMMAND test_gpu_absent WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
set_tests_properties(gpu/test_gpu_old PROPERTIES TIMEOUT 60 LABELS "unit;gpu" ENVIRONMENT
    "LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/old_cuda;STOKER_TEST_DRIVER=old")

# fuzz_X.c defines LLVMFuzzerTestOneInput. With STOKER_FUZZ (Clang) it is a libFuzzer binary; else a plain
# driver replays tests/fuzz/corpus/X, so that what was once found stays found.
option(STOKER_FUZZ "build libFuzzer binaries (Clang)" OFF)
file(GLOB fuzz_targets CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/fuzz/fuzz_*.c")
foreach(source IN LISTS fuzz_targets)
    get_filename_component(name "${source}" NAME_WE)
    string(REGEX REPLACE "^fuzz_" "" subject "${name}")
    add_executable(${name} EXCLUDE_FROM_ALL "${source}")
    target_compile_options(${name} PRIVATE ${no_lto} -UNDEBUG)
    target_link_options(${name} PRIVATE ${no_lto})
    target_link_libraries(${name} PRIVATE stoker_static stoker_flags)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/fuzz")
    add_dependencies(tests_fuzz ${name})
    add_dependencies(tests ${name})
    set(corpus "${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${subject}")
    if(STOKER_FUZZ)
        target_link_options(${name} PRIVATE -fsanitize=fuzzer)
        set(replay -runs=0)
    else()
        target_sources(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tools/fuzz_replay.c")
        set(replay)
    endif()
    if(IS_DIRECTORY "${corpus}")
        add_test(NAME fuzz/${name} COMMAND ${name} ${replay} "${corpus}"
                 WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
        set_tests_properties(fuzz/${name} PROPERTIES TIMEOUT 60 LABELS "fuzz")
    endif()
endforeach()

add_test(NAME exports COMMAND "${PROJECT_SOURCE_DIR}/tools/check_exports.sh"
         "$<TARGET_FILE:stoker_shared>" "${STOKER_ARCHIVE}")
set_tests_properties(exports PROPERTIES TIMEOUT 60 LABELS "build")
