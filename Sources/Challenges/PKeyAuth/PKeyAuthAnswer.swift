// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The answer to a PKeyAuth challenge: a JSON Web Token (RFC 7519) that the device's key signs, or, without a
/// certificate, the same without the token.
package struct PKeyAuthAnswer: Sendable {
    private let challenge: PKeyAuthChallenge
    private let device: DeviceCredential

    package init(_ challenge: PKeyAuthChallenge, _ device: DeviceCredential) {
        self.challenge = challenge
        self.device = device
    }

    /// `audience` is the URL of the request without its query; `time` is in seconds since 1970.
    package func field(audience: String, time: Int64) -> AuthorizationField {
        var text: [UInt8] = []
        func add(_ name: String, _ value: some Collection<UInt8>) {
            if !text.isEmpty { text += ", ".utf8 }
            text += "\(name)=".utf8
            text.appendQuoted(value)
        }
        if let certificate = device.certificate,
            let token = Self.token(certificate, audience: audience, nonce: challenge.nonce, time: time)
        {
            add("AuthToken", token)
        }
        add("Context", challenge.context.utf8)
        add("Version", challenge.version.utf8)
        defer { text.wipe() }
        return AuthorizationField(scheme: PKeyAuthAuthenticator.name, parameterBytes: text.count) {
            $0.copyBytes(from: text)
        }
    }

    /// Nil if the key cannot be used. The server reads `iat` as a string.
    private static func token(
        _ certificate: DeviceCertificate, audience: String, nonce: String, time: Int64
    ) -> [UInt8]? {
        let header =
            #"{"alg":"\#(certificate.key.algorithm)","typ":"JWT","x5c":["\#(Base64.encode(certificate.der))"]}"#
        let payload = #"{"aud":\#(quoted(audience)),"iat":"\#(time)","nonce":\#(quoted(nonce))}"#
        let signed = Array("\(Base64URL.encode(header.utf8)).\(Base64URL.encode(payload.utf8))".utf8)
        guard let signature = certificate.key.signature(of: signed) else { return nil }
        return signed + Array(".\(Base64URL.encode(signature))".utf8)
    }

    /// As a JSON string (RFC 8259 §7).
    private static func quoted(_ text: String) -> String {
        var quoted = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\": quoted += "\\\(scalar)"
            case "\u{00}"..."\u{1F}":
                quoted += "\\u00" + (scalar.value < 16 ? "0" : "") + String(scalar.value, radix: 16)
            default: quoted.unicodeScalars.append(scalar)
            }
        }
        return quoted + "\""
    }
}
