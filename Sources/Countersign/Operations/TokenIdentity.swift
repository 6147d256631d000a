// SPDX-License-Identifier: Apache-2.0

package import CountersignCertificates
package import CountersignCryptography
package import CountersignVault
import FoundationEssentials

/// A client identity whose key stays in a PKCS#11 token. Only the process that has the PIN uses it.
package struct TokenIdentity: Sendable {
    package let uri: TokenURI
    private let pin: Secret

    package init(_ uri: TokenURI, pin: Secret) {
        self.uri = uri
        self.pin = pin
    }

    /// A `pkcs11:` URI (RFC 7512). Its module is its `module-path`, else `PKCS11_MODULE_PATH`, else the system's.
    package static func uri(
        _ text: String, environment: [String: String] = ProcessInfo.processInfo.environment
    ) throws(CertificateError) -> TokenURI {
        let module = environment[PKCS11Token.moduleVariable].flatMap { $0.isEmpty ? nil : $0 }
        return try TokenURI(text, defaultModulePath: module)
    }

    /// The key's certificate and its issuers, among `certificates` or from the token.
    package func chain(among certificates: [Certificate]?) throws(CertificateError) -> [Certificate] {
        let key = try PKCS11Token.key(at: uri, pin: pin)
        let known = if let certificates { certificates } else { [try PKCS11Token.certificate(at: uri, pin: pin)] }
        return try IdentityFile.chain(of: key, among: known)
    }

    /// Throws if the token has no such key.
    package func checkKey() throws(CertificateError) { _ = try PKCS11Token.key(at: uri, pin: pin) }

    /// The vault's record of the key; without a `leaf`, for a certificate that has yet to be issued.
    package func key(named name: String, leaf: Certificate? = nil) -> TokenKey {
        let key = TokenKey(name: name, uri: uri.description, pin: pin)
        return leaf.map { key.certified(by: $0.sha256Fingerprint) } ?? key
    }
}
