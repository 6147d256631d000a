// SPDX-License-Identifier: Apache-2.0

package import CountersignVault
package import FoundationEssentials

/// Something that a command does with a home's vault: in its own process if it opens the vault, otherwise in the
/// running server, which has it open. An operation may carry a secret into the vault, beside this value; none brings
/// a secret out of it.
///
/// Operations with keys in PKCS#11 tokens are missing on purpose: their URIs name libraries, which the server would
/// load.
package enum VaultOperation: Equatable, Sendable, Codable {
    /// Returns `names`.
    case listNames
    /// Returns `credentials`.
    case listCredentials
    /// The secret is the password. Returns `stored`.
    case setCredential(name: String, user: String)
    /// The secret is the bearer token. Returns `stored`.
    case setToken(name: String)
    /// The secret is the principal's password or, as `KeytabKeys` encodes them, its keys. Returns `stored`.
    case setPrincipal(name: String, principal: String, hasKeys: Bool)
    /// Returns `removed`.
    case removeCredential(name: String)
    /// Returns `trustExceptions`.
    case listTrustExceptions
    /// Returns `done`.
    case addTrustException(TrustExceptionRecord)
    /// Returns `removed`.
    case removeTrustExceptions(host: String, port: UInt16)
    /// Returns `identities`.
    case listIdentities
    /// Returns `identities` with the one of that name, or none.
    case showIdentity(name: String)
    /// The renewal states of one identity or all. Returns `renewalStates`.
    case listRenewalStates(name: String?)
    /// The secret is the private key, PKCS#8 in DER; the chain is DER, leaf first. Returns `done`.
    case importIdentity(name: String, chain: [Data], replaces: Bool)
    /// Returns `removed`.
    case removeIdentity(name: String)
    /// Writes the chain's file again if it is damaged. Returns `repaired`.
    case repairIdentity(name: String)
    /// Renews an enrolled identity. Returns `renewed` or `pending`.
    case refreshIdentity(name: String, options: IdentityRenewal.Options)
    /// Throws if an enrolment may not have this name. Returns `done`.
    case checkEnrollment(name: String, replaces: Bool)
    /// Returns `renewed`, `pending` or, without anchors, `needsAnchors`.
    case enrollIdentity(EnrollmentRequest)
    /// The sign-ins of all profiles. Returns `signIns`.
    case listSignIns
    /// Throws if a sign-in may not have this name, its lines for the list of sites are faulty, or the vault cannot be
    /// written. Returns `signIns` with the one that would be replaced, or none. With `obtainsCertificate`, also throws
    /// if there is an identity of that name which is not the sign-in's.
    case checkSignIn(name: String, sites: [String], obtainsCertificate: Bool?)
    /// The secret is ``SignInTokens/encoded``. Returns `done`.
    case storeSignIn(NewSignIn)
    /// Returns `signedOut`, or `removed` if there is none of that name.
    case removeSignIn(name: String)
    /// Asks the compliance service of a sign-in's profile to register, enrol and apply the policy; `languages` is the
    /// value of `Accept-Language`. Returns `compliance`, or `removed` if there is no sign-in of that name.
    case remediateCompliance(name: String, isSilent: Bool, languages: String, seconds: Int64)
    /// As `removeSignIn`, completed whatever happens. Returns `signedOut`, or `removed` if there is none of that name.
    case wipe(name: String)
    /// The shared sessions of all groups, without the values of their cookies. Returns `sessions`.
    case listSessions
    /// The secret is ``SessionValues``. With `replaces`, the session loses all other cookies. Returns `done`.
    case storeSession(ListedSession, replaces: Bool)
    /// The sessions of one group, or one host, or both; all if both are nil. Returns `removed`, with the groups.
    case clearSessions(group: String?, host: String?)
    /// The installed configuration profiles. Returns `profiles`.
    case listProfiles
    /// The secret is ``ProfileKeys``; nil if the profile has no identity. Returns `profileInstalled`.
    case installProfile(NewProfile)
    /// Returns `profileRemoved`, or `removed` if there is none with that identifier.
    case removeProfile(identifier: String)
    /// The interception CA's root, which is created if there is none. Returns `root`.
    case ensureAuthority
    /// Replaces the interception CA. Returns `root`.
    case rotateAuthority
    /// Reports on the policy of a running server. Returns `report`.
    case report(PolicyQuestion)
    /// Runs a proxy for the descendants of the command, and for clients with its token, until the command closes its
    /// end of the connection. Returns `unanswered`.
    case runProxy(spoolBytes: Int)
}

/// A first enrolment, for which a new key is created.
package struct EnrollmentRequest: Equatable, Sendable, Codable {
    package var name: String
    package var server: String
    package var subject: String
    package var alternativeNames: [String]
    package var keySpecification: String
    package var credential: String?
    package var identity: String?
    package var replaces: Bool
    package var options: IdentityRenewal.Options
    /// The anchors of the server, DER; nil for the system's and those in `Certs/anchors`.
    package var serverAnchors: [Data]?
    /// The user's choice among the CA certificates that the server had published; nil before it was asked for.
    package var chosen: ChosenAnchors?

    package init(
        name: String, server: String, subject: String, alternativeNames: [String], keySpecification: String,
        credential: String?, identity: String?, replaces: Bool, options: IdentityRenewal.Options,
        serverAnchors: [Data]?
    ) {
        self.name = name
        self.server = server
        self.subject = subject
        self.alternativeNames = alternativeNames
        self.keySpecification = keySpecification
        self.credential = credential
        self.identity = identity
        self.replaces = replaces
        self.options = options
        self.serverAnchors = serverAnchors
    }

    package struct ChosenAnchors: Equatable, Sendable, Codable {
        /// DER.
        package var anchors: [Data]
        /// The certificates among which they were chosen, DER.
        package var published: [Data]

        package init(anchors: [Data], published: [Data]) {
            self.anchors = anchors
            self.published = published
        }
    }
}

/// A question about the policy in effect, whose answer is text for people and scripts.
package enum PolicyQuestion: Equatable, Sendable, Codable {
    /// The three checks for a URL.
    case explain(url: String)
    /// One request to a URL through a proxy of its own.
    case test(url: String)
}

/// The answer to a ``PolicyQuestion``.
package struct PolicyReport: Equatable, Sendable, Codable {
    package let text: String
    /// The same as a JSON text.
    package let json: String
    package let isGood: Bool

    package init(text: String, json: String, isGood: Bool = true) {
        self.text = text
        self.json = json
        self.isGood = isGood
    }
}

extension VaultOperation {
    /// The names of all operations, in the order of their declaration.
    package static let names = [
        "listNames", "listCredentials", "setCredential", "setToken", "setPrincipal", "removeCredential",
        "listTrustExceptions",
        "addTrustException", "removeTrustExceptions", "listIdentities", "showIdentity", "listRenewalStates",
        "importIdentity",
        "removeIdentity", "repairIdentity", "refreshIdentity", "checkEnrollment", "enrollIdentity", "listSignIns",
        "checkSignIn",
        "storeSignIn", "removeSignIn", "remediateCompliance", "wipe", "listSessions", "storeSession", "clearSessions",
        "listProfiles", "installProfile", "removeProfile", "ensureAuthority", "rotateAuthority", "report", "runProxy",
    ]

    /// Whether it may take much longer than reading and writing files: it lasts as long as a command, or waits for
    /// another server.
    package var isLong: Bool {
        switch self {
        case .runProxy, .enrollIdentity, .refreshIdentity, .storeSignIn, .removeSignIn, .remediateCompliance, .wipe,
            .installProfile, .report(.test):
            true
        case .listNames, .listCredentials, .setCredential, .setToken, .setPrincipal, .removeCredential,
            .listTrustExceptions, .addTrustException, .removeTrustExceptions, .listIdentities, .showIdentity,
            .listRenewalStates, .importIdentity, .removeIdentity, .repairIdentity, .checkEnrollment, .listSignIns,
            .checkSignIn, .listSessions, .storeSession, .clearSessions, .listProfiles, .removeProfile,
            .ensureAuthority, .rotateAuthority, .report(.explain):
            false
        }
    }

    /// The key of the operation in JSON.
    package var name: String {
        switch self {
        case .listNames: "listNames"
        case .listCredentials: "listCredentials"
        case .setCredential: "setCredential"
        case .setToken: "setToken"
        case .setPrincipal: "setPrincipal"
        case .removeCredential: "removeCredential"
        case .listTrustExceptions: "listTrustExceptions"
        case .addTrustException: "addTrustException"
        case .removeTrustExceptions: "removeTrustExceptions"
        case .listIdentities: "listIdentities"
        case .showIdentity: "showIdentity"
        case .listRenewalStates: "listRenewalStates"
        case .importIdentity: "importIdentity"
        case .removeIdentity: "removeIdentity"
        case .repairIdentity: "repairIdentity"
        case .refreshIdentity: "refreshIdentity"
        case .checkEnrollment: "checkEnrollment"
        case .enrollIdentity: "enrollIdentity"
        case .listSignIns: "listSignIns"
        case .checkSignIn: "checkSignIn"
        case .storeSignIn: "storeSignIn"
        case .removeSignIn: "removeSignIn"
        case .remediateCompliance: "remediateCompliance"
        case .wipe: "wipe"
        case .listSessions: "listSessions"
        case .storeSession: "storeSession"
        case .clearSessions: "clearSessions"
        case .listProfiles: "listProfiles"
        case .installProfile: "installProfile"
        case .removeProfile: "removeProfile"
        case .ensureAuthority: "ensureAuthority"
        case .rotateAuthority: "rotateAuthority"
        case .report: "report"
        case .runProxy: "runProxy"
        }
    }

    /// What the operation changes, for the log; nil if it changes nothing by itself.
    package var change: String? {
        switch self {
        case .listNames, .listCredentials, .listTrustExceptions, .listIdentities, .showIdentity, .listRenewalStates,
            .checkEnrollment, .listSignIns, .checkSignIn, .listSessions, .listProfiles, .ensureAuthority, .report,
            .repairIdentity, .runProxy:
            nil
        case .setCredential(let name, _), .setToken(let name), .setPrincipal(let name, _, _):
            "set credential \(name.debugDescription)"
        case .removeCredential(let name): "removed credential \(name.debugDescription)"
        case .addTrustException(let exception):
            "added a trust exception for \(exception.host.debugDescription), port \(exception.port)"
        case .removeTrustExceptions(let host, let port):
            "removed the trust exceptions for \(host.debugDescription), port \(port)"
        case .importIdentity(let name, _, _): "imported identity \(name.debugDescription)"
        case .removeIdentity(let name): "removed identity \(name.debugDescription)"
        case .refreshIdentity(let name, _): "renewed identity \(name.debugDescription)"
        case .enrollIdentity(let request): "enrolled identity \(request.name.debugDescription)"
        case .storeSignIn(let new): "stored sign-in \(new.name.debugDescription)"
        case .removeSignIn(let name): "removed sign-in \(name.debugDescription)"
        case .remediateCompliance(let name, _, _, _):
            "asked the compliance service of sign-in \(name.debugDescription)"
        case .wipe(let name): "wiped sign-in \(name.debugDescription)"
        case .storeSession(let new, _):
            "stored the session of group \(new.group.debugDescription) at \(new.host.debugDescription)"
        case .clearSessions(let group, let host):
            "removed the sessions of group \((group ?? "*").debugDescription) at \((host ?? "*").debugDescription)"
        case .installProfile(let new): "installed profile \(new.record.identifier.debugDescription)"
        case .removeProfile(let identifier): "removed profile \(identifier.debugDescription)"
        case .rotateAuthority: "replaced the interception CA"
        }
    }
}
