// SPDX-License-Identifier: Apache-2.0

import Certificates
import Countersign
import Foundation

/// A client identity as `certificate inspect` shows it.
struct ShownIdentity: Encodable {
    let name: String
    let subject: String
    let issuer: String
    let serialNumber: String
    let notBefore: String
    let notAfter: String
    let isExpired: Bool
    let key: String
    let fingerprint: String
    let isForClients: Bool
    /// The subjects of the certificates behind the leaf.
    let issuers: [String]
    let hasPrivateKey: Bool

    private enum CodingKeys: String, CodingKey {
        case name, subject, issuer, notBefore, notAfter, key, fingerprint, issuers
        case serialNumber = "serial"
        case isExpired = "expired"
        case isForClients = "clientAuthentication"
        case hasPrivateKey = "privateKey"
    }

    init(_ name: String, _ chain: [Certificate], _ hasPrivateKey: Bool) {
        let leaf = chain[0]
        self.name = name
        subject = leaf.subject
        issuer = leaf.issuer
        serialNumber = leaf.serialNumberHex
        notBefore = Day.text(leaf.notBefore)
        notAfter = Day.text(leaf.notAfter)
        isExpired = leaf.notAfter < Int64(time(nil))
        key = leaf.keyDescription
        fingerprint = leaf.fingerprintText
        isForClients = leaf.allowsClientAuthentication && leaf.allowsDigitalSignature
        issuers = chain.dropFirst().map(\.subject)
        self.hasPrivateKey = hasPrivateKey
    }

    /// A line a field.
    var text: String {
        var rows = [
            ["name", name], ["subject", subject], ["issuer", issuer], ["serial", serialNumber],
            ["valid", "\(notBefore) to \(notAfter)\(isExpired ? ", expired" : "")"],
            ["purpose", isForClients ? "client authentication" : "not client authentication"],
            ["key", "\(key), \(hasPrivateKey ? "in the vault" : "not in the vault")"], ["fingerprint", fingerprint],
        ]
        rows += issuers.map { ["issued by", $0] }
        return TextTable(rows: rows).text
    }
}

/// A day in UTC as ISO 8601 writes it.
enum Day {
    /// `seconds` are since 1970.
    static func text(_ seconds: Int64) -> String {
        var time = time_t(seconds)
        var parts = tm()
        gmtime_r(&time, &parts)
        return String(format: "%04d-%02d-%02d", Int(parts.tm_year) + 1900, Int(parts.tm_mon) + 1, Int(parts.tm_mday))
    }
}
