// The framing, HPACK and stream states of HTTP/2. Swift imports every function that is needed as it is.
#ifndef COUNTERSIGN_CNGHTTP2_SHIM_H
#define COUNTERSIGN_CNGHTTP2_SHIM_H

#include <nghttp2/nghttp2.h>

#endif
