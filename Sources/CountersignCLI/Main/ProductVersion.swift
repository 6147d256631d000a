// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The version of this executable.
enum ProductVersion {
    private static let release = "0.1.0"

    /// `0.1.0 (commit 1234567)`.
    static let short = "\(release) (commit \(builtCommit))"

    /// `0.1.0 (commit 1234567, OpenSSL 3.0.15)`.
    static let full = "\(release) (commit \(builtCommit), OpenSSL \(LinkedOpenSSL.version))"
}
