// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import Glibc

/// Keeps the process's memory out of core files, swap and other processes of the same user.
package enum ProcessHardening {
    /// The size of the secure heap: locked memory that is never dumped, for ``Secret``s and OpenSSL's private keys.
    package static let secureHeapBytes = 1 << 20

    /// Disables core files (soft limit `RLIMIT_CORE` 0, so that a command run by `exec` can raise it again), makes the
    /// process not dumpable (`PR_SET_DUMPABLE` 0: only root can attach to it or read its `/proc` files), and sets up
    /// the secure heap. Call it first, before any ``Secret`` exists; later calls have no effect. Returns a warning for
    /// each step that failed.
    package static func apply() -> [String] {
        keepOpenSSLAtExit()
        var warnings: [String] = []
        var limit = rlimit()
        if getrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit) == 0 {
            limit.rlim_cur = 0
        }
        if setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit) != 0 {
            warnings.append("core files could not be disabled")
        }
        if csn_prctl_set_dumpable(0) != 0 {
            warnings.append("other processes of this user can read this process's memory")
        }
        if CRYPTO_secure_malloc_initialized() == 0 {
            switch CRYPTO_secure_malloc_init(secureHeapBytes, 32) {
            case 1: break
            case 2:
                warnings.append("memory for secrets could not be locked and may be swapped out: raise `ulimit -l`")
            default:
                _ = OpenSSLErrors.drain()
                warnings.append("secrets are stored in ordinary memory")
            }
        }
        return warnings
    }

    /// Leaves out OpenSSL's clean-up at exit, which frees memory that running threads still use: they would crash the
    /// process. It has an effect only before OpenSSL's first use in the process.
    package static func keepOpenSSLAtExit() {
        OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
    }

    /// Whether ``Secret``s are stored in locked memory.
    package static var hasSecureHeap: Bool { CRYPTO_secure_malloc_initialized() == 1 }

    /// Whether other processes of the user can attach to this one.
    package static var isDumpable: Bool { csn_prctl_get_dumpable() != 0 }
}
