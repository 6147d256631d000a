// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// A person's standing decision to go on to an origin whose certificate does not verify: for one host, port and leaf, and for
/// nothing else.
package struct TrustDecision: Equatable, Sendable {
    /// Canonical, as `SitePolicy.HostName` writes it; an IPv6 address without brackets.
    package let host: String
    package let port: UInt16
    /// SHA-256 of the leaf certificate's DER, 32 bytes.
    package let leafSHA256: [UInt8]
    /// The last second at which it counts, since 1970; nil: until it is forgotten.
    package let until: Int64?
    /// Whether challenges may be answered there as on an origin that verifies.
    package let answers: Bool
    /// Seconds since 1970.
    package let made: Int64

    package init(host: String, port: UInt16, leafSHA256: [UInt8], until: Int64?, answers: Bool, made: Int64) {
        self.host = host
        self.port = port
        self.leafSHA256 = leafSHA256
        self.until = until
        self.answers = answers
        self.made = made
    }

    /// Whether it still counts; `now` is in seconds since 1970.
    package func counts(at now: Int64) -> Bool { until.map { now <= $0 } ?? true }

    /// Sorts by host, then port, then leaf: a space stands before everything that a host may contain.
    var order: String {
        "\(host) \(Hex.encode([UInt8(port >> 8), UInt8(port & 0xFF)])) \(Hex.encode(leafSHA256))"
    }

    /// What no record may hold; nil where nothing is wrong.
    var fault: String? {
        guard VaultLimits.isHost(host) else { return "\(host.debugDescription) is not a canonical host" }
        guard port != 0 else { return "0 is not a port" }
        guard leafSHA256.count == VaultLimits.digestBytes else {
            return "a SHA-256 has 32 bytes, not \(leafSHA256.count)"
        }
        guard made >= 0, until.map({ $0 >= 0 }) ?? true else { return "a time before 1970" }
        return nil
    }
}

extension VaultContents {
    /// The decisions for one place, in the order of their leaves.
    package func trustDecisions(host: String, port: UInt16) -> [TrustDecision] {
        trustDecisions.filter { $0.host == host && $0.port == port }
    }
}

// MARK: As a record

extension TrustDecision {
    func write(to writer: inout RecordWriter) {
        writer.field(host)
        writer.append(port)
        for byte in leafSHA256 { writer.append(byte) }
        writer.append(answers ? 1 : 0 as UInt8)
        writer.append(UInt64(clamping: made))
        writer.append(until == nil ? 0 : 1 as UInt8)
        if let until { writer.append(UInt64(clamping: until)) }
    }

    init(from body: inout RecordReader) throws(VaultError) {
        host = try body.text()
        port = try body.number(UInt16.self)
        leafSHA256 = Array(try body.take(VaultLimits.digestBytes))
        answers = try body.flag()
        made = try body.time()
        until = try body.flag() ? try body.time() : nil
        if let fault { throw RecordReader.malformed(fault) }
    }
}

extension RecordReader {
    /// One byte, 0 or 1.
    mutating func flag() throws(VaultError) -> Bool {
        let byte = try number(UInt8.self)
        guard byte <= 1 else { throw Self.malformed("\(byte) for yes or no") }
        return byte == 1
    }

    /// 8 bytes, seconds since 1970.
    mutating func time() throws(VaultError) -> Int64 {
        guard let seconds = Int64(exactly: try number(UInt64.self)) else { throw Self.malformed("a time") }
        return seconds
    }
}
