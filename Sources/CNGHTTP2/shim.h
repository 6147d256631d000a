// The framing, HPACK and stream states of HTTP/2. Swift imports every function that is needed as it is. malloc.h tells
// the size of memory to be wiped, and is not in Swift's module of the C library.
#ifndef COUNTERSIGN_CNGHTTP2_SHIM_H
#define COUNTERSIGN_CNGHTTP2_SHIM_H

#include <malloc.h>
#include <nghttp2/nghttp2.h>

#endif
