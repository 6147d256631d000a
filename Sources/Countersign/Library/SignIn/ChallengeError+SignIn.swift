// SPDX-License-Identifier: Apache-2.0

import CountersignBroker
import CountersignDeviceManagement
import CountersignEnrollment
import CountersignHome
import CountersignOAuth
import CountersignSignIn

extension ChallengeError {
    /// Converts an error of signing in or out.
    init(signingIn error: any Error) {
        let code: Code
        switch error {
        case let error as OAuthError: code = Self.code(of: error)
        case let error as SignInError: code = Self.code(of: error)
        case is DeviceManagementError: code = .providerRefused
        case let error as BrokerError: code = Self.code(of: error)
        case let error as EnrollmentError: code = error.isTransient ? .providerUnreachable : .providerRefused
        case let error as CertificateNotIssued: code = error.isTransient ? .providerUnreachable : .providerRefused
        case let error as CountersignError:
            switch error.code {
            case .configuration: code = .profileFaulty
            case .nameInUse: code = .nameInUse
            case .unknownName: code = .signInMissing
            case .environment, .notRunning, .refused, .wrongPassphrase: code = .homeUnreadable
            }
        default:
            self.init(error)
            return
        }
        let diagnostic = Diagnostic.all(in: error).first
        self.init(code, diagnostic?.message ?? "\(error)", hint: diagnostic?.hint)
        oauthError = (error as? OAuthError).flatMap { OAuthErrorResponse($0) }
    }

    /// Converts an error of reading a profile.
    init(readingProfile error: any Error) {
        if let error = error as? CountersignError, error.code == .environment {
            self.init(.profileFaulty, error.detail, hint: error.hint)
        } else {
            self.init(signingIn: error)
        }
    }

    private static func code(of error: OAuthError) -> Code {
        switch error.code {
        case .configuration: .profileFaulty
        case .denied: .signInDenied
        case .expired: .signInTimedOut
        case .cancelled: .signInCancelled
        case .unavailable, .unreachable, .connectionFailed: .providerUnreachable
        case .unsupportedProvider, .issuerMismatch, .malformedResponse, .stateMismatch, .mixedUp, .wrongRedirect,
            .interactionRequired, .invalidGrant, .invalidClient, .refused, .invalidIDToken, .accountChanged,
            .insufficientAuthentication:
            .providerRefused
        case .protectionPolicyRequired: .protectionPolicyRequired
        }
    }

    private static func code(of error: BrokerError) -> Code {
        switch error.code {
        case .noLibrary, .noBus, .noBroker, .timedOut: .providerUnreachable
        case .cancelled: .signInCancelled
        case .noMethod, .malformedReply, .failed, .noAccount: .providerRefused
        }
    }

    private static func code(of error: SignInError) -> Code {
        switch error.code {
        case .profile: .profileFaulty
        case .noAgent, .environment: .userAgentFailed
        case .timedOut: .signInTimedOut
        case .cancelled, .transferred: .signInCancelled
        case .unreachable: .providerUnreachable
        case .provider: .providerRefused
        }
    }
}
