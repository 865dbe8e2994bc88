# kernels.cmake -- src/transform/X_kernel.cu into the library: the source with its includes in place, and
# the PTX that nvcc makes of it where there is an nvcc. Needs no CUDA: without it the source is compiled by
# NVRTC where the library runs. As a script (cmake -P) it does the two steps that CMake has no command for.

# --- the script: -DSTEP=flatten|embed ------------------------------------------------------------------

# Puts the text of a file into out, with its "..." includes in their place; adds what it read to files.
# Guards of headers do their work in the result, so a header may come more than once.
function(kernels_flatten path depth out files)
    if(depth GREATER 16)
        message(FATAL_ERROR "${path}: headers that include each other")
    endif()
    file(READ "${path}" rest)
    string(PREPEND rest "\n") # so that every line has one before it
    get_filename_component(folder "${path}" DIRECTORY)
    set(text "")
    set(read "${path}")
    while(rest MATCHES "(\n[ \t]*#[ \t]*include[ \t]*\"([^\"\n]+)\"[^\n]*)")
        set(line "${CMAKE_MATCH_1}")
        set(name "${CMAKE_MATCH_2}")
        string(FIND "${rest}" "${line}" at)
        string(LENGTH "${line}" length)
        string(SUBSTRING "${rest}" 0 ${at} before)
        math(EXPR at "${at} + ${length}")
        string(SUBSTRING "${rest}" ${at} -1 rest)
        set(found "")
        foreach(candidate IN ITEMS "${ROOT}/src/${name}" "${ROOT}/include/${name}" "${folder}/${name}")
            if(NOT found AND EXISTS "${candidate}")
                set(found "${candidate}")
            endif()
        endforeach()
        if(NOT found)
            message(FATAL_ERROR "${path}: there is no ${name} in src, in include or beside it")
        endif()
        math(EXPR deeper "${depth} + 1")
        kernels_flatten("${found}" ${deeper} inner inner_files)
        string(APPEND text "${before}${inner}")
        list(APPEND read ${inner_files})
    endwhile()
    string(APPEND text "${rest}")
    set(${out} "${text}" PARENT_SCOPE)
    set(${files} ${read} PARENT_SCOPE)
endfunction()

# A C array of the bytes of a file and a NUL; aligned, since a fat binary holds numbers.
function(kernels_array name path out)
    file(READ "${path}" bytes HEX)
    string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    set(${out} "static const _Alignas(16) unsigned char ${name}[] = {\n${bytes}0};\n" PARENT_SCOPE)
endfunction()

if(STEP STREQUAL "flatten") # -DROOT= -DFROM=X_kernel.cu -DTO=X_kernel.flat.cu
    kernels_flatten("${FROM}" 0 text files)
    file(WRITE "${TO}" "${text}")
    list(REMOVE_DUPLICATES files)
    string(REPLACE ";" " \\\n  " files "${files}")
    file(WRITE "${TO}.d" "${TO}: ${files}\n")
    return()
elseif(STEP STREQUAL "embed") # -DFOLDER= of the files, -DNAMES=a,b -DPTX=ptx|fatbin| -DTO=kernels.c
    set(arrays "")
    set(rows "")
    string(REPLACE "," ";" names "${NAMES}")
    foreach(name IN LISTS names)
        kernels_array("${name}_source" "${FOLDER}/${name}.flat.cu" array)
        string(APPEND arrays "${array}")
        set(ptx NULL)
        if(PTX)
            kernels_array("${name}_ptx" "${FOLDER}/${name}.${PTX}" array)
            string(APPEND arrays "${array}")
            set(ptx "(const char *)${name}_ptx")
        endif()
        string(APPEND rows "    {\"${name}\", (const char *)${name}_source, ${ptx}},\n")
    endforeach()
    file(WRITE "${TO}" "#include \"gpu/module.h\"\n\n#include <stddef.h>\n\n${arrays}\n"
                       "const struct gpu_module gpu_modules[] = {\n${rows}    {NULL, NULL, NULL},\n};\n")
    return()
endif()

# --- the build -----------------------------------------------------------------------------------------

# stoker_nvcc(VARIABLE): the path of an nvcc that works, or empty. One that finds no host compiler that it
# likes, or that is too new for compute_75, is as good as none.
function(stoker_nvcc out)
    set(${out} "" PARENT_SCOPE)
    if(NOT STOKER_NVCC)
        return()
    endif()
    find_program(STOKER_NVCC_PATH nvcc HINTS "$ENV{CUDA_HOME}/bin" "$ENV{CUDA_PATH}/bin" /usr/local/cuda/bin)
    if(NOT STOKER_NVCC_PATH)
        message(STATUS "nvcc is not installed: kernels are compiled by NVRTC where they run")
        return()
    endif()
    set(trial "${PROJECT_BINARY_DIR}/kernels/trial")
    file(WRITE "${trial}.cu" "extern \"C\" __global__ void trial(int *out) { *out = 1; }\n")
    execute_process(COMMAND "${STOKER_NVCC_PATH}" ${STOKER_NVCC_FLAGS} -o "${trial}.out" "${trial}.cu"
                    RESULT_VARIABLE result OUTPUT_VARIABLE words ERROR_VARIABLE words)
    if(result EQUAL 0)
        set(${out} "${STOKER_NVCC_PATH}" PARENT_SCOPE)
    else()
        message(STATUS "${STOKER_NVCC_PATH} does not work, so kernels are compiled by NVRTC where they "
                       "run: ${words}")
    endif()
endfunction()

option(STOKER_NVCC "compile kernels to PTX when nvcc is installed" ON)
# The driver compiles PTX when it first meets it on a machine. Machine code for the devices named here is
# ready at once, and lies beside the PTX in one fat binary.
set(STOKER_CUDA_ARCHS "" CACHE STRING "compute capabilities to compile kernels for besides PTX: 80;90")
set(STOKER_NVCC_FLAGS -ptx -arch=compute_75 -O3)
set(ptx_kind ptx)
if(STOKER_CUDA_ARCHS)
    set(ptx_kind fatbin)
    set(STOKER_NVCC_FLAGS -fatbin -O3 -gencode arch=compute_75,code=compute_75)
    foreach(arch IN LISTS STOKER_CUDA_ARCHS)
        list(APPEND STOKER_NVCC_FLAGS -gencode arch=compute_${arch},code=sm_${arch})
    endforeach()
endif()
stoker_nvcc(nvcc)
if(NOT nvcc)
    set(ptx_kind "")
endif()

set(kernels_folder "${PROJECT_BINARY_DIR}/kernels")
set(kernels_script "${PROJECT_SOURCE_DIR}/cmake/kernels.cmake")
set(kernel_names "")
set(kernel_files "")
file(GLOB kernel_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/transform/*_kernel.cu")
foreach(source IN LISTS kernel_sources)
    get_filename_component(name "${source}" NAME_WE)
    set(flat "${kernels_folder}/${name}.flat.cu")
    add_custom_command(
        OUTPUT "${flat}"
        COMMAND "${CMAKE_COMMAND}" -DSTEP=flatten "-DROOT=${PROJECT_SOURCE_DIR}" "-DFROM=${source}"
                "-DTO=${flat}" -P "${kernels_script}"
        DEPENDS "${source}" "${kernels_script}"
        DEPFILE "${flat}.d"
        COMMENT "Flattening ${name}.cu"
        VERBATIM)
    list(APPEND kernel_names "${name}")
    list(APPEND kernel_files "${flat}")
    if(nvcc)
        set(ptx "${kernels_folder}/${name}.${ptx_kind}")
        add_custom_command(
            OUTPUT "${ptx}"
            COMMAND "${nvcc}" ${STOKER_NVCC_FLAGS} -o "${ptx}" "${flat}"
            DEPENDS "${flat}"
            COMMENT "Compiling ${name}.cu for the GPU"
            VERBATIM)
        list(APPEND kernel_files "${ptx}")
    endif()
endforeach()

list(JOIN kernel_names "," kernel_list)
add_custom_command(
    OUTPUT "${kernels_folder}/kernels.c"
    COMMAND "${CMAKE_COMMAND}" -DSTEP=embed "-DFOLDER=${kernels_folder}" "-DNAMES=${kernel_list}"
            "-DPTX=${ptx_kind}" "-DTO=${kernels_folder}/kernels.c" -P "${kernels_script}"
    DEPENDS ${kernel_files} "${kernels_script}"
    COMMENT "Embedding kernels"
    VERBATIM)
target_sources(stoker_static PRIVATE "${kernels_folder}/kernels.c")
