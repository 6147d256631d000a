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
    private var digits: AuditHash
    /// Records since the last signed one.
    package private(set) var unsigned: UInt64

    /// A checkpoint is written after that many records.
    package static let checkpointInterval: UInt64 = 1000
    /// The end of a line that was not written to its end, before the line feed. No record ends with it.
    package static let cutMark = "<cut>"

    /// Of the last record in hexadecimal digits; zeros before the first.
    package var hash: String { digits.text }

    /// Before the first record.
    package init() { self.init(number: 0, hash: "", unsigned: 0) }

    init(number: UInt64, hash: String, unsigned: UInt64) {
        self.number = number
        digits = AuditHash(text: hash)
        self.unsigned = unsigned
    }

    /// The number of the last signed record; 0 before the first.
    var lastSigned: UInt64 { number - unsigned }

    /// Whether the next line should be a checkpoint.
    package var isCheckpointDue: Bool { unsigned >= Self.checkpointInterval }

    /// Follows a record that someone else wrote.
    mutating func follow(_ record: AuditRecord) {
        switch record.kind {
        case .checkpoint, .end: follow(record.number, AuditHash(text: record.hash), isSigned: true)
        case .begin, .continue, .start, .interrupted, .use, .lost:
            follow(record.number, AuditHash(text: record.hash), isSigned: false)
        }
    }

    private mutating func follow(_ number: UInt64, _ digits: AuditHash, isSigned: Bool) {
        self.number = number
        self.digits = digits
        unsigned = isSigned ? 0 : unsigned + 1
    }

    // MARK: Lines, each with its line feed

    /// After `cut` bytes of a first line that was not written to its end.
    package mutating func begin(at time: Timestamp, after cut: AuditRecord.Cut? = nil) -> [UInt8] {
        line("begin", time) { $0.add(cut) }
    }

    /// The first of a new file, after `cut` bytes at the end of the old one.
    package mutating func `continue`(at time: Timestamp, after cut: AuditRecord.Cut?) -> [UInt8] {
        line("continue", time) { $0.add(cut) }
    }

    package mutating func start(at time: Timestamp) -> [UInt8] { line("start", time) }

    package mutating func interrupted(at time: Timestamp, after cut: AuditRecord.Cut?) -> [UInt8] {
        line("interrupted", time) { $0.add(cut) }
    }

    package mutating func lost(_ count: UInt64, at time: Timestamp) -> [UInt8] {
        line("lost", time) { $0.add(",\"count\":", count) }
    }

    /// Makes the line in `line`.
    mutating func use(_ use: borrowing CredentialUse, in line: inout AuditLine) {
        begin("use", use.time, in: &line)
        if let uid = use.uid { line.add(",\"uid\":", UInt64(uid)) }
        if let pid = use.pid { line.add(",\"pid\":", UInt64(max(0, pid))) }
        if let program = use.program { line.add(",\"program\":", program) }
        if let cgroup = use.cgroup { line.add(",\"cgroup\":", cgroup) }
        line.add(",\"site\":", use.site)
        line.add(",\"scheme\":", use.scheme)
        line.add(",\"credential\":", use.credential)
        if let generation = use.generation { line.add(",\"generation\":", min(generation, UInt64(Int64.max))) }
        line.add(",\"method\":", use.method)
        line.add(",\"status\":", UInt64(max(0, use.status)))
        line.add(",\"result\":", use.result.rawValue)
        if use.isDryRun { line.add(",\"dryRun\":", "yes") }
        line.add(",\"previous\":", digits)
        follow(number + 1, line.finish(), isSigned: false)
    }

    /// Nil, and no change, if OpenSSL cannot sign. `isEnd`: no record follows in this file.
    package mutating func checkpoint(at time: Timestamp, key: AuditKey, isEnd: Bool = false) -> [UInt8]? {
        var line = AuditLine()
        begin(isEnd ? "end" : "checkpoint", time, in: &line)
        line.add(",\"key\":", key.publicKey.id)
        line.add(",\"previous\":", digits)
        guard let signature = key.signature(of: line.object) else { return nil }
        line.add(",\"signature\":", Base64.encode(signature))
        follow(number + 1, line.finish(), isSigned: true)
        return Array(line.bytes)
    }

    private mutating func line(
        _ kind: String, _ time: Timestamp, _ members: (inout AuditLine) -> Void = { _ in }
    ) -> [UInt8] {
        var line = AuditLine()
        begin(kind, time, in: &line)
        members(&line)
        line.add(",\"previous\":", digits)
        follow(number + 1, line.finish(), isSigned: false)
        return Array(line.bytes)
    }

    private func begin(_ kind: String, _ time: Timestamp, in line: inout AuditLine) {
        line.begin(number + 1)
        line.add(",\"time\":", time)
        line.add(",\"kind\":", kind)
    }
}

extension AuditLine {
    fileprivate mutating func add(_ cut: AuditRecord.Cut?) {
        guard let cut else { return }
        add(",\"cut\":", cut.bytes)
        add(",\"digest\":", cut.digest)
    }
}
