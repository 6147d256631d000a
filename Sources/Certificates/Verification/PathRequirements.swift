// SPDX-License-Identifier: Apache-2.0

/// The reasons of ``CertificateRequirements`` for the certificates of one verification. They are the same on every
/// path, so they are found once.
final class PathRequirements {
    let budget = VerificationBudget()
    private var known: [(certificate: Certificate, role: CertificateRequirements.Role, [ServerTrust.Reason])] = []

    func reasons(against certificate: Certificate, as role: CertificateRequirements.Role) -> [ServerTrust.Reason] {
        // The certificates of all paths are the same objects of OpenSSL.
        for (other, otherRole, reasons) in known where otherRole == role && certificate.isSameObject(as: other) {
            return reasons
        }
        budget.charge(VerificationBudget.contentCheck)
        let reasons = CertificateRequirements.reasons(against: certificate, as: role, within: budget)
        known.append((certificate, role, reasons))
        return reasons
    }
}

extension Certificate {
    fileprivate func isSameObject(as other: Certificate) -> Bool {
        withX509 { own in other.withX509 { own == $0 } }
    }
}
