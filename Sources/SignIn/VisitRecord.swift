// SPDX-License-Identifier: Apache-2.0

import CountersignOAuth

/// The events of a visit to the provider's pages that can be the reason for its failure. The end of the sign-in repeats
/// the last one, which may be far above it by then.
struct VisitRecord {
    private var last: (text: String, hint: String?)?
    /// The URL of ``last``, if it is a page that was not loaded.
    private var unloaded: String?

    mutating func note(_ event: UserAgentEvent) {
        switch event {
        case .loadFailed(let url, let reason):
            last = ("\(url) could not be loaded: \(reason)", nil)
            unloaded = url
        case .loadFinished:
            // The person has got to another page after all.
            if unloaded != nil { (last, unloaded) = (nil, nil) }
        case .navigationRefused(let url, let reason, let hint):
            last = ("the window did not go to \(url.isEmpty ? "a page" : url): \(reason)", hint)
            unloaded = nil
        case .notShown(let reason), .unavailable(let reason):
            last = (reason, nil)
            unloaded = nil
        case .loadStarted, .messageReceived, .specialURL, .sessionOpened, .sessionEnded, .profileInstalled,
            .profileNotInstalled, .handedOff, .othersOmitted:
            break
        }
    }

    mutating func noteIgnored(_ reason: String, hint: String?) {
        last = ("a redirect was ignored: \(reason)", hint)
        unloaded = nil
    }

    /// The error with the likely reason, if nobody has signed in. Without an event, that may be on a page of the
    /// provider: it shows errors about the client and its redirect URI there, and does not return with them
    /// (RFC 6749 §4.1.2.1).
    func explaining(_ error: any Error, _ profile: SignInProfile) -> any Error {
        guard let error = error as? SignInError,
            error.code == .timedOut || error.detail == SignInError.windowClosed.detail
        else { return error }
        guard let last else {
            let client = "client_id \"\(profile.request.client.identifier)\" and redirect_uri \(profile.redirect)"
            let ending = error.code == .timedOut ? "; or run the command again, and sign in in time" : ""
            return SignInError(
                error.code,
                error.code == .timedOut
                    ? "\(error.detail): the provider may have shown a page, and did not return" : error.detail,
                hint: "if its page shows an error, compare the profile's \(client) with the client's registration"
                    + ending)
        }
        return SignInError(error.code, "\(error.detail); before that, \(last.text)", hint: last.hint ?? error.hint)
    }
}
