// SPDX-License-Identifier: Apache-2.0

/// How the records of one kind are written and read. ``VaultRecords`` has their fields.
struct RecordFormat: Sendable {
    let kind: RecordKind
    /// Writes the records of this kind that the contents have, in their order.
    let write: @Sendable (VaultContents, inout RecordWriter) -> Void
    /// Reads the fields of one record. Throws `altered` for one that this version would not have written.
    let read: @Sendable (inout RecordReader, inout DecodedRecords) throws(VaultError) -> Void

    /// One for each kind, in the order of their numbers, which is that of the records.
    static let all: [RecordFormat] = (credentials + identities + enrollments + signIns + single)
        .sorted { $0.kind.rawValue < $1.kind.rawValue }

    private static let byKind = Dictionary(uniqueKeysWithValues: all.map { ($0.kind.rawValue, $0) })

    /// Nil for a kind that is unknown to this version.
    static func of(_ code: UInt8) -> RecordFormat? { byKind[code] }

    /// Records that begin with their name, and are sorted by it.
    static func named<Record>(
        _ kind: RecordKind, _ records: @escaping @Sendable (VaultContents) -> [String: Record],
        write: @escaping @Sendable (inout RecordWriter, String, Record) -> Void,
        read: @escaping @Sendable (String, inout RecordReader, inout DecodedRecords) throws(VaultError) -> Void
    ) -> RecordFormat {
        RecordFormat(kind: kind) { contents, writer in
            for (name, record) in records(contents).sorted(by: { $0.key < $1.key }) {
                writer.record(kind) { write(&$0, name, record) }
            }
        } read: { body, parts throws(VaultError) in
            try read(try parts.name(of: kind, in: &body), &body, &parts)
        }
    }
}
