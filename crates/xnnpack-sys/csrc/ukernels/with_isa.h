// Names of what a header defines for each instruction set: `WITH_ISA(f__)` is `f__avx2` in a file that defines `ISA` as `avx2`.

#ifndef XNNPACK_SYS_WITH_ISA_H
#define XNNPACK_SYS_WITH_ISA_H

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define WITH_ISA(name) JOIN(name, ISA)

#endif
