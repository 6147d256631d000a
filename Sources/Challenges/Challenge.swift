// SPDX-License-Identifier: Apache-2.0

/// One `name=value` parameter of a challenge (RFC 9110 §11.2). The value is stored without quotes and escapes.
package struct AuthParameter: Equatable, Sendable {
    /// The name as the origin wrote it; compared without regard to case.
    package let name: String
    package let value: String

    package init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }
}

/// One challenge of an origin (RFC 9110 §11.3): a scheme with a token68, with parameters, or with neither.
package struct Challenge: Equatable, Sendable {
    /// The scheme as the origin wrote it; compared without regard to case.
    package let scheme: String
    package let token68: String?
    /// The parameters in the order received. No name occurs twice.
    package let parameters: [AuthParameter]

    package init(scheme: String, token68: String? = nil, parameters: [AuthParameter] = []) {
        self.scheme = scheme
        self.token68 = token68
        self.parameters = parameters
    }

    /// The value of the parameter `name`, ignoring case, or nil.
    package func parameter(_ name: String) -> String? {
        let name = name.lowercased()
        return parameters.first { $0.name.lowercased() == name }?.value
    }

    /// The `realm` parameter (RFC 9110 §11.5).
    package var realm: String? { parameter("realm") }

    /// Whether the scheme is `name`, ignoring case.
    package func isOf(_ name: String) -> Bool { scheme.lowercased() == name.lowercased() }
}
