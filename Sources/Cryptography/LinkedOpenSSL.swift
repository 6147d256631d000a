// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

/// The OpenSSL library that the process has loaded.
package enum LinkedOpenSSL {
    /// `3.0.22`.
    package static var version: String { String(cString: OpenSSL_version(OPENSSL_VERSION_STRING)) }
}
