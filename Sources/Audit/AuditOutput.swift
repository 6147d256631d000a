// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The records of an audit as `countersign audit show` and `countersign audit export` print them.
package struct AuditOutput: Sendable {
    package enum Format: String, Sendable, CaseIterable {
        /// Lines for people.
        case text
        /// The lines of the audit. Those of a server are unchanged.
        case jsonl
        /// Events of OCSF, one per line; only uses.
        case ocsf
    }

    private let format: Format
    private let matches: (@Sendable (_ site: String) -> Bool)?

    /// With `matches`, only uses for those sites.
    package init(_ format: Format, matches: (@Sendable (_ site: String) -> Bool)? = nil) {
        self.format = format
        self.matches = matches
    }

    /// The line for `record`, whose line in the audit is `line`; nil for none. Has a line feed, and no other character
    /// that controls a terminal.
    package func text(of record: AuditRecord, _ line: [UInt8]) -> String? {
        if let matches {
            guard case .use(let use) = record.kind, matches(use.site) else { return nil }
        }
        return switch format {
        case .text: PrintableText.escaped(record.text) + "\n"
        case .jsonl: PrintableText.escapedJSON(String(decoding: line, as: UTF8.self)) + "\n"
        case .ocsf: OCSFAuthentication.event(for: record).map { $0.text + "\n" }
        }
    }
}

extension AuditVerifier {
    /// Reads the file at `path` as the next one, up to the first fault. Hands each record with its line to `body`,
    /// until it returns false.
    package mutating func read(
        path: String, _ body: (_ record: AuditRecord, _ line: [UInt8]) -> Bool = { _, _ in true }
    ) throws(AuditError) {
        begin(path)
        var verifier = self
        defer { self = verifier }
        try AuditReading.lines(of: path) { line, isTerminated in
            if let record = verifier.read(line, isTerminated: isTerminated) { return body(record, line) }
            return verifier.report.fault == nil
        }
    }
}
