// SPDX-License-Identifier: Apache-2.0

/// The numbers that Microsoft's directory writes into `error_description` (`AADSTS50076: …`), and the remedy for each
/// that a person or the organisation can do something about. Microsoft may change them, so nothing but a hint depends
/// on them.
package enum DirectoryError {
    /// The remedy for the first number in a text: one line in lower case without a full stop. Nil without a known one.
    package static func advice(in text: String) -> String? {
        guard let start = text.firstRange(of: "AADSTS")?.upperBound else { return nil }
        let digits = text[start...].utf8.prefix { (0x30...0x39).contains($0) }
        return Int(String(Substring(digits))).flatMap { advice[$0] }
    }

    /// The text, followed by the remedy if there is one. `signsIn`: a command for signing in again follows.
    package static func explained(_ text: String, signsIn: Bool = false) -> String {
        guard let advice = advice(in: text) else { return text }
        let suffix = ": \(again)"
        return "\(text); \(signsIn && advice.hasSuffix(suffix) ? String(advice.dropLast(suffix.count)) : advice)"
    }

    private static let again = "sign in again"
    private static let administrators = "ask the organisation's administrators"

    private static let advice: [Int: String] = account.merging(policy) { $1 }.merging(grant) { $1 }
        .merging(registration) { $1 }

    /// The person's account.
    private static let account: [Int: String] = [
        50020: "the account does not belong to this directory: sign in with another one, or ask for an invitation",
        50034: "the directory does not know this account: check the user name",
        50053: "the account is locked after too many attempts, or the network is blocked: wait, or \(administrators)",
        50055: "the password has expired: change it in a browser, and \(again)",
        50056: "the account has no password, or it is wrong: \(again), or \(administrators)",
        50057: "the account is disabled: \(administrators)",
        50105: "the account is not assigned to this application: \(administrators) to assign it",
        50126: "the user name or the password is wrong: \(again)",
        50142: "the organisation requires a new password: change it in a browser, and \(again)",
        50144: "the password has expired: change it in a browser, and \(again)",
        90072: "the account does not exist in this directory: sign in with another one, or ask for an invitation",
    ]

    /// Second factors and conditional access.
    private static let policy: [Int: String] = [
        50005: "the organisation does not admit this kind of device: use another one, or \(administrators)",
        50072: "a second factor has to be registered first: \(again), and register it",
        50074: "a second factor is required: \(again)",
        50076: "a second factor is required: \(again)",
        50078: "the second factor was confirmed too long ago: \(again)",
        50079: "a second factor has to be registered first: \(again), and register it",
        50097: "the organisation asks for a proof of this device: use a registered device with the user agent embedded",
        50129: "the organisation admits registered devices only: register this one, and \(again)",
        50131: "the organisation's access policy refuses this sign-in: \(administrators)",
        50158: "another service has to confirm the sign-in: \(again)",
        53000: "the organisation admits compliant devices only: enrol this one in its device management, and \(again)",
        53001: "the organisation admits devices of its domain only: use one of them, or \(administrators)",
        53002: "the organisation admits approved apps only, and this client is not one: \(administrators)",
        53003:
            "the organisation's access policy blocks this sign-in: \(administrators) which condition it does not meet",
        53004: "a second factor cannot be registered after suspicious activity: \(administrators)",
        500121: "the second factor was not confirmed: \(again), and confirm it",
        530002: "the organisation admits compliant devices only: enrol this one in its device management, and \(again)",
        530003: "the organisation admits managed devices only: enrol this one in its device management, and \(again)",
        530032: "the organisation's security policy blocks this sign-in: \(administrators)",
        530035: "the directory's security defaults block this sign-in: \(administrators)",
    ]

    /// Sessions, tokens and consent.
    private static let grant: [Int: String] = [
        50058: "nobody is signed in there: \(again)",
        50132: "the session was revoked, or the password was changed: \(again)",
        50133: "the session was revoked, or the password was changed: \(again)",
        50173: "the session was revoked, or the password was changed: \(again)",
        65001: "nobody has agreed to these permissions: \(again) and accept, or \(administrators) for their consent",
        65004: "the permissions were declined: \(again) and accept",
        70008: "the refresh token has expired or was revoked: \(again)",
        70018: "the code is wrong or has expired: \(again), and enter the new one",
        70019: "the code has expired: \(again), and enter the new one sooner",
        70043: "the organisation requires a new sign-in from time to time: \(again)",
        70044: "the organisation requires a new sign-in from time to time: \(again)",
        90094: "only an administrator can agree to these permissions: \(administrators) for their consent",
        700082: "the refresh token has expired because it was not used for a long time: \(again)",
        700084: "the client is registered as a single-page application, whose sign-ins end after a day: \(again), or "
            + "have it registered as a desktop application",
    ]

    /// The profile and the client's registration.
    private static let registration: [Int: String] = [
        50011: "the profile's \"redirect_uri\" is not one of the client's registration: \(administrators)",
        50059: "the directory is not known: the profile's \"issuer\" must name it",
        50194: "the client is for one directory alone: the profile's \"issuer\" must name it in place of \"common\"",
        65005: "the client's registration lacks a permission that the profile's \"scopes\" ask for: \(administrators)",
        70011: "one of the profile's \"scopes\" is not valid, or they are of several resources: \(administrators)",
        90002: "there is no such directory: check the profile's \"issuer\"",
        500011: "the directory does not know the resource: check the profile's \"scopes\" and \"resources\"",
        500113: "the client's registration has no redirect URI: \(administrators)",
        700016: "the directory does not know the client: check the profile's \"client_id\", and the directory in its "
            + "\"issuer\"",
        7000112: "the client is disabled in the directory: \(administrators)",
        7000215: "the client's secret is wrong: give another with --client-secret-stdin, or \(administrators) for one",
        7000218: "the client's registration requires a secret: have \"Allow public client flows\" switched on there",
        7000222: "the client's secret has expired: \(administrators) for one, and give it with --client-secret-stdin",
    ]
}
