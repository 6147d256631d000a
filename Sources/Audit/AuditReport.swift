// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// What an audit proves, and what it does not.
package struct AuditReport: Sendable, Equatable, Encodable {
    package internal(set) var files: [String] = []
    package internal(set) var records: UInt64 = 0
    package internal(set) var uses: UInt64 = 0
    /// The numbers, hash and times of the first and the last record; nil without one.
    package internal(set) var first: UInt64?
    package internal(set) var last: UInt64?
    package internal(set) var lastHash: String?
    package internal(set) var firstTime: String?
    package internal(set) var lastTime: String?
    /// The first file continues another, which was not read, after that record.
    package internal(set) var startsAfter: UInt64?
    package internal(set) var isVerifiedByKey = false
    /// Signed records, and the keys that they name.
    package internal(set) var signatures: UInt64 = 0
    package internal(set) var keys: [String] = []
    /// Records after the last signed one.
    package internal(set) var unsigned: UInt64 = 0
    /// The last record says that the file was closed.
    package internal(set) var isEnded = false
    /// Of an unfinished last line.
    package internal(set) var cutBytes = 0
    /// The records that a server wrote after another had not closed the file.
    package internal(set) var interruptions: [UInt64] = []
    /// The uses that were not recorded because the file could not be written.
    package internal(set) var lost: UInt64 = 0
    /// The records whose time is before that of the one before.
    package internal(set) var clockSetBack: [UInt64] = []
    /// The first fault. What was counted is all before it.
    package internal(set) var fault: AuditFault?

    package var isIntact: Bool { fault == nil && records > 0 }

    /// For people, one sentence per line.
    package var lines: [String] {
        var lines: [String] = []
        if let fault {
            lines.append("damaged: \(fault.text)")
            lines.append(last.map { "intact before that: the records \(first ?? $0) to \($0)" } ?? "nothing is intact")
        } else if let first, let last {
            let end = cutBytes > 0 ? "; the last line is cut after \(cutBytes) bytes" : ""
            lines.append(
                "complete: the records \(first) to \(last), \(Self.count(uses, "use")) of credentials, from "
                    + "\(firstTime ?? "") to \(lastTime ?? "")\(end)")
        } else {
            lines.append("empty: there is no record" + (cutBytes > 0 ? ", only \(cutBytes) bytes of one" : ""))
        }
        if let startsAfter { lines.append("continues an earlier file, after its record \(startsAfter)") }
        lines.append(signatureLine)
        if !interruptions.isEmpty {
            lines.append(
                "not closed before \(Self.list(interruptions)): the server was killed, which loses at most one record, "
                    + "or the end of the file was removed")
        }
        if lost > 0 { lines.append("\(Self.count(lost, "use")) not recorded, because the file could not be written") }
        if !clockSetBack.isEmpty { lines.append("the clock was set back before \(Self.list(clockSetBack))") }
        if let last, let lastHash {
            lines.append(
                "records after \(last) that were removed cannot be missed without a copy of its hash: \(lastHash)")
        }
        return lines
    }

    private var signatureLine: String {
        let names = keys.map { String($0.prefix(16)) }.joined(separator: ", ")
        guard isVerifiedByKey else {
            return keys.isEmpty
                ? "not signed" : "signatures by \(names) are not verified, because no public key is given"
        }
        guard let last, signatures > 0 else { return "not signed yet" }
        let rest = unsigned == 0 ? "" : "; \(Self.count(unsigned, "record")) after it not signed yet"
        return "signed by \(names) up to record \(last - unsigned)\(rest)\(isEnded ? ", and closed" : "")"
    }

    private static func count(_ number: UInt64, _ noun: String) -> String {
        "\(number) \(noun)\(number == 1 ? "" : "s")"
    }

    /// At most five.
    private static func list(_ numbers: [UInt64]) -> String {
        (numbers.count == 1 ? "record " : "records ") + numbers.prefix(5).map { String($0) }.joined(separator: ", ")
            + (numbers.count > 5 ? " and \(numbers.count - 5) more" : "")
    }

}
