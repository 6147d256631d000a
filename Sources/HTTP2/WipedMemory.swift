// SPDX-License-Identifier: Apache-2.0

import CountersignCNGHTTP2
import Glibc

/// The memory of nghttp2. It is overwritten before it is freed, because fields with secrets are copied into it.
enum WipedMemory {
    /// Copied by each session.
    static var functions: nghttp2_mem {
        nghttp2_mem(
            mem_user_data: nil, malloc: { size, _ in malloc(size) }, free: { memory, _ in WipedMemory.free(memory) },
            calloc: { count, size, _ in calloc(count, size) },
            realloc: { memory, size, _ in WipedMemory.reallocate(memory, size) })
    }

    private static func free(_ memory: UnsafeMutableRawPointer?) {
        guard let memory else { return }
        explicit_bzero(memory, malloc_usable_size(memory))
        Glibc.free(memory)
    }

    /// `realloc` would free the old memory as it is.
    private static func reallocate(_ memory: UnsafeMutableRawPointer?, _ size: Int) -> UnsafeMutableRawPointer? {
        guard let memory else { return malloc(size) }
        let present = malloc_usable_size(memory)
        guard size > present else { return memory }
        guard let larger = malloc(size) else { return nil }
        larger.copyMemory(from: memory, byteCount: present)
        free(memory)
        return larger
    }
}
