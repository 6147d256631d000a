// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// Why a challenge is not answered, why the home, the vault or the proxy cannot be used, why a person could not be
/// signed in, or why a configuration profile is not installed. Never contains a secret.
public struct ChallengeError: Error, Sendable {
    /// The kind of error. Later versions may add codes, so include a `default` in a `switch`.
    public enum Code: Hashable, Sendable {
        /// The first check failed: the site is not on the list.
        case siteNotAllowed
        /// The second check failed: the site's line, or this build, does not answer this kind of challenge.
        case methodNotAnswered
        /// The third check failed: there is no credential or identity to answer with, or the site has rejected it.
        case nothingToAnswerWith
        /// The protection space does not identify a site.
        case invalidProtectionSpace
        /// The home does not exist.
        case homeMissing
        /// A file or folder of the home cannot be read or written.
        case homeUnreadable
        /// A file of the home has invalid contents.
        case homeFaulty
        /// The list of sites has errors.
        case listFaulty
        /// The vault requires a passphrase, or the passphrase is wrong.
        case vaultLocked
        /// The vault is damaged or has an unknown format.
        case vaultFaulty
        /// A certificate or its key cannot be used.
        case certificateFaulty
        /// A certificate could not be renewed.
        case refreshFailed
        /// The certification authority has not decided yet.
        case refreshPending
        /// The proxy cannot run.
        case proxyFailed
        /// `isIntegratedAuthenticationEnabled` is false.
        case switchedOff
        /// The server's certificate cannot be verified, and nothing permits continuing nevertheless.
        case serverNotTrusted
        /// The TLS handshake failed, or the connection was closed abnormally.
        case tlsFailed
        /// A profile cannot be read, is not valid, or does not fit the home: its name, its sites or its payloads.
        case profileFaulty
        /// The name is that of another credential or identity, or of a sign-in at another provider.
        case nameInUse
        /// The user agent does not exist, or has failed; or the system refused a socket for the redirect.
        case userAgentFailed
        /// The person has closed the provider's page.
        case signInCancelled
        /// The person, or a policy of the provider, has denied the sign-in (`access_denied`).
        case signInDenied
        /// The person did not sign in within the time limit.
        case signInTimedOut
        /// The provider could not be reached, or cannot answer now. The same call may succeed later.
        case providerUnreachable
        /// The provider refused, or sent something that is not valid.
        case providerRefused
        /// The provider issues no token before the organisation's protection policy is applied: remediate
        /// ``ChallengeError/accountID`` with a ``ComplianceManager``, and sign in again.
        case protectionPolicyRequired
        /// There is no sign-in of that name.
        case signInMissing
        /// There is no configuration profile with that identifier.
        case profileMissing
    }

    /// The party that can correct an error.
    public enum Fault: Hashable, Sendable {
        /// The calling program.
        case caller
        /// The user or their administrator: the list, the credentials, the certificates or the profile.
        case configuration
        /// The system: files, permissions or ports.
        case environment
        /// A server.
        case peer
    }

    /// The three checks, in order.
    public enum Check: Hashable, Sendable {
        /// Is the site on the list?
        case site
        /// Does the site's line permit this kind of challenge?
        case method
        /// Is there a credential or an identity to answer with?
        case credential
    }

    /// The kind of error.
    public let code: Code
    /// A short sentence for display, in lower case and without a full stop, that names the faulty file or value.
    public let detail: String
    /// The line of the list that caused the error, such as `AllowedSites/work.sites:3`.
    public let listLine: String?
    /// How to correct the error.
    public let hint: String?
    /// The account that a protection policy is for, with the code `protectionPolicyRequired`; otherwise nil.
    public internal(set) var accountID: String?
    /// Overrides the fault that the code implies.
    private let blamed: Fault?

    init(_ code: Code, _ detail: String, listLine: String? = nil, hint: String? = nil, fault: Fault? = nil) {
        blamed = fault
        self.code = code
        self.detail = detail
        self.listLine = listLine
        self.hint = hint
    }

    static func invalid(_ detail: String, _ hint: String) -> ChallengeError {
        ChallengeError(.invalidProtectionSpace, detail, hint: hint)
    }

    /// The check that failed, if one did.
    public var check: Check? {
        switch code {
        case .siteNotAllowed: .site
        case .methodNotAnswered: .method
        case .nothingToAnswerWith: .credential
        default: nil
        }
    }

    /// The party that can correct the error.
    public var fault: Fault {
        if let blamed { return blamed }
        return switch code {
        case .invalidProtectionSpace, .switchedOff, .signInMissing, .profileMissing: .caller
        case .homeUnreadable, .proxyFailed, .userAgentFailed: .environment
        case .refreshFailed, .refreshPending, .serverNotTrusted, .tlsFailed, .providerUnreachable, .providerRefused:
            .peer
        case .siteNotAllowed, .methodNotAnswered, .nothingToAnswerWith, .homeMissing, .homeFaulty, .listFaulty,
            .vaultLocked, .vaultFaulty, .certificateFaulty, .profileFaulty, .nameInUse, .signInCancelled, .signInDenied,
            .signInTimedOut, .protectionPolicyRequired:
            .configuration
        }
    }
}

extension ChallengeError: Equatable {
    /// Compares the code and the line, but not the texts.
    public static func == (left: Self, right: Self) -> Bool {
        left.code == right.code && left.listLine == right.listLine
    }
}

extension ChallengeError: CustomStringConvertible {
    /// The detail, line and hint, as far as they exist: `not on the list (AllowedSites/work.sites:3); hint`.
    public var description: String {
        let text = errorDescription ?? detail
        return hint.map { "\(text); \($0)" } ?? text
    }
}

extension ChallengeError: LocalizedError {
    /// The detail and the line of the list, which `localizedDescription` shows. Not translated.
    public var errorDescription: String? {
        guard let listLine, !detail.contains(listLine) else { return detail }
        return "\(detail) (\(listLine))"
    }

    /// The hint.
    public var recoverySuggestion: String? { hint }
}
