// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Addresses as text, read by the C library.
enum Addresses {
    /// 4 or 16 bytes in network order.
    static func bytes(_ text: String) -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: 16)
        if inet_pton(AF_INET, text, &buffer) == 1 { return Array(buffer.prefix(4)) }
        return inet_pton(AF_INET6, text, &buffer) == 1 ? buffer : nil
    }
}
