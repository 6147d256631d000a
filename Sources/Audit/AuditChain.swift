// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The end of an audit, from which the next line is made.
///
/// `hash` is SHA-256 over the bytes of the line without the member `hash` and without the line feed: those before
/// `,"hash":"`, and `}`. `previous` is the hash of the line before. The signature of a signed line is ECDSA on P-256
/// with SHA-256 over the bytes before `,"signature":"`, and `}`; it is a DER ECDSA-Sig-Value in base64. The signed
/// bytes contain `previous`, and thereby all lines before; the hash covers the signature.
package struct AuditChain: Sendable, Equatable {
    /// Of the last record; 0 before the first.
    package private(set) var number: UInt64
    /// In ASCII.
    private var digits: [UInt8]
    /// Records since the last signed one.
    package private(set) var unsigned: UInt64

    /// A checkpoint is written after that many records.
    package static let checkpointInterval: UInt64 = 1000
    /// The end of a line that was not written to its end, before the line feed. No record ends with it.
    package static let cutMark = "<cut>"
    private static let noHash = String(repeating: "0", count: 64)

    /// Of the last record in hexadecimal digits; zeros before the first.
    package var hash: String { String(decoding: digits, as: UTF8.self) }

    /// Before the first record.
    package init() { self.init(number: 0, hash: Self.noHash, unsigned: 0) }

    init(number: UInt64, hash: String, unsigned: UInt64) {
        self.number = number
        digits = Array(hash.utf8)
        self.unsigned = unsigned
    }

    /// Whether the next line should be a checkpoint.
    package var isCheckpointDue: Bool { unsigned >= Self.checkpointInterval }

    /// Follows a record that someone else wrote.
    mutating func follow(_ record: AuditRecord) {
        switch record.kind {
        case .checkpoint, .end: follow(record.number, Array(record.hash.utf8), isSigned: true)
        case .begin, .continue, .start, .interrupted, .use, .lost:
            follow(record.number, Array(record.hash.utf8), isSigned: false)
        }
    }

    private mutating func follow(_ number: UInt64, _ digits: [UInt8], isSigned: Bool) {
        self.number = number
        self.digits = digits
        unsigned = isSigned ? 0 : unsigned + 1
    }

    // MARK: Lines, each with its line feed

    /// After `cut` bytes of a first line that was not written to its end.
    package mutating func begin(at time: Timestamp, after cut: AuditRecord.Cut? = nil) -> [UInt8] {
        finish(start("begin", time, cut))
    }

    /// The first of a new file, after `cut` bytes at the end of the old one.
    package mutating func `continue`(at time: Timestamp, after cut: AuditRecord.Cut?) -> [UInt8] {
        finish(start("continue", time, cut))
    }

    package mutating func start(at time: Timestamp) -> [UInt8] { finish(start("start", time)) }

    package mutating func interrupted(at time: Timestamp, after cut: AuditRecord.Cut?) -> [UInt8] {
        finish(start("interrupted", time, cut))
    }

    package mutating func lost(_ count: UInt64, at time: Timestamp) -> [UInt8] {
        var line = start("lost", time)
        line.add("count", count)
        return finish(line)
    }

    package mutating func use(_ use: CredentialUse) -> [UInt8] {
        var line = start("use", use.time)
        if let uid = use.uid { line.add("uid", UInt64(uid)) }
        if let pid = use.pid { line.add("pid", UInt64(max(0, pid))) }
        if let program = use.program { line.add("program", program) }
        if let cgroup = use.cgroup { line.add("cgroup", cgroup) }
        line.add("site", use.site)
        line.add("scheme", use.scheme)
        line.add("credential", use.credential)
        if let generation = use.generation { line.add("generation", min(generation, UInt64(Int64.max))) }
        line.add("method", use.method)
        line.add("status", UInt64(max(0, use.status)))
        line.add("result", use.result.rawValue)
        if use.isDryRun { line.add("dryRun", "yes") }
        return finish(line)
    }

    /// Nil, and no change, if OpenSSL cannot sign. `isEnd`: no record follows in this file.
    package mutating func checkpoint(at time: Timestamp, key: AuditKey, isEnd: Bool = false) -> [UInt8]? {
        var line = start(isEnd ? "end" : "checkpoint", time)
        line.add("key", key.publicKey.id)
        line.add("previous", digits: digits)
        guard let signature = key.signature(of: line.object) else { return nil }
        line.add("signature", Base64.encode(signature))
        return seal(line, isSigned: true)
    }

    private func start(_ kind: String, _ time: Timestamp, _ cut: AuditRecord.Cut? = nil) -> AuditLine {
        var line = AuditLine(number: number + 1)
        line.add("time", time.text)
        line.add("kind", kind)
        if let cut {
            line.add("cut", cut.bytes)
            line.add("digest", cut.digest)
        }
        return line
    }

    private mutating func finish(_ line: consuming AuditLine) -> [UInt8] {
        line.add("previous", digits: digits)
        return seal(line, isSigned: false)
    }

    private mutating func seal(_ line: consuming AuditLine, isSigned: Bool) -> [UInt8] {
        let (bytes, hash) = line.finished()
        follow(number + 1, hash, isSigned: isSigned)
        return bytes
    }
}
