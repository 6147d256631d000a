// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignCryptography
package import CountersignVault

/// A row of text about a profile: its subject, and the rest.
package typealias ProfileRow = (key: String, value: String)

extension ReadProfile {
    /// The signers of the profile, one sentence each; one sentence if it is unsigned.
    package var signatures: [String] {
        if signers.isEmpty { return ["not signed"] }
        return signers.map { signer in
            let name = "signed by \(signer.certificate.subject)"
            guard let reason = signer.reason else { return "\(name), verified" }
            return "\(name), who is not trusted here: \(reason)"
        }
    }
}

extension ProfilePlan {
    /// Everything that the plan would do, for a person to agree to.
    package var rows: [ProfileRow] {
        let profile = read.profile
        var rows: [ProfileRow] = [("profile", profile.name), ("identifier", profile.identifier)]
        if let organization = profile.organization { rows.append(("organization", organization)) }
        if let description = profile.description { rows.append(("description", description)) }
        rows += read.signatures.map { ("signature", $0) }
        for signer in read.signers { rows.append(("signer", signer.certificate.fingerprintText)) }
        if let former { rows.append(("replaces", former.installedText)) }
        return rows + items.flatMap(Self.rows)
    }

    /// One row for each step.
    package var itemRows: [ProfileRow] { items.compactMap { Self.rows($0).first } }

    private static func rows(_ item: Item) -> [ProfileRow] {
        switch item.step {
        case .anchor(let certificate, let file, let place):
            let kind = certificate.isSelfSigned ? "root" : "intermediate CA"
            guard file != nil else { return [(kind, "\(certificate.subject), which is trusted already (\(place))")] }
            var rows: [ProfileRow] = [
                (kind, "trusts \(certificate.subject) for all listed sites, until \(day(certificate.notAfter))"),
                ("", "\(certificate.fingerprintText), \(place)"),
            ]
            let weaknesses = certificate.weaknessesAsAnchor
            if !weaknesses.isEmpty { rows.append(("", "weak: \(weaknesses.joined(separator: ", "))")) }
            return rows
        case .identity(let name, let chain, let key):
            let leaf = chain.first
            let text = "\"\(name)\", \(leaf?.subject ?? ""), until \(day(leaf?.notAfter ?? 0))"
            return [("identity", key == nil ? "\(text), which is there already" : text)]
        case .enrollment(let endpoint, let name, let anchors, let verifiesServer):
            var rows: [ProfileRow] = [
                ("enrolment", "identity \"\(name)\" from the EST service \(endpoint), with a new key")
            ]
            for anchor in anchors {
                let scope = verifiesServer ? "for this service alone" : "for the certificates that it issues"
                rows.append(("", "\(anchor.subject), \(anchor.fingerprintText), \(scope)"))
            }
            return rows
        case .refused(let reason): return [("refused", "\(item.payload.name): \(reason)")]
        case .skipped: return [("skipped", "\(item.payload.name) (\(item.payload.type)), which has no effect here")]
        }
    }

    private static func day(_ time: Int64) -> String { String(WallClock.rfc3339(time).prefix(10)) }
}

extension ProfileRecord {
    /// `Corp, installed 2026-11-23 by the sign-in "work"`
    package var installedText: String {
        "\(name), installed \(WallClock.rfc3339(installed).prefix(10))"
            + (owner.map { " by the sign-in \"\($0.signIn)\"" } ?? "")
    }

    /// Who has signed it, as a sentence.
    package var signatureText: String {
        guard let signer else { return "not signed" }
        return "signed by \(signer.subject), \(signer.isTrusted ? "verified" : "who was not trusted here")"
    }
}
