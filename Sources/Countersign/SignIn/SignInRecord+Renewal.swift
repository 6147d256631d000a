// SPDX-License-Identifier: Apache-2.0

import CountersignOAuth
import CountersignSignIn
import CountersignVault

extension SignInRecord {
    /// Whether the identity broker issues its tokens, and keeps the refresh token.
    var isFromBroker: Bool {
        refreshToken == nil && (try? SignInProfile(Array(profile.utf8)))?.usesBroker == true
    }

    /// Whether it is a grant without a person, which is repeated in place of a renewal.
    var isFromGrant: Bool { refreshToken == nil && (try? SignInProfile(Array(profile.utf8)))?.grant != nil }

    /// Whether the access token can be renewed.
    var isRenewable: Bool { refreshToken != nil || isFromBroker || isFromGrant }

    /// Why a sign-in has ended that is being removed, or whose removal was interrupted.
    static let isSigningOut = "signing out was not completed"

    /// How long before its expiry the access token is renewed, in seconds: a quarter of its lifetime, and at most two
    /// minutes.
    private var renewalMargin: Int64 { min(120, max(0, expires - obtained) / 4) }

    /// When to renew the access token, in seconds since 1970: at the beginning of the margin if `part` is 0, in its
    /// middle if it is 1. Nil if the token does not expire.
    func renewalTime(delayedBy part: Double) -> Int64? {
        expires == 0 ? nil : expires - renewalMargin + Int64(Double(renewalMargin) * part / 2)
    }

    var endedText: String {
        ended.isEmpty
            ? "the access token of \"\(name)\" has expired, and the provider sent none to renew it; "
                + "sign in again with `countersign enroll \(name)`" : endedText(because: ended)
    }

    /// ``ended``, with the command that completes an interrupted removal.
    var shownEnd: String {
        ended == Self.isSigningOut ? endedText(because: ended) : DirectoryError.explained(ended)
    }

    func endedText(because reason: String) -> String {
        reason == Self.isSigningOut
            ? "\(reason); `countersign unenroll \(name)` completes it"
            : "the sign-in \"\(name)\" has ended: \(DirectoryError.explained(reason, signsIn: true)); "
                + "sign in again with `countersign enroll \(name)`"
    }
}
