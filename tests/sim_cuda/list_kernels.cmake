# list_kernels.cmake -- writes a C file that includes a .cu file and lists its kernels:
#   cmake -DCOMPILER=cc -DINCLUDES=a,b -DKERNEL=x_kernel.cu -DMODULE=x_kernel -DOUT=file -P this
# The preprocessor's text is read, because kernels may come from macros. There a kernel is
# `void name(struct some_job job)`; what else a .cu file defines is static.

string(REPLACE "," ";" includes "${INCLUDES}")
list(TRANSFORM includes PREPEND -I)
execute_process(COMMAND "${COMPILER}" -E -P -x c -std=c11 -D_GNU_SOURCE ${includes} "${KERNEL}"
                OUTPUT_VARIABLE text RESULT_VARIABLE failed ERROR_VARIABLE words)
if(failed)
    message(FATAL_ERROR "${KERNEL}: ${words}")
endif()
string(REGEX MATCHALL "(inline )?void [a-z0-9_]+ ?\\(struct [a-z0-9_]+ [a-z0-9_]+\\)[ \n]*{" heads "${text}")
set(runs "")
set(rows "")
foreach(head IN LISTS heads)
    if(head MATCHES "^void ([a-z0-9_]+) ?\\(struct ([a-z0-9_]+) ")
        string(APPEND runs "static void run_${CMAKE_MATCH_1}(const void *job)\n{\n"
                           "    ${CMAKE_MATCH_1}(*(const struct ${CMAKE_MATCH_2} *)job);\n}\n")
        string(APPEND rows "    {\"${CMAKE_MATCH_1}\", run_${CMAKE_MATCH_1}, "
                           "sizeof(struct ${CMAKE_MATCH_2})},\n")
    endif()
endforeach()
file(WRITE "${OUT}" "#include \"${KERNEL}\"\n#include \"simulator.h\"\n\n${runs}\n"
     "extern const struct sim_kernel sim_kernels_${MODULE}[];\n"
     "const struct sim_kernel sim_kernels_${MODULE}[] = {\n${rows}    {0},\n};\n")
