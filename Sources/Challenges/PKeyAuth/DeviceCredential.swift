// SPDX-License-Identifier: Apache-2.0

/// A private key that signs. The key itself is in another module.
package protocol DeviceKey: AnyObject, Sendable {
    /// `RS256` or `ES256` (RFC 7518 §3.1).
    var algorithm: String { get }

    /// The signature of `message` in the form of JSON Web Signature (RFC 7515 §5.1); nil if the key cannot be used.
    func signature(of message: [UInt8]) -> [UInt8]?
}

/// A certificate that was issued to this device.
package struct DeviceCertificate: Sendable, Equatable {
    package let der: [UInt8]
    /// As text (RFC 2253 or RFC 4514).
    package let issuer: String
    package let key: any DeviceKey

    package init(der: [UInt8], issuer: String, key: any DeviceKey) {
        self.der = der
        self.issuer = issuer
        self.key = key
    }

    package static func == (left: Self, right: Self) -> Bool { left.der == right.der }
}

/// A device's proof of its identity: a certificate and its key, or the statement that it has none.
package struct DeviceCredential: Sendable, Equatable {
    /// The identity's name, for display; `no certificate` without one.
    package let name: String
    package let certificate: DeviceCertificate?

    package init(name: String, certificate: DeviceCertificate) {
        self.name = name
        self.certificate = certificate
    }

    /// The device has no certificate that the server accepts.
    package static let none = DeviceCredential()

    private init() {
        name = "no certificate"
        certificate = nil
    }

    /// Failures with a certificate lock no account.
    package var reference: CredentialReference { CredentialReference(name: name, source: .program) }
}
