// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON

/// One line of an audit.
///
/// An audit is a file of JSON Lines, or several that follow each other after rotations. ``AuditChain`` makes the lines:
/// each names the hash of the one before, and some are signed by an ``AuditKey``. ``AuditFile`` writes them.
/// ``AuditVerifier`` finds the first line that was changed, removed, inserted or moved, and says in an ``AuditReport``
/// what the file proves. ``CredentialUse`` is what it is all for.
///
/// The members of a line are, in this order: `n`, `time`, `kind`, those of the kind, `previous`, `signature` (only of a
/// signed line), `hash`.
package struct AuditRecord: Sendable, Equatable {
    /// The bytes between two records that are not a record: lines that were not written to their end, each completed
    /// with ``AuditChain/cutMark``.
    package struct Cut: Sendable, Equatable {
        /// With marks and line feeds.
        package let bytes: UInt64
        /// SHA-256 of them in hexadecimal digits.
        package let digest: String
    }

    package enum Kind: Sendable, Equatable {
        /// The first record of an audit.
        case begin(Cut?)
        /// The first record of a file that continues another.
        case `continue`(Cut?)
        /// A server opened a file that another had closed.
        case start
        /// A server opened a file that another had not closed: it was killed, or the machine stopped.
        case interrupted(Cut?)
        case use(CredentialUse)
        /// That many uses were not recorded, because the file could not be written.
        case lost(UInt64)
        /// Signed: all records up to this one.
        case checkpoint(key: String, signature: [UInt8])
        /// Signed: no record follows in this file, unless a server opens it again.
        case end(key: String, signature: [UInt8])
    }

    package let number: UInt64
    package let time: Timestamp
    package let kind: Kind
    /// The hash of the record before, in 64 hexadecimal digits; zeros for the first.
    package let previous: String
    package let hash: String
}

/// Why a line is not a record. Never contains a value of the line.
package enum AuditLineFault: Error, Equatable {
    /// It does not have the form of a record.
    case malformed(String)
    /// It has, but its hash is that of other bytes.
    case changed
}

extension AuditRecord {
    /// The longest line that a verifier reads.
    package static let longestLineBytes = 64 * 1024
    /// `,"hash":"` with 64 digits and `"}`.
    static let hashMemberBytes = 75
    static let hashMember = Array(",\"hash\":\"".utf8)
    static let signatureMember = Array(",\"signature\":\"".utf8)

    /// Reads `line`, without its line feed, and compares its hash.
    package init(_ line: [UInt8]) throws(AuditLineFault) {
        guard line.count <= Self.longestLineBytes else { throw .malformed("the line is too long") }
        let content = line.dropLast(Self.hashMemberBytes)
        guard line.count > Self.hashMemberBytes, line[content.endIndex...].starts(with: Self.hashMember) else {
            throw .malformed("the line does not end with a hash")
        }
        let digits = Hex.digits(Digest.sha256.hash(content + [UInt8(ascii: "}")]))
        guard line[content.endIndex...].elementsEqual(Self.hashMember + digits + "\"}".utf8) else {
            throw .changed
        }
        do throws(JSONError) {
            try self.init(
                JSONParser.parse(line, limits: JSONLimits(bytes: Self.longestLineBytes, depth: 1, nameBytes: 16)))
        } catch {
            throw .malformed(error.reason)
        }
    }

    /// The bytes of a signed line that its signature is made of: those before the member `signature`, and `}`.
    static func signedBytes(of line: [UInt8]) -> [UInt8]? {
        line.firstRange(of: signatureMember).map { line[..<$0.lowerBound] + [UInt8(ascii: "}")] }
    }

    private init(_ value: JSONValue) throws(JSONError) {
        var reader = try JSONReader(value, "the record", .strict)
        guard let number = UInt64(exactly: try reader.integer("n")), number > 0 else {
            throw Self.wrong("n", reader)
        }
        guard let time = Timestamp(try reader.string("time")) else { throw Self.wrong("time", reader) }
        self.number = number
        self.time = time
        switch try reader.string("kind") {
        case "begin": kind = .begin(try Self.cut(&reader))
        case "continue": kind = .continue(try Self.cut(&reader))
        case "start": kind = .start
        case "interrupted": kind = .interrupted(try Self.cut(&reader))
        case "use": kind = .use(try CredentialUse(&reader, time))
        case "lost": kind = .lost(try Self.count("count", &reader))
        case "checkpoint": kind = .checkpoint(key: try Self.digest("key", &reader), signature: try Self.signed(&reader))
        case "end": kind = .end(key: try Self.digest("key", &reader), signature: try Self.signed(&reader))
        default: throw Self.wrong("kind", reader)
        }
        previous = try Self.digest("previous", &reader)
        hash = try Self.digest("hash", &reader)
        try reader.finish()
    }

    private static func cut(_ reader: inout JSONReader) throws(JSONError) -> Cut? {
        guard try reader.integerIfPresent("cut") != nil else { return nil }
        return Cut(bytes: try count("cut", &reader), digest: try digest("digest", &reader))
    }

    fileprivate static func count(_ name: String, _ reader: inout JSONReader) throws(JSONError) -> UInt64 {
        guard let count = UInt64(exactly: try reader.integer(name)) else { throw wrong(name, reader) }
        return count
    }

    private static func digest(_ name: String, _ reader: inout JSONReader) throws(JSONError) -> String {
        let text = try reader.string(name)
        let isDigest = text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
        guard text.utf8.count == 64, isDigest else { throw wrong(name, reader) }
        return text
    }

    private static func signed(_ reader: inout JSONReader) throws(JSONError) -> [UInt8] {
        guard let signature = Base64.decode(try reader.string("signature")) else { throw wrong("signature", reader) }
        return signature
    }

    fileprivate static func wrong(_ name: String, _ reader: JSONReader) -> JSONError {
        JSONError(.wrongValue, at: reader.position(of: name), "\"\(name)\" is not what it must be")
    }
}

extension CredentialUse {
    fileprivate init(_ reader: inout JSONReader, _ time: Timestamp) throws(JSONError) {
        func number<Number: FixedWidthInteger>(_ name: String) throws(JSONError) -> Number? {
            guard let value = try reader.integerIfPresent(name) else { return nil }
            guard let number = Number(exactly: value) else { throw AuditRecord.wrong(name, reader) }
            return number
        }
        self.time = time
        uid = try number("uid")
        pid = try number("pid")
        program = try reader.stringIfPresent("program")
        cgroup = try reader.stringIfPresent("cgroup")
        site = try reader.string("site")
        scheme = try reader.string("scheme")
        credential = try reader.string("credential")
        generation = try number("generation")
        method = try reader.string("method")
        status = Int(truncatingIfNeeded: try AuditRecord.count("status", &reader))
        guard let result = Result(rawValue: try reader.string("result")) else {
            throw AuditRecord.wrong("result", reader)
        }
        self.result = result
        isDryRun = try reader.stringIfPresent("dryRun") == "yes"
    }
}
