// `bcryptprimitives.dll` for Wine before version 9, which has none: the function with which Rust's standard library draws random bytes.

#include <windows.h>

#include <ntsecapi.h>

#define MOST_BYTES ((SIZE_T) 1 << 20)

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T bytes) {
  while (bytes != 0) {
    const SIZE_T part = bytes < MOST_BYTES ? bytes : MOST_BYTES;
    if (!RtlGenRandom(data, (ULONG) part)) {
      return FALSE;
    }
    data += part;
    bytes -= part;
  }
  return TRUE;
}
