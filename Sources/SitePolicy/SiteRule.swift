// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignChallenges

/// One line of the allowed-sites list: a site whose challenges may be answered, with which credential, and how.
package struct SiteRule: Equatable, Sendable {
    /// The file name that was given to the parser.
    package let file: String
    /// Counted from 1.
    package let line: Int
    /// The line's text without its line end.
    package let text: String
    package let pattern: SitePattern
    /// The schemes that may be answered, strongest first. The usual ones by default.
    package var answer: [AuthenticationScheme] = AuthenticationScheme.usual
    /// Whether the line names them.
    package var namesAnswer = false
    /// Whether navigation requests of the home's own clients get the header of the identity broker (`answer=broker`),
    /// which signs the person in. Only at one of ``brokerSites``.
    package var usesBroker = false
    package var credential = Self.defaultCredential
    /// Whether the line names the credential.
    package var namesCredential = false
    /// The client identity to use; nil: the one whose issuer the server accepts.
    package var identity: String?
    /// The domain for user names without one.
    package var domain: String?
    /// How user names and passwords beyond ASCII are sent to servers that do not say it.
    package var charset = CredentialCharset.utf8
    /// `HTTP/host`; nil: derived from the host.
    package var servicePrincipalName: String?
    /// Whether the user's Kerberos ticket is forwarded to the site if the KDC permits it (ok-as-delegate).
    package var delegatesByPolicy = false
    /// Whether a challenge over `http://` may be answered.
    package var answersPlaintext = false
    /// Whether credentials are sent without a challenge to a protection space that has accepted them before (RFC 7617
    /// §2.2).
    package var preempts = true
    /// Whether the proxy terminates TLS. If not, the connection is tunnelled unchanged.
    package var intercepts = true
    /// Whether the proxy offers HTTP/2 where it terminates TLS.
    package var speaksHTTP2 = true
    /// The treatment of the revocation status of the site's certificate.
    package var revocation = RevocationCheck.soft

    /// The pages of other sites whose requests may be answered.
    package var crossSite: [PageOrigin] = []
    /// The group that shares the site's session, and the names of the cookies that make it up; nil for none.
    package var session: SharedSessionRule?
    /// The requests that the line is for; nil for all.
    package var limits: RequestLimits?
    /// The most content that a request may have, in bytes (`max-body=`); nil for any.
    package var maximumBodyBytes: Int?
    /// The clients that the line is for; nil for all.
    package var clients: ClientRule?
    /// The clients that may use the line's credential; nil for all. The line is only for those of them that
    /// ``clients`` permits, too.
    package internal(set) var credentialClients: CredentialClients?
    /// Whether requests of other clients are refused (`deny=yes`). If not, nothing of them is intercepted or answered.
    package var refusesOtherClients = false
    /// Counts the site's lines from 1; 0 for the only line of a site, which is for all requests.
    package internal(set) var ordinal = 0

    /// The place of the token in each request (`inject=`); nil: only challenges are answered.
    package var injection: SecretInjection?
    /// Whether a 401 without a challenge is answered as if it had one (`challenge=none`).
    package var assumesChallenge = false

    /// The requests that wait until a person has agreed (`approve=`); nil for none.
    package var approval: ApprovalRule?
    /// Whether everything is decided and nothing answered (`dry-run=yes`).
    package var isDryRun = false

    package static let defaultCredential = Remedy.assumedName

    /// The schemes with which a parent proxy is answered, strongest first.
    package static let proxySchemes = AuthenticationScheme.usual.filter {
        [.negotiate, .ntlm, .digest, .basic].contains($0)
    }

    /// The word of `answer=` for ``usesBroker``.
    static let brokerWord = "broker"
    /// The sites that may get the header of the identity broker: Microsoft's sign-in pages in the public cloud. The
    /// header proves the person's primary refresh token, so that a site which receives it can sign in as that person.
    package static let brokerSites = ["https://login.microsoftonline.com"]

    /// The words of `answer=`; empty for `none`.
    package var answerWords: [String] { answer.map(\.rawValue) + (usesBroker ? [Self.brokerWord] : []) }

    /// The value of `answer=` that means the same.
    package var answerText: String { answerWords.isEmpty ? "none" : answerWords.joined(separator: ",") }

    /// `AllowedSites/work.sites:3`.
    package var location: String { "\(file):\(line)" }

    /// Whether neither the line nor its credential is for some clients only.
    package var isForAllClients: Bool { clients == nil && credentialClients == nil }
}

/// `session=GROUP cookies=NAME,…` of a line.
package struct SharedSessionRule: Equatable, Sendable {
    package let group: String
    /// None twice.
    package let cookies: [String]

    package init(group: String, cookies: [String]) {
        self.group = group
        self.cookies = cookies
    }
}

extension SiteRule {
    /// Whether `text` can be the name of a credential or identity: 1 to 64 letters, digits, dots, underscores and
    /// hyphens.
    package static func isStoredName(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"):
                    true
                default: false
                }
            }
    }

    /// Whether `text` can be the name of a group: that of a credential which begins with a letter or digit.
    package static func isGroupName(_ text: String) -> Bool {
        isStoredName(text) && text.utf8.first.map { !"._-".utf8.contains($0) } == true
    }

    /// Why these cannot be the names of a session's cookies, as the end of a sentence; nil if they can.
    package static func fault(ofCookies names: [String]) -> String? {
        guard (1...16).contains(names.count) else { return "must have 1 to 16 names" }
        guard names.allSatisfy(isCookieName) else {
            return "must have names of 1 to 256 letters, digits and ! $ % & ' * + - . ^ _ ` | ~"
        }
        return Set(names).count == names.count ? nil : "has a name twice"
    }

    /// A token without `#`, which begins a comment in the list of sites.
    private static func isCookieName(_ name: String) -> Bool {
        (1...256).contains(name.utf8.count)
            && name.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"):
                    true
                default: "!$%&'*+-.^_`|~".utf8.contains(byte)
                }
            }
    }
}

/// The handling of a request to one origin.
package enum SiteVerdict: Equatable, Sendable {
    /// The connection is tunnelled unchanged.
    case tunnel(reason: Refusal)
    /// Challenges may be answered according to the rule.
    case answer(SiteRule)
    /// The request is refused: the host is covered by a listed wildcard, but is not a valid name for the list.
    case refuse(reason: Refusal)
}
