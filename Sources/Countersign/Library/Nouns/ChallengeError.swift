// SPDX-License-Identifier: Apache-2.0

/// Why a challenge is not answered, or why the home, the vault or the proxy cannot be used as it is. Never contains a
/// secret.
public struct ChallengeError: Error, Sendable {
    /// What went wrong. More codes may come: write a `default` where you switch.
    public enum Code: Hashable, Sendable {
        /// The first check: the site is not on the list.
        case siteNotAllowed
        /// The second check: this kind of challenge is not answered there, or not by this build.
        case methodNotAnswered
        /// The third check: there is no credential or identity to answer with, or it was rejected there.
        case nothingToAnswerWith
        /// The protection space names no site.
        case invalidProtectionSpace
        /// There is no home there.
        case homeMissing
        /// The system does not let a file or folder of the home be read or written.
        case homeUnreadable
        /// A file of the home does not say what it should.
        case homeFaulty
        /// The allowed-sites list has faults.
        case listFaulty
        /// The vault wants a passphrase, or another one.
        case vaultLocked
        /// The vault cannot be read, or is not what it should be.
        case vaultFaulty
        /// A certificate or its key cannot be used.
        case certificateFaulty
        /// New certificates could not be had.
        case refreshFailed
        /// The authority says "not yet".
        case refreshPending
        /// The proxy cannot run.
        case proxyFailed
        /// `isIntegratedAuthenticationEnabled` is false.
        case switchedOff
        /// The server's certificate does not verify, and nobody has said to go on.
        case serverNotTrusted
        /// TLS with the server came to nothing, or was broken off.
        case tlsFailed
    }

    /// Who can mend it.
    public enum Fault: Hashable, Sendable {
        /// Who calls: the program.
        case caller
        /// What the person or their administrator set up: the list, the credentials, the certificates.
        case configuration
        /// The system: files, permissions, ports.
        case environment
        /// A server.
        case peer
    }

    /// One of the three checks, in their order.
    public enum Check: Hashable, Sendable {
        /// Is the site on the list?
        case site
        /// May this kind of challenge be answered there?
        case method
        /// Is there something to answer with?
        case credential
    }

    /// What went wrong.
    public let code: Code
    /// A short sentence for people, lower case, without a full stop; names the file or value at fault.
    public let detail: String
    /// The line of the list that decided, such as `AllowedSites/work.sites:3`.
    public let listLine: String?
    /// What would mend it.
    public let hint: String?
    /// Who can mend it, where that is not who the code says.
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

    /// Who can mend it.
    public var fault: Fault {
        if let blamed { return blamed }
        return switch code {
        case .invalidProtectionSpace, .switchedOff: .caller
        case .homeUnreadable, .proxyFailed: .environment
        case .refreshFailed, .refreshPending, .serverNotTrusted, .tlsFailed: .peer
        case .siteNotAllowed, .methodNotAnswered, .nothingToAnswerWith, .homeMissing, .homeFaulty, .listFaulty,
            .vaultLocked, .vaultFaulty, .certificateFaulty:
            .configuration
        }
    }
}

extension ChallengeError: Equatable {
    /// The same code and line; the sentences are for people.
    public static func == (left: Self, right: Self) -> Bool {
        left.code == right.code && left.listLine == right.listLine
    }
}

extension ChallengeError: CustomStringConvertible {
    /// `not on the list (AllowedSites/work.sites:3); hint`, each part where there is one.
    public var description: String {
        var text = detail
        if let listLine, !detail.contains(listLine) { text += " (\(listLine))" }
        if let hint { text += "; \(hint)" }
        return text
    }
}
