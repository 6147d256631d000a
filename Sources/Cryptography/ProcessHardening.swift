// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import Glibc

/// Keeps what is in memory out of core files, swap and other processes of the same user.
package enum ProcessHardening {
    /// Of memory that is locked and never dumped, for ``Secret``s and OpenSSL's private keys.
    package static let secureHeapBytes = 1 << 20

    /// Turns core files off (`RLIMIT_CORE` 0, the soft limit, so that a command run by `exec` may raise it again), makes
    /// the process not dumpable (`PR_SET_DUMPABLE` 0: nobody but root attaches to it or reads its `/proc` files), and sets
    /// up the secure heap. Call it first, before any ``Secret`` exists. Gives a sentence for each thing that the system
    /// would not do; calling it again does no harm.
    package static func apply() -> [String] {
        // Without its clean-up at exit, which would free what threads that still run are using.
        OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
        var warnings: [String] = []
        var limit = rlimit()
        if getrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit) == 0 {
            limit.rlim_cur = 0
        }
        if setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit) != 0 {
            warnings.append("core files could not be turned off")
        }
        if csn_prctl_set_dumpable(0) != 0 {
            warnings.append("other processes of this user may read this one's memory")
        }
        if CRYPTO_secure_malloc_initialized() == 0 {
            switch CRYPTO_secure_malloc_init(secureHeapBytes, 32) {
            case 1: break
            case 2:
                warnings.append("the memory of secrets could not be locked and may be swapped: raise `ulimit -l`")
            default:
                _ = OpenSSLErrors.drain()
                warnings.append("secrets are kept in ordinary memory")
            }
        }
        return warnings
    }

    /// Whether ``Secret``s are kept in locked memory.
    package static var hasSecureHeap: Bool { CRYPTO_secure_malloc_initialized() == 1 }

    /// Whether other processes of the user may attach to this one.
    package static var isDumpable: Bool { csn_prctl_get_dumpable() != 0 }
}
