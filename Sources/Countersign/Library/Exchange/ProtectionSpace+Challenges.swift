// SPDX-License-Identifier: Apache-2.0

package import CountersignChallenges

extension ProtectionSpace {
    /// Converts the space to the public type.
    package init(_ space: AuthenticationSpace) {
        let method: AuthenticationMethod =
            switch space.scheme {
            case .certificate: .clientCertificate
            case .pkeyauth: .other("PKeyAuth")
            case .negotiate: .negotiate
            case .ntlm: .ntlm
            case .digest: .digest
            case .basic: .basic
            case .bearer: .bearer
            }
        self.init(
            scheme: space.origin.scheme.rawValue, host: space.origin.host, port: Int(space.origin.port),
            realm: space.realm, authenticationMethod: method)
    }
}
