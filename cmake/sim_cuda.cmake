# sim_cuda.cmake -- the simulated CUDA driver and its companions, for tests on machines without a GPU
# (docs/decisions/0022-simulated-cuda.md). They land in sim_cuda/ of the build folder; a process finds
# them with LD_LIBRARY_PATH.

set(SIM_CUDA_FOLDER "${PROJECT_BINARY_DIR}/sim_cuda")
set(sim_source "${PROJECT_SOURCE_DIR}/tests/sim_cuda")
set(sim_made "${PROJECT_BINARY_DIR}/sim_cuda_sources")

# Kernels are compiled as C: for each .cu file, one that includes it and lists its kernels.
file(GLOB sim_kernels CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/transform/*_kernel.cu"
     "${sim_source}/*_kernel.cu")
file(GLOB sim_kernel_headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/transform/*_kernel.h"
     "${sim_source}/*_kernel.h")
set(sim_kernel_sources)
set(sim_declared "")
set(sim_listed "")
foreach(kernel IN LISTS sim_kernels)
    get_filename_component(module "${kernel}" NAME_WE)
    set(made "${sim_made}/sim_${module}.c")
    add_custom_command(OUTPUT "${made}"
        COMMAND "${CMAKE_COMMAND}" "-DCOMPILER=${CMAKE_C_COMPILER}" "-DKERNEL=${kernel}"
            "-DINCLUDES=${PROJECT_SOURCE_DIR}/include,${PROJECT_SOURCE_DIR}/src,${sim_source}"
            "-DOUT=${made}" "-DMODULE=${module}" -P "${sim_source}/list_kernels.cmake"
        DEPENDS "${kernel}" ${sim_kernel_headers} "${sim_source}/list_kernels.cmake"
                "${PROJECT_SOURCE_DIR}/src/gpu/kernel_language.h"
        VERBATIM)
    list(APPEND sim_kernel_sources "${made}")
    string(APPEND sim_declared "extern const struct sim_kernel sim_kernels_${module}[];\n")
    string(APPEND sim_listed "    sim_kernels_${module},\n")
endforeach()
file(CONFIGURE OUTPUT "${sim_made}/sim_kernel_lists.c" @ONLY CONTENT
     "#include \"simulator.h\"\n\n${sim_declared}
const struct sim_kernel *const sim_kernel_lists[] = {\n${sim_listed}    0,\n};\n")
list(APPEND sim_kernel_sources "${sim_made}/sim_kernel_lists.c")

# sim_library(target NAME version sources...): libNAME.so.version in the folder.
function(sim_library target name version)
    add_library(${target} SHARED EXCLUDE_FROM_ALL ${ARGN})
    set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} SOVERSION ${version}
        LIBRARY_OUTPUT_DIRECTORY "${SIM_CUDA_FOLDER}" BUILD_RPATH "$ORIGIN")
    target_include_directories(${target} PRIVATE "${sim_source}" "${PROJECT_SOURCE_DIR}/include"
                                                 "${PROJECT_SOURCE_DIR}/src")
    target_compile_options(${target} PRIVATE ${no_lto} -UNDEBUG)
    target_link_options(${target} PRIVATE ${no_lto} -Wl,-z,nodelete)
    target_link_libraries(${target} PRIVATE stoker_flags Threads::Threads m)
    add_dependencies(sim_cuda ${target})
endfunction()

add_custom_target(sim_cuda)
add_dependencies(tests sim_cuda)
sim_library(sim_cuda_driver cuda 1 ${sim_kernel_sources} "${sim_source}/sim_capture.c"
    "${sim_source}/sim_copy.c" "${sim_source}/sim_device.c" "${sim_source}/sim_event.c"
    "${sim_source}/sim_faults.c" "${sim_source}/sim_memory.c" "${sim_source}/sim_module.c"
    "${sim_source}/sim_stream.c")
sim_library(sim_cuda_nvrtc nvrtc 13 "${sim_source}/sim_nvrtc.c")
sim_library(sim_cuda_cufft cufft 12 "${sim_source}/sim_cufft.c")
target_link_libraries(sim_cuda_cufft PRIVATE sim_cuda_driver)
if(HAVE_JPEG)
    sim_library(sim_cuda_nvjpeg nvjpeg 13 "${sim_source}/sim_nvjpeg.c" "${sim_source}/sim_jpeg.c")
    target_link_libraries(sim_cuda_nvjpeg PRIVATE sim_cuda_driver PkgConfig::JPEG)
endif()

# Tests that meet a device: those of the folder gpu, those named after one, and those that say so by
# including the simulator's header.
foreach(source IN LISTS unit_tests)
    get_filename_component(name "${source}" NAME_WE)
    get_filename_component(folder "${source}" DIRECTORY)
    get_filename_component(folder "${folder}" NAME)
    file(STRINGS "${PROJECT_SOURCE_DIR}/${source}" mentions REGEX "sim_cuda\\.h" LIMIT_COUNT 1)
    if(mentions OR folder STREQUAL "gpu" OR name MATCHES "_(device|gpu|ship|kernel|nvjpeg|resident|sim)(_|$)")
        add_dependencies(${name} sim_cuda)
        set_property(TEST ${folder}/${name} PROPERTY ENVIRONMENT "LD_LIBRARY_PATH=${SIM_CUDA_FOLDER}")
    endif()
endforeach()

# Simulated CUPTIs, in folders of their own: no other test is to find one. The injected library is
# compiled into its test, which runs once with each.
foreach(version IN ITEMS 12 13)
    add_library(sim_cupti_${version} SHARED EXCLUDE_FROM_ALL "${sim_source}/sim_cupti.c")
    set_target_properties(sim_cupti_${version} PROPERTIES OUTPUT_NAME cupti SOVERSION ${version}
        LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/sim_cupti_${version}")
    target_compile_options(sim_cupti_${version} PRIVATE ${no_lto} -UNDEBUG)
    target_link_options(sim_cupti_${version} PRIVATE ${no_lto})
    target_link_libraries(sim_cupti_${version} PRIVATE stoker_flags Threads::Threads)
    add_dependencies(sim_cuda sim_cupti_${version})
endforeach()
target_compile_definitions(sim_cupti_12 PRIVATE SIM_CUPTI_VERSION=28)
target_compile_definitions(sim_cupti_13 PRIVATE SIM_CUPTI_VERSION=130000)
file(GLOB inject_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/inject/*.c")
foreach(name IN ITEMS test_inject_sim test_inject_process_sim test_inject_find test_inject_allowance)
    target_sources(${name} PRIVATE ${inject_sources})
    target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/inject")
    target_link_libraries(${name} PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
    set_property(TEST watch/${name} PROPERTY ENVIRONMENT
        "STOKER_TEST_CUPTI=${PROJECT_BINARY_DIR}/sim_cupti_13/libcupti.so.13")
endforeach()
add_test(NAME watch/test_inject_sim_12 COMMAND test_inject_sim
         WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
set_tests_properties(watch/test_inject_sim_12 PROPERTIES TIMEOUT 60 LABELS "unit;watch" ENVIRONMENT
    "STOKER_TEST_CUPTI=${PROJECT_BINARY_DIR}/sim_cupti_12/libcupti.so.12")
