// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// Why a challenge is not answered, why the home, the vault or the proxy cannot be used, why a person could not be
/// signed in, or why a configuration profile is not installed. Never contains a secret.
public struct ChallengeError: Error, Sendable {
    /// The kind of error. Later versions may add codes: compare with those that you handle, and treat all others alike.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        private let name: String

        private init(_ name: String) { self.name = name }

        /// The name of the static member, such as `siteNotAllowed`.
        public var description: String { name }

        /// The first check failed: the site is not on the list.
        public static let siteNotAllowed = Code("siteNotAllowed")
        /// The second check failed: the site's line, or this build, does not answer this kind of challenge.
        public static let methodNotAnswered = Code("methodNotAnswered")
        /// The third check failed: there is no credential or identity to answer with, or the site has rejected it.
        public static let nothingToAnswerWith = Code("nothingToAnswerWith")
        /// The protection space does not identify a site.
        public static let invalidProtectionSpace = Code("invalidProtectionSpace")
        /// The home does not exist.
        public static let homeMissing = Code("homeMissing")
        /// A file or folder of the home cannot be read or written.
        public static let homeUnreadable = Code("homeUnreadable")
        /// A file of the home has invalid contents.
        public static let homeFaulty = Code("homeFaulty")
        /// The list of sites has errors.
        public static let listFaulty = Code("listFaulty")
        /// The vault requires a passphrase, or the passphrase is wrong.
        public static let vaultLocked = Code("vaultLocked")
        /// The vault is damaged or has an unknown format.
        public static let vaultFaulty = Code("vaultFaulty")
        /// A certificate or its key cannot be used.
        public static let certificateFaulty = Code("certificateFaulty")
        /// A certificate could not be renewed.
        public static let refreshFailed = Code("refreshFailed")
        /// The certification authority has not decided yet.
        public static let refreshPending = Code("refreshPending")
        /// The proxy cannot run.
        public static let proxyFailed = Code("proxyFailed")
        /// `isIntegratedAuthenticationEnabled` is false.
        public static let switchedOff = Code("switchedOff")
        /// The server's certificate cannot be verified, and nothing permits continuing nevertheless.
        public static let serverNotTrusted = Code("serverNotTrusted")
        /// The TLS handshake failed, or the connection was closed abnormally.
        public static let tlsFailed = Code("tlsFailed")
        /// A profile cannot be read, is not valid, or does not fit the home: its name, its sites or its payloads.
        public static let profileFaulty = Code("profileFaulty")
        /// The name is that of another credential or identity, or of a sign-in at another provider.
        public static let nameInUse = Code("nameInUse")
        /// The user agent does not exist, or has failed; or the system refused a socket for the redirect.
        public static let userAgentFailed = Code("userAgentFailed")
        /// The person has closed the provider's page.
        public static let signInCancelled = Code("signInCancelled")
        /// The person, or a policy of the provider, has denied the sign-in (`access_denied`).
        public static let signInDenied = Code("signInDenied")
        /// The person did not sign in within the time limit.
        public static let signInTimedOut = Code("signInTimedOut")
        /// The provider could not be reached, or cannot answer now. The same call may succeed later.
        public static let providerUnreachable = Code("providerUnreachable")
        /// The provider refused, or sent something that is not valid.
        public static let providerRefused = Code("providerRefused")
        /// The provider issues no token before the organisation's protection policy is applied: remediate
        /// ``ChallengeError/accountID`` with a ``ComplianceManager``, and sign in again.
        public static let protectionPolicyRequired = Code("protectionPolicyRequired")
        /// The person has to sign in again: the sign-in has ended, or its token lacks a scope.
        public static let signInRequired = Code("signInRequired")
        /// There is no sign-in of that name.
        public static let signInMissing = Code("signInMissing")
        /// There is no configuration profile with that identifier.
        public static let profileMissing = Code("profileMissing")
        /// There is no credential of that name.
        public static let credentialMissing = Code("credentialMissing")
        /// There is no client identity of that name.
        public static let identityMissing = Code("identityMissing")
        /// The list of sites has no such line.
        public static let siteMissing = Code("siteMissing")
        /// There is no such trust exception or trust anchor.
        public static let trustMissing = Code("trustMissing")
        /// A value that the program or the person has given is not valid: a name, a site, a password, a file.
        public static let valueFaulty = Code("valueFaulty")
        /// No proxy of this home is running.
        public static let notRunning = Code("notRunning")
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
    /// The remedy, for a program that offers it to the user; nil without one, or if only ``hint`` describes it.
    public internal(set) var remedy: ChallengeRemedy?
    /// The faults of the list of sites, with the code `listFaulty`; otherwise empty.
    public internal(set) var siteProblems: [SiteProblem] = []
    /// The account that a protection policy is for, with the code `protectionPolicyRequired`; otherwise nil.
    public internal(set) var accountID: String?
    /// The error that the provider has reported, if that is the cause; otherwise nil.
    public internal(set) var oauthError: OAuthErrorResponse?
    /// Overrides the fault that the code implies.
    private let blamed: Fault?

    /// Creates an error, for the tests of a program and for its own implementations of the library's protocols.
    /// `detail` is in lower case and without a full stop; without `fault`, the code implies it.
    public init(_ code: Code, _ detail: String, listLine: String? = nil, hint: String? = nil, fault: Fault? = nil) {
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
        case .invalidProtectionSpace, .switchedOff, .signInMissing, .profileMissing, .credentialMissing,
            .identityMissing, .siteMissing, .trustMissing, .valueFaulty:
            .caller
        case .homeUnreadable, .proxyFailed, .userAgentFailed, .notRunning: .environment
        case .refreshFailed, .refreshPending, .serverNotTrusted, .tlsFailed, .providerUnreachable, .providerRefused:
            .peer
        default: .configuration
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
    /// The existing ones of detail, line and hint: `not on the list (AllowedSites/work.sites:3); hint`.
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
