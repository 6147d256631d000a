// SPDX-License-Identifier: Apache-2.0

/// The sender's operating system version, which has no effect; 8 bytes. MS-NLMP §2.2.2.10.
package struct Version: Equatable, Sendable {
    static let lengthBytes = 8

    package var major: UInt8
    package var minor: UInt8
    package var build: UInt16
    /// 15 is NTLMSSP_REVISION_W2K3, the only defined value.
    package var revision: UInt8

    package init(major: UInt8, minor: UInt8, build: UInt16, revision: UInt8 = 15) {
        self.major = major
        self.minor = minor
        self.build = build
        self.revision = revision
    }

    /// The version that Countersign sends. It has no build number, so that users cannot be distinguished.
    package static let own = Version(major: 10, minor: 0, build: 0)

    init(_ reader: borrowing MessageReader, at offset: Int) {
        major = reader.bytes[offset]
        minor = reader.bytes[offset + 1]
        build = UInt16(reader.bytes[offset + 2]) | UInt16(reader.bytes[offset + 3]) << 8
        revision = reader.bytes[offset + 7]
    }

    var serialized: [UInt8] {
        [major, minor] + build.littleEndianBytes + [0, 0, 0, revision]
    }
}
