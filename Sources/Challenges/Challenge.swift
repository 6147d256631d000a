// SPDX-License-Identifier: Apache-2.0

/// One `name=value` parameter of a challenge (RFC 9110 §11.2). The value is stored without quotes and escapes.
package struct AuthParameter: Equatable, Sendable {
    /// The name as the origin wrote it; compared without regard to case.
    package let name: String
    /// The value as the origin wrote it.
    package let octets: [UInt8]

    package init(_ name: String, octets: [UInt8]) {
        self.name = name
        self.octets = octets
    }

    package init(_ name: String, _ value: String) {
        self.init(name, octets: Array(value.utf8))
    }

    /// The value as text: UTF-8, or ISO 8859-1 if it is not UTF-8.
    package var value: String {
        if let text = String(validating: octets, as: UTF8.self) { return text }
        var text = String.UnicodeScalarView()
        text.append(contentsOf: octets.lazy.map { Unicode.Scalar($0) })
        return String(text)
    }
}

/// One challenge of an origin (RFC 9110 §11.3): a scheme with a token68, with parameters, or with neither.
package struct Challenge: Equatable, Sendable {
    /// The scheme as the origin wrote it; compared without regard to case.
    package let scheme: String
    package let token68: String?
    /// The parameters in the order received. No name occurs twice.
    package let parameters: [AuthParameter]
    /// Whether the field could not be read behind these parameters, so that some may be missing.
    package let isCut: Bool

    package init(scheme: String, token68: String? = nil, parameters: [AuthParameter] = [], isCut: Bool = false) {
        self.scheme = scheme
        self.token68 = token68
        self.parameters = parameters
        self.isCut = isCut
    }

    /// The value of the parameter `name`, ignoring case, or nil.
    package func parameter(_ name: String) -> String? { find(name)?.value }

    /// The same value as the origin wrote it.
    package func octets(_ name: String) -> [UInt8]? { find(name)?.octets }

    /// The same challenge, marked as possibly incomplete.
    func cut() -> Challenge { Challenge(scheme: scheme, token68: token68, parameters: parameters, isCut: true) }

    private func find(_ name: String) -> AuthParameter? {
        let name = name.lowercased()
        return parameters.first { $0.name.lowercased() == name }
    }

    /// The `realm` parameter (RFC 9110 §11.5).
    package var realm: String? { parameter("realm") }

    /// Whether the scheme is `name`, ignoring case.
    package func isOf(_ name: String) -> Bool { scheme.lowercased() == name.lowercased() }
}
