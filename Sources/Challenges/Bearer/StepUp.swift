// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON

/// What a server requires of an access token that is valid: more scopes (`insufficient_scope`, RFC 6750 §3.1), claims
/// (`insufficient_claims`, the claims challenge of Microsoft's identity platform), or a stronger or more recent sign-in
/// (`insufficient_user_authentication`, RFC 9470 §3).
///
/// The server chooses all of it: a hint for the next request to the provider, and nothing more.
package struct StepUp: Sendable {
    /// Empty if the server does not name them.
    package var scopes: [String]
    /// A JSON object as in the parameter `claims` (OpenID Connect Core §5.5).
    package var claims: String?
    /// Authentication context class references; one of them suffices.
    package var acrValues: [String]
    /// How long ago the person may have signed in, in seconds.
    package var maxAge: Int64?

    package init(scopes: [String] = [], claims: String? = nil, acrValues: [String] = [], maxAge: Int64? = nil) {
        self.scopes = scopes
        self.claims = claims
        self.acrValues = acrValues
        self.maxAge = maxAge
    }

    /// The server requires more than scopes: other sites of the sign-in have no use for such a token.
    package var isForOneSite: Bool { claims != nil || !acrValues.isEmpty || maxAge != nil }
}

extension StepUp: Hashable {
    /// The order of the scopes is the server's choice, and may differ each time.
    package static func == (left: StepUp, right: StepUp) -> Bool {
        Set(left.scopes) == Set(right.scopes) && left.claims == right.claims && left.acrValues == right.acrValues
            && left.maxAge == right.maxAge
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(Set(scopes))
        hasher.combine(claims)
        hasher.combine(acrValues)
        hasher.combine(maxAge)
    }
}

extension StepUp {
    /// The longest claims, in bytes.
    package static let claimsBytes = 4096
    /// The longest `acr_values`, in bytes.
    package static let acrBytes = 512
    /// Ten years, in seconds.
    package static let longestAge: Int64 = 10 * 366 * 86_400

    /// Claims as a challenge or a person writes them: a JSON object, or that in base64 (RFC 4648 §4) or base64url (§5),
    /// with or without padding. Nil for anything else, and for an object without members.
    package static func claims(_ text: String) -> String? {
        guard text.utf8.count <= claimsBytes * 4 / 3 + 4 else { return nil }
        let trimmed = text.drop { $0 == " " }
        let bytes: [UInt8]
        if trimmed.hasPrefix("{") {
            bytes = Array(trimmed.utf8)
        } else {
            let unpadded = trimmed.replacing("+", with: "-").replacing("/", with: "_").prefix { $0 != "=" }
            guard let decoded = Base64URL.decode(unpadded) else { return nil }
            bytes = decoded
        }
        guard bytes.count <= claimsBytes,
            let value = try? JSONParser.parse(bytes, limits: JSONLimits(bytes: claimsBytes, depth: 8)),
            case .object(let members) = value.content, !members.isEmpty
        else { return nil }
        let text = value.serialized
        return text.utf8.count <= claimsBytes ? text : nil
    }

    /// The parameter `acr_values` (RFC 9470 §3): values separated by spaces. Nil for one that cannot be sent.
    package static func acrValues(_ text: String) -> [String]? {
        let values = text.split(separator: " ").map(String.init)
        guard !values.isEmpty, text.utf8.count <= acrBytes,
            text.utf8.allSatisfy({ (0x20...0x7E).contains($0) && $0 != 0x22 && $0 != 0x5C })
        else { return nil }
        return values
    }

    /// The parameter `max_age` (RFC 9470 §3): seconds. Nil for another text.
    package static func maxAge(_ text: String) -> Int64? {
        guard (1...10).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
            return nil
        }
        return Int64(text).map { min($0, longestAge) }
    }

    /// What the server requires, after its name: `requires …`.
    package var demand: String {
        var demands: [String] = []
        if !scopes.isEmpty { demands.append("the scope \"\(scopes.joined(separator: " "))\"") }
        if claims != nil { demands.append("a token with other claims") }
        if !acrValues.isEmpty { demands.append("a sign-in at the level \"\(acrValues.joined(separator: " or "))\"") }
        if let maxAge {
            demands.append(maxAge == 0 ? "a new sign-in" : "a sign-in that is at most \(maxAge) seconds old")
        }
        return "requires \(demands.joined(separator: ", and "))"
    }
}
