// SPDX-License-Identifier: Apache-2.0

public import Countersign
public import Foundation

extension URLError {
    /// Converts an error for code that expects those of URLSession. `url` is the address of the request, if there is
    /// one. The texts become the error's localized description and recovery suggestion, and the error itself its
    /// underlying error.
    ///
    /// | Code of the error | Code |
    /// |---|---|
    /// | `serverNotTrusted` | `serverCertificateUntrusted` |
    /// | `tlsFailed` | `secureConnectionFailed` |
    /// | `proxyFailed` | `cannotConnectToHost` |
    /// | `providerUnreachable` | `networkConnectionLost` |
    /// | `signInCancelled` | `userCancelledAuthentication` |
    /// | `signInTimedOut` | `timedOut` |
    /// | `invalidProtectionSpace` | `badURL` |
    /// | every other | `userAuthenticationRequired` |
    public init(_ error: ChallengeError, url: URL? = nil) {
        var userInfo: [String: Any] = [
            NSLocalizedDescriptionKey: error.localizedDescription, NSUnderlyingErrorKey: error,
        ]
        userInfo[NSLocalizedRecoverySuggestionErrorKey] = error.hint
        userInfo[NSURLErrorFailingURLErrorKey] = url
        self.init(Self.code(for: error), userInfo: userInfo)
    }

    private static func code(for error: ChallengeError) -> URLError.Code {
        switch error.code {
        case .serverNotTrusted: .serverCertificateUntrusted
        case .tlsFailed: .secureConnectionFailed
        case .proxyFailed: .cannotConnectToHost
        case .providerUnreachable: .networkConnectionLost
        case .signInCancelled: .userCancelledAuthentication
        case .signInTimedOut: .timedOut
        case .invalidProtectionSpace: .badURL
        default: .userAuthenticationRequired
        }
    }

    /// The library's error that caused this one; nil without one.
    public var challengeError: ChallengeError? { errorUserInfo[NSUnderlyingErrorKey] as? ChallengeError }
}
