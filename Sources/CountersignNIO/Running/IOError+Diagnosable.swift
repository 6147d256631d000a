// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Glibc
import NIOCore

/// SwiftNIO's errors of system calls, as `Diagnostic` shows them: the reason alone.
extension IOError: DiagnosableError {
    /// The system's text for the error number.
    package var detail: String { String(cString: strerror(errnoCode)) }

    /// None: the caller knows the operation that failed.
    package var hint: String? { nil }
}
