// SPDX-License-Identifier: Apache-2.0

/// The parts of a request that its signature may cover.
package struct SignableRequest: Sendable {
    package struct Field: Sendable {
        /// In lower case.
        package let name: String
        package let value: [UInt8]

        package init(_ name: String, _ value: some Collection<UInt8>) {
            self.name = name.lowercased()
            self.value = Array(value)
        }
    }

    let method: String
    /// In origin-form, without the query.
    let path: ArraySlice<UInt8>
    let query: [QueryParameter]
    private let fields: [Field]

    /// `target` is in origin-form (RFC 9112 §3.2.1) and `host` the value of Host as it will be sent, whatever `fields`
    /// have for it. The fields are in the order in which they are sent.
    package init(method: String, target: some Collection<UInt8>, host: String, fields: [Field]) {
        let target = Array(target)
        let mark = target.firstIndex(of: UInt8(ascii: "?")) ?? target.endIndex
        self.method = method
        path = target[..<mark]
        query = QueryParameter.parse(target[mark...].dropFirst())
        self.fields = fields.filter { $0.name != "host" } + [Field("host", host.utf8)]
    }

    /// The values of the lines with this name.
    func values(of name: String) -> [[UInt8]] { fields.filter { $0.name == name }.map(\.value) }
}

/// A parameter of a query, percent-decoded. A plus sign is a space, and a parameter without a value has an empty one.
struct QueryParameter: Equatable, Sendable {
    let nameOctets: [UInt8]
    let value: [UInt8]
    /// Both as they are written in the query.
    let written: ArraySlice<UInt8>

    var name: String { String(decoding: nameOctets, as: UTF8.self) }

    static func parse(_ query: ArraySlice<UInt8>) -> [QueryParameter] {
        query.split(separator: UInt8(ascii: "&")).map { pair in
            let equals = pair.firstIndex(of: UInt8(ascii: "="))
            return QueryParameter(
                nameOctets: Octets.percentDecoded(pair[..<(equals ?? pair.endIndex)], plusIsSpace: true),
                value: Octets.percentDecoded(equals.map { pair[($0 + 1)...] } ?? [], plusIsSpace: true), written: pair)
        }
    }
}
