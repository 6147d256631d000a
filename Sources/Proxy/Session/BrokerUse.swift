// SPDX-License-Identifier: Apache-2.0

import CountersignAnswering
import CountersignCryptography
import CountersignHTTP1
import NIOCore

/// A route's use of the header that its site's line adds. An object, so that a route without one pays for a comparison
/// with nil only.
final class BrokerUse {
    /// `https://login.microsoftonline.com`
    private let site: String
    let account: BrokerCookies.Account
    let cookies: BrokerCookies

    init(site: String, account: BrokerCookies.Account, cookies: BrokerCookies) {
        self.site = site
        self.account = account
        self.cookies = cookies
    }

    /// `path` is the request target in origin-form.
    func request(for path: ArraySlice<UInt8>) -> BrokerCookies.Request {
        let query = path.drop { $0 != UInt8(ascii: "?") }.dropFirst().prefix { $0 != UInt8(ascii: "#") }
        let hasNonce = query.split(separator: UInt8(ascii: "&")).contains { pair in
            pair.starts(with: "sso_nonce=".utf8) && pair.count > "sso_nonce=".utf8.count
        }
        return BrokerCookies.Request(
            url: site + String(decoding: path, as: UTF8.self), hasNonce: hasNonce, account: account)
    }
}

/// A secret that is a whole field value.
struct SecretField: SecretFieldValue {
    let secret: Secret

    var byteCount: Int { secret.count }

    func forEachPart(_ write: (UnsafeRawBufferPointer) -> Void) { secret.withBytes { write($0) } }
}

/// A field value that is always the same.
private struct FixedField: SecretFieldValue {
    let value: StaticString

    var byteCount: Int { value.utf8CodeUnitCount }

    func forEachPart(_ write: (UnsafeRawBufferPointer) -> Void) {
        value.withUTF8Buffer { write(UnsafeRawBufferPointer($0)) }
    }
}

extension ExchangeDriver {
    private static let brokerField = "x-ms-refreshtokencredential"

    /// Whether this request gets the broker's header: the origin is trusted, the client does not authenticate itself,
    /// it belongs to the home's owner or has the home's token, and a browser says that the request loads a page, or a
    /// frame of the site itself.
    private var getsBrokerCookie: Bool {
        guard mayBeAnswered, acquisition.trust.answers, isGroupMember, value(Self.brokerField) == nil,
            let foreignCause,
            foreignCause.cause.permitsBroker(foreignCause.verdict, rule?.crossSite ?? [])
        else { return false }
        return session.isStillSameUser()
    }

    /// Returns whether `step` waits for the broker's answer, and asks the broker then.
    func awaitsBrokerCookie(_ use: BrokerUse, before step: Step) -> Bool {
        guard dialogue?.asksBroker != true, getsBrokerCookie else { return false }
        beginDialogue().asksBroker = true
        if case .none(let reason) = use.account {
            take(.unavailable(reason: reason))
            return false
        }
        mode = .preparing
        connection?.pauseReading()
        let gate = services.gate
        let driver = NIOLoopBound(self, eventLoop: services.loop)
        let next = NIOLoopBound(step, eventLoop: services.loop)
        use.cookies.get(use.request(for: path)) { outcome in
            gate.execute {
                guard case .preparing = driver.value.mode else { return }
                driver.value.take(outcome)
                driver.value.drained(next.value)
            }
        }
        return true
    }

    private func take(_ outcome: BrokerCookies.Outcome) {
        beginDialogue().brokerCookie = outcome
        if case .unavailable(let reason) = outcome { record.explain("not signed in by the identity broker: \(reason)") }
    }

    /// Says that this device can answer PKeyAuth, unless the client says something about that itself, or is a browser:
    /// the server would answer a page's request with a redirect to `urn:http-auth:PKeyAuth` (MS-PKAP §3.2.5.1.2), which
    /// a browser cannot follow. Browsers are known by their Fetch Metadata, which each of their requests contains.
    var deviceFields: [AddedField] {
        guard mayBeAnswered, acquisition.trust.answers, value("x-ms-pkeyauth") == nil, value("sec-fetch-mode") == nil
        else { return [] }
        return [AddedField("x-ms-PKeyAuth", FixedField(value: "1.0"))]
    }

    /// The broker's header, if the broker has given one. Each connection decides again whether the client gets it.
    var brokerFields: [AddedField] {
        guard case .cookie(let secret)? = dialogue?.brokerCookie, getsBrokerCookie else { return [] }
        return [AddedField("x-ms-RefreshTokenCredential", SecretField(secret: secret))]
    }
}
