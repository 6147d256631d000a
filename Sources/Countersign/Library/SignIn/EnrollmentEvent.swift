// SPDX-License-Identifier: Apache-2.0

import CountersignOAuth
import CountersignSignIn

/// The progress of an ``Enrollment``. Later versions may add kinds, so include a `default` in a `switch`. No event
/// contains a secret, but a person who opens a page of the provider can go on with the sign-in.
public enum EnrollmentEvent: Equatable, Sendable {
    /// Reading the provider's metadata.
    case started(issuer: String)
    /// The user agent shows this page. If the profile's redirect URI is on the loopback interface, the person can also
    /// open the page in another browser on this machine.
    case page(String)
    /// The user agent cannot show the page, for this reason. The sign-in goes on, because the person can open the page.
    case pageNotShown(reason: String)
    /// The user agent loads a page. URLs of this and the following events have no query and no fragment. Only agents in
    /// this program or beside it report these events; the person's browser does not.
    case loadStarted(url: String)
    /// The user agent shows the page.
    case loadFinished(url: String)
    /// The user agent cannot load the page, for this reason. The person may be able to go on.
    case loadFailed(url: String, reason: String)
    /// The page wanted to leave the sign-in's sites, and was not permitted to.
    case navigationRefused(url: String, reason: String)
    /// A page of this origin asks the program a question, which ``Enrollment/pageCallbackHandlers`` answer.
    case pageQuestion(origin: String)
    /// The page has used a special URL with this scheme and host: `msauth://enroll`.
    case specialURL(String)
    /// A second window shows a page of device management. `installsProfile`: it is to install a configuration profile.
    case secondWindowOpened(url: String, installsProfile: Bool)
    /// The second window is closed.
    case secondWindowClosed
    /// A configuration profile that the page has delivered is installed. The sentence is about it.
    case profileInstalled(String)
    /// A configuration profile is not installed, for this reason.
    case profileNotInstalled(reason: String)
    /// Something that the pages of device management may rely on does not work here.
    case unavailable(reason: String)
    /// So many events of the page and ignored redirects were reported that the following ones are not.
    case othersOmitted
    /// Show the person this code and the address of the page on which to enter it. `pageWithCode` contains the code
    /// already; nil if the provider has no such page.
    case code(String, page: String, pageWithCode: String?)
    /// A redirect was received that does not belong to this sign-in, or came from another user of the machine. The
    /// sign-in keeps waiting.
    case redirectIgnored(reason: String)
    /// Requesting the tokens from the identity broker of the machine, which may show a window of its own.
    case switchingToBroker
    /// The person has signed in. The tokens are next.
    case authorized
    /// The provider has issued the tokens, and they are verified.
    case finished
    /// Requesting the client certificate from the EST service of the profile. The sign-in is stored together with it.
    case certificateRequested(server: String)
    /// A page has asked for another program, such as the user's browser or a wallet, which opens this address. It is
    /// complete, so that the user can also open it.
    case handedOff(url: String)
    /// The sign-in has failed, and the provider has not revoked the tokens that it had issued, for this reason.
    case tokensNotRevoked(reason: String)
    /// The cookies that the profile shares, of this host, are not stored, for this reason. The sign-in is.
    case sessionNotStored(host: String, reason: String)
    /// The sign-in is stored, and answers challenges.
    case stored(StoredSignIn)
}

extension EnrollmentEvent {
    init(_ event: SignInEvent) {
        switch event {
        case .started(let issuer): self = .started(issuer: issuer)
        case .page(let url): self = .page(url.description)
        case .agent(.notShown(let reason)): self = .pageNotShown(reason: reason)
        case .agent(.loadStarted(let url)): self = .loadStarted(url: url)
        case .agent(.loadFinished(let url)): self = .loadFinished(url: url)
        case .agent(.loadFailed(let url, let reason)): self = .loadFailed(url: url, reason: reason)
        case .agent(.navigationRefused(let url, let reason, hint: _)):
            self = .navigationRefused(url: url, reason: reason)
        case .agent(.messageReceived(let origin)): self = .pageQuestion(origin: origin)
        case .agent(.specialURL(let subject)): self = .specialURL(subject)
        case .agent(.sessionOpened(let url, let installsProfile)):
            self = .secondWindowOpened(url: url, installsProfile: installsProfile)
        case .agent(.sessionEnded): self = .secondWindowClosed
        case .agent(.profileInstalled(let sentence)): self = .profileInstalled(sentence)
        case .agent(.profileNotInstalled(let reason)): self = .profileNotInstalled(reason: reason)
        case .agent(.unavailable(let reason)): self = .unavailable(reason: reason)
        case .agent(.handedOff(let url)): self = .handedOff(url: url)
        case .agent(.othersOmitted): self = .othersOmitted
        case .code(let authorization):
            self = .code(
                authorization.userCode, page: authorization.verificationURL.description,
                pageWithCode: authorization.completeVerificationURL?.description)
        case .redirectIgnored(let reason, hint: _): self = .redirectIgnored(reason: reason)
        case .connectionRefused(let user):
            let who = user.map { "user \($0)" } ?? "another user"
            self = .redirectIgnored(reason: "\(who) of this machine has connected in place of the browser")
        case .switchingToBroker: self = .switchingToBroker
        case .authorized: self = .authorized
        case .finished: self = .finished
        case .notRevoked(let reason): self = .tokensNotRevoked(reason: reason)
        }
    }
}
