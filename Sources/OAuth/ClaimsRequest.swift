// SPDX-License-Identifier: Apache-2.0

import CountersignJSON

/// The parameter `claims` (OpenID Connect Core §5.5) from several sources: the profile, a claims challenge of the
/// provider, a capability of this client.
package enum ClaimsRequest {
    /// The name under which Microsoft's provider knows the capability to apply app protection policies.
    package static let protectionCapability = "protapp"

    /// `{"access_token":{"xms_cc":{"values":["protapp"]}}}`.
    package static let protection = JSONValue(
        .object([
            JSONMember(
                "access_token",
                JSONValue(
                    .object([
                        JSONMember(
                            "xms_cc",
                            JSONValue(
                                .object([
                                    JSONMember(
                                        "values", JSONValue(.array([JSONValue(.string(protectionCapability))])))
                                ])))
                    ])))
        ]))

    /// The union of both, with each member and each element of an array once. If the two contradict each other, `more`
    /// wins: the next request has to ask for those claims. A null, which asks for a claim without conditions, gives way
    /// to conditions.
    package static func merged(_ claims: JSONValue?, with more: JSONValue?) -> JSONValue? {
        guard let claims else { return more }
        guard let more else { return claims }
        return merge(claims, more)
    }

    private static func merge(_ first: JSONValue, _ second: JSONValue) -> JSONValue {
        switch (first.content, second.content) {
        case (.object(var members), .object(let others)):
            for other in others {
                if let index = members.firstIndex(where: { $0.name.isExactly(other.name) }) {
                    members[index] = JSONMember(other.name, merge(members[index].value, other.value))
                } else {
                    members.append(other)
                }
            }
            return JSONValue(.object(members))
        case (.array(var values), .array(let others)):
            // Capabilities are spelt with and without capitals.
            for other in others where !values.contains(where: { $0 == other || isSameCapability($0, other) }) {
                values.append(other)
            }
            return JSONValue(.array(values))
        case (_, .null): return first
        default: return second
        }
    }

    private static func isSameCapability(_ first: JSONValue, _ second: JSONValue) -> Bool {
        guard case .string(let first) = first.content, case .string(let second) = second.content else { return false }
        return first.lowercased() == protectionCapability && second.lowercased() == protectionCapability
    }
}

extension SignInRequest {
    /// With more claims, none lost and none doubled. Throws `configuration` if they are not an object.
    package func adding(claims more: JSONValue) throws(OAuthError) -> SignInRequest {
        guard more.kind == "an object" else { throw .profile("the claims must be an object") }
        var request = self
        request.claims = ClaimsRequest.merged(claims, with: more)
        return request
    }

    /// With the claims of a provider's challenge, as received. Claims that are not a JSON object change nothing.
    package func adding(challenge claims: String) -> SignInRequest {
        guard let value = try? JSONParser.parse(Array(claims.utf8)), let request = try? adding(claims: value) else {
            return self
        }
        return request
    }
}
