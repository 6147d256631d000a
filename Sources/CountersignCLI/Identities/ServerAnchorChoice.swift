// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignCertificates
import CountersignEnrollment
import CountersignHome
import CountersignVault
import Glibc

/// The choice of the trust anchors for a first enrolment: those for the EST server (RFC 7030 §3.6), and those for the
/// certificates that it issues (§4.1.3).
struct ServerAnchorChoice: Sendable {
    let endpoint: ESTEndpoint
    let home: Home
    /// The certificates of `--anchor`.
    let given: [Certificate]?
    /// SHA-256 of the CA certificate in `--fingerprint`.
    let fingerprint: [UInt8]?
    /// `--yes`.
    let isAgreed: Bool
    /// Called before the question to the user.
    let prepareTerminal: @Sendable () -> Void

    // MARK: The server

    /// The anchors of `--anchor`. Otherwise the CA certificate of `--fingerprint` if it verifies the server, else the
    /// system's anchors and those in `Certs/anchors` if they do, else a CA certificate that the user confirms.
    func serverAnchors() async throws -> EnrollmentRecord.ServerAnchors {
        if let given { return .own(given.map(\.der)) }
        let found = try await ESTBootstrap.fetch(endpoint)
        let chosen = try fingerprint.map { try found.certificationAuthority(withFingerprint: $0) }
        if let chosen, isVerified(found, by: .explicit([chosen])) { return .own([chosen.der]) }
        let implicit = EnrollmentRecord.ServerAnchors.implicit
        if isVerified(found, by: try implicit.certificates(orSame: [], try home.anchorFiles())) { return implicit }
        return .own([try (chosen ?? confirmed(found)).der])
    }

    private func isVerified(_ found: ESTBootstrap, by anchors: ESTServerAnchors) -> Bool {
        let refused = (try? InterceptionStore(home: home).root()).flatMap { $0 }
        return endpoint.isVerified(
            found.serverChain, by: anchors, refusing: refused.map { [$0] } ?? [], at: Int64(time(nil)))
    }

    /// The only CA certificate of a server that nothing verifies yet. `--yes` does not confirm it.
    private func confirmed(_ found: ESTBootstrap) throws -> Certificate {
        guard let authority = found.certificationAuthorities.first else {
            throw CountersignError(
                .refused, "\(endpoint) does not send a CA certificate that could be trusted",
                hint: "pass the CA's certificate with --anchor")
        }
        guard found.certificationAuthorities.count == 1,
            try asks(
                "The CA of \(endpoint) is not trusted yet:", [authority],
                "Compare the fingerprint with the one its operator published. Trust this CA?")
        else { throw notConfirmed(found.certificationAuthorities, alternatives: "") }
        return authority
    }

    // MARK: Issued certificates

    /// The CA certificate of `--fingerprint`. Otherwise `verifying`, the explicit anchors of the server, if it sends
    /// one of them or one that they vouch for; and other roots of the server if the user confirms them.
    func anchors(
        among published: ESTPublishedAuthorities, verifying: [Certificate]
    ) throws -> [Certificate] {
        let roots = published.roots
        if let fingerprint {
            return [try ESTBootstrap.certificate(withFingerprint: fingerprint, among: roots + verifying)]
        }
        if let others = published.unvouchedRoots(besides: verifying, at: Int64(time(nil))) {
            return try !others.isEmpty && isConfirmed(others) ? verifying + others : verifying
        }
        guard !roots.isEmpty else {
            throw CountersignError(
                .refused, "\(endpoint) sends no root of the certificates that it issues",
                hint: "pass a file with that root and the root of the server's own certificate with --anchor")
        }
        guard try isConfirmed(roots) else { throw notConfirmed(roots, alternatives: ", or --yes") }
        return roots
    }

    private func isConfirmed(_ roots: [Certificate]) throws -> Bool {
        let introduction = "\(endpoint), which has been verified, sends these roots of the certificates that it issues:"
        guard isAgreed else { return try asks(introduction, roots, "Trust them for issued certificates?") }
        prepareTerminal()
        Console.write("\(introduction)\n\(roots.map(Self.text).joined())", to: STDERR_FILENO)
        return true
    }

    // MARK: Asking

    /// False if there is no terminal, or the answer is no.
    private func asks(_ introduction: String, _ certificates: [Certificate], _ question: String) throws -> Bool {
        guard Confirmation.hasTerminal else { return false }
        prepareTerminal()
        return try Confirmation(isGiven: false).asks(
            "\(introduction)\n\(certificates.map(Self.text).joined())\(question)")
    }

    private static func text(_ certificate: Certificate) -> String {
        """
          subject      \(Console.printable(certificate.subject))
          valid        \(Day.text(certificate.notBefore)) to \(Day.text(certificate.notAfter))
          fingerprint  \(certificate.fingerprintText)

        """
    }

    private func notConfirmed(_ authorities: [Certificate], alternatives: String) -> CountersignError {
        let shown = authorities.map { "\($0.subject), \($0.fingerprintText)" }.joined(separator: "; ")
        return CountersignError(
            .refused, "the CA of \(endpoint) was not confirmed: \(shown)",
            hint: "compare the fingerprint with the one its operator published, then pass "
                + "--fingerprint \(authorities.first?.fingerprintText ?? "")\(alternatives)")
    }
}
