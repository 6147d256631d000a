// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Glibc
import Synchronization
import Testing

@testable import CountersignAudit

/// Audits, keys and uses for the tests.
enum AuditFixture {
    static let key = AuditKey(key(1))
    static let otherKey = AuditKey(key(2))

    private static func key(_ number: UInt8) -> ES256Key {
        guard let key = ES256Key(scalar: Secret([UInt8](repeating: number, count: 32))) else {
            fatalError("a number below the order")
        }
        return key
    }

    static func time(_ seconds: Int64) -> Timestamp { Timestamp((1_767_225_600 + seconds, 250)) }

    static func use(_ number: Int) -> CredentialUse {
        CredentialUse(
            time: time(Int64(number)), uid: 1000, pid: Int32(4000 + number), program: "/usr/bin/git",
            cgroup: "/user.slice", site: "https://git.corp.example:443", scheme: "ntlm", credential: "default",
            generation: 3, method: "GET", status: 200, result: .accepted)
    }

    /// 50 records: a beginning, uses, checkpoints as the records 20 and 40, and the end.
    static func lines() throws -> [[UInt8]] {
        var chain = AuditChain()
        var lines = [chain.begin(at: time(0))]
        for number in 2..<50 {
            if number % 20 == 0 {
                lines.append(try chain.signed(at: time(Int64(number)), key: key))
            } else {
                lines.append(chain.use(use(number)))
            }
        }
        lines.append(try chain.signed(at: time(50), key: key, isEnd: true))
        return lines
    }

    static func verify(_ files: [[UInt8]], key: AuditPublicKey? = key.publicKey) -> AuditReport {
        var verifier = AuditVerifier(key: key)
        for (index, bytes) in files.enumerated() {
            verifier.begin("\(index)")
            read(bytes, &verifier)
        }
        return verifier.finished()
    }

    /// The rest of a file of which `verifier` has read the beginning.
    static func verify(_ bytes: [UInt8], with verifier: AuditVerifier) -> AuditReport {
        var verifier = verifier
        read(bytes, &verifier)
        return verifier.finished()
    }

    private static func read(_ bytes: [UInt8], _ verifier: inout AuditVerifier) {
        var rest = bytes[...]
        while !rest.isEmpty, verifier.report.fault == nil {
            let end = rest.firstIndex(of: 0x0A)
            _ = verifier.read(Array(rest[..<(end ?? rest.endIndex)]), isTerminated: end != nil)
            rest = end.map { rest[($0 + 1)...] } ?? []
        }
    }
}

extension AuditChain {
    /// The line of a use.
    mutating func use(_ use: CredentialUse) -> [UInt8] {
        var line = AuditLine()
        self.use(use, in: &line)
        return Array(line.bytes)
    }

    /// ``checkpoint(at:key:isEnd:)``; throws if OpenSSL cannot sign.
    mutating func signed(at time: Timestamp, key: AuditKey, isEnd: Bool = false) throws -> [UInt8] {
        var next = self
        let line = next.checkpoint(at: time, key: key, isEnd: isEnd)
        self = next
        return try #require(line)
    }

    /// After `lines`.
    init(after lines: ArraySlice<[UInt8]>) throws {
        self.init()
        for line in lines { follow(try AuditRecord(line.dropLast())) }
    }
}

/// A new folder, deleted in `deinit`.
final class AuditFolder: Sendable {
    let path: String
    private let reported = Mutex<[String]>([])
    /// The clock of the audits, in seconds.
    let seconds = Atomic<Int64>(0)

    static let base = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"

    /// In the folder `base`.
    init(in base: String = base) throws {
        var template = Array("\(base)/audit-XXXXXX".utf8CString)
        try #require(mkdtemp(&template) != nil)
        path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    deinit {
        for name in names { unlink(file(name)) }
        rmdir(path)
    }

    var reports: [String] { reported.withLock { $0 } }

    var names: [String] {
        guard let folder = opendir(path) else { return [] }
        defer { closedir(folder) }
        var names: [String] = []
        while let entry = readdir(folder) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names.sorted()
    }

    func file(_ name: String = "audit") -> String { "\(path)/\(name)" }

    func open(
        _ name: String = "audit", key: AuditKey = AuditFixture.key, isRequired: Bool = false
    ) throws(AuditError) -> AuditFile {
        try AuditFile(
            path: file(name), key: key, isRequired: isRequired,
            clock: { [self] in AuditFixture.time(seconds.load(ordering: .relaxed)) },
            report: { [self] line in reported.withLock { $0.append(line) } })
    }

    func bytes(_ name: String = "audit") -> [UInt8] {
        let descriptor = Glibc.open(file(name), O_RDONLY)
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65536)
        while case let count = read(descriptor, &buffer, buffer.count), count > 0 { bytes += buffer.prefix(count) }
        return bytes
    }

    func write(_ bytes: [UInt8], _ name: String = "audit") throws {
        let descriptor = Glibc.open(file(name), O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        defer { close(descriptor) }
        try #require(Glibc.write(descriptor, bytes, bytes.count) == bytes.count)
    }

    func verify(_ names: String..., key: AuditPublicKey? = AuditFixture.key.publicKey) throws -> AuditReport {
        var verifier = AuditVerifier(key: key)
        for name in names.isEmpty ? ["audit"] : names { try verifier.read(path: file(name)) }
        return verifier.finished()
    }

    /// The kinds of the records.
    func kinds(_ name: String = "audit") -> [String] {
        bytes(name).split(separator: 0x0A).map { line in
            guard let record = try? AuditRecord(Array(line)) else { return "-" }
            return switch record.kind {
            case .begin: "begin"
            case .continue: "continue"
            case .start: "start"
            case .interrupted: "interrupted"
            case .use: "use"
            case .lost(let count): "lost \(count)"
            case .checkpoint: "checkpoint"
            case .end: "end"
            }
        }
    }
}
