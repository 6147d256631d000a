// SPDX-License-Identifier: Apache-2.0

/// A property list in XML, as Apple's configuration profiles use it.
///
/// Written here because a profile comes from the network: Foundation's decoder overflows the stack on deep nesting,
/// reads data that is not Base64 as empty, and keeps one of two values for the same key. This one reads XML only,
/// without entities of the document's own, and refuses ambiguous documents.
package indirect enum PropertyList: Equatable, Sendable {
    case string(String)
    case data([UInt8])
    case integer(Int64)
    case real(Double)
    case bool(Bool)
    /// As it was written: `2026-11-22T09:00:00Z`.
    case date(String)
    case array([PropertyList])
    /// In the document's order. No key occurs twice.
    case dictionary([Entry])

    package struct Entry: Equatable, Sendable {
        package let key: String
        package let value: PropertyList

        package init(_ key: String, _ value: PropertyList) {
            self.key = key
            self.value = value
        }
    }

    /// Limits on a document.
    package static let maximumBytes = 4 << 20
    package static let maximumDepth = 32
    package static let maximumElements = 20_000

    /// Throws `malformed`, with line and column.
    package init(_ document: [UInt8]) throws(DeviceManagementError) {
        guard document.count <= Self.maximumBytes else {
            throw DeviceManagementError(
                .malformed, "the profile has \(document.count) bytes, and at most \(Self.maximumBytes) are read")
        }
        guard !document.starts(with: "bplist".utf8) else {
            throw DeviceManagementError(
                .malformed, "the profile is a binary property list, and profiles are XML",
                hint: "convert it with \"plistutil -i FILE -o FILE.mobileconfig -f xml\"")
        }
        let bytes = document.starts(with: [0xEF, 0xBB, 0xBF]) ? Array(document.dropFirst(3)) : document
        var reader = PropertyListReader(bytes)
        self = try reader.document()
    }

    /// The value for `key` in a dictionary.
    package subscript(key: String) -> PropertyList? {
        guard case .dictionary(let entries) = self else { return nil }
        return entries.first { $0.key == key }?.value
    }

    package var text: String? { if case .string(let text) = self { text } else { nil } }
    package var bytes: [UInt8]? { if case .data(let bytes) = self { bytes } else { nil } }
    package var number: Int64? { if case .integer(let number) = self { number } else { nil } }
    package var elements: [PropertyList]? { if case .array(let elements) = self { elements } else { nil } }
    package var entries: [Entry]? { if case .dictionary(let entries) = self { entries } else { nil } }
    package var truth: Bool? { if case .bool(let truth) = self { truth } else { nil } }
}
