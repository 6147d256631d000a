// Loads libqrencode at the first call. Its few declarations are repeated here, so that no header is needed to build.
#ifndef COUNTERSIGN_CQRCODE_SHIM_H
#define COUNTERSIGN_CQRCODE_SHIM_H

#include <dlfcn.h>
#include <stddef.h>

// QRcode of qrencode.h: `width` × `width` bytes, whose lowest bit is set for a dark module.
typedef struct {
    int version;
    int width;
    unsigned char *data;
} csn_QRcode;

// A symbol for the text with the lowest error correction (QR_ECLEVEL_L). NULL if the library cannot be loaded or the
// text is too long.
static inline csn_QRcode *csn_QRcode_encode(const char *text) {
    void *library = dlopen("libqrencode.so.4", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return NULL;
    csn_QRcode *(*encode)(const char *, int, int) =
        (csn_QRcode * (*)(const char *, int, int)) dlsym(library, "QRcode_encodeString8bit");
    return encode == NULL ? NULL : encode(text, 0, 0);
}

static inline void csn_QRcode_free(csn_QRcode *code) {
    void *library = dlopen("libqrencode.so.4", RTLD_NOW | RTLD_NOLOAD);
    if (library == NULL) return;
    void (*release)(csn_QRcode *) = (void (*)(csn_QRcode *))dlsym(library, "QRcode_free");
    if (release != NULL) release(code);
    dlclose(library);
}

#endif
