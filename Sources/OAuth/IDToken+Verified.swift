// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON

extension IDToken {
    /// The claims of an ID token that was verified when it was received; nil if it cannot be read.
    package static func claims(ofVerified token: Secret) -> JSONValue? {
        guard let token = try? SignedToken(parsing: token), let claims = try? JSONParser.parse(token.payload),
            case .object = claims.content
        else { return nil }
        return claims
    }
}
