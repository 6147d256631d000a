// SPDX-License-Identifier: Apache-2.0

import CountersignJSON

/// A code for a device, under its `device_code`.
struct IssuedDeviceCode: Sendable {
    enum Decision: Sendable {
        case pending
        case confirmed
        case denied
    }

    /// As the person types it.
    let userCode: String
    let scopes: [String]
    var decision: Decision
    /// The least number of seconds between two polls, which grows when the device does not keep to it.
    var pollSeconds: Int64
    /// Seconds since 1970.
    var lastPoll: Int64
}

/// The device flow (RFC 8628).
extension IssuerMachine {
    /// RFC 8628 §3.1. The code is eight letters that cannot be taken for one another (§6.1).
    mutating func device(_ form: [String: String], now: Int64) -> IssuerResponse {
        guard form["client_id"] == settings.clientIdentifier else { return Self.unknownClient }
        let scopes = supported(form["scope"])
        guard !scopes.isEmpty else { return .error("invalid_scope", "no scope of the request is supported") }
        let letters = Array("BCDFGHJKLMNPQRSTVWXZ")
        let code = String(random(8).map { letters[Int($0) % letters.count] })
        let userCode = "\(code.prefix(4))-\(code.suffix(4))"
        var decision = IssuedDeviceCode.Decision.pending
        if case .automatic = settings.interaction { decision = .confirmed }
        let name = newName()
        devices.insert(
            IssuedDeviceCode(
                userCode: userCode, scopes: scopes, decision: decision, pollSeconds: settings.pollSeconds,
                lastPoll: now),
            name, expires: now + Self.requestSeconds, now: now)
        let page = url + IssuerEndpoint.enter.paths[0]
        return .json([
            ("device_code", .string(name)), ("user_code", .string(userCode)), ("verification_uri", .string(page)),
            ("verification_uri_complete", .string("\(page)?user_code=\(userCode)")),
            ("expires_in", .integer(Self.requestSeconds)), ("interval", .integer(settings.pollSeconds)),
        ])
    }

    /// The form of the page on which the person types the code (RFC 8628 §3.3).
    mutating func enter(_ form: [String: String], now: Int64) -> IssuerResponse {
        let typed = form["user_code"] ?? ""
        let wanted = typed.uppercased().filter(\.isLetter)
        let name = devices.name(now: now) { $0.decision == .pending && $0.userCode.filter(\.isLetter) == wanted }
        guard let name else {
            let message = "The code is wrong, has expired or was used."
            return .html(IssuerPage.code(typed, settings, message: message), status: 403)
        }
        if form["deny"] != nil {
            devices.update(name) { $0.decision = .denied }
            return .html(IssuerPage.message("The device was not signed in."))
        }
        guard isSignedIn(form) else {
            let message = "The name or the password is wrong."
            return .html(IssuerPage.code(typed, settings, message: message), status: 403)
        }
        devices.update(name) { $0.decision = .confirmed }
        return .html(IssuerPage.message("The device is signed in. You can close this window."))
    }

    /// RFC 8628 §3.4 and §3.5.
    mutating func poll(_ form: [String: String], now: Int64) -> IssuerResponse {
        guard let name = form["device_code"], let device = devices.value(name, now: now) else {
            return .error("expired_token", "the device code is not known, or has expired")
        }
        switch device.decision {
        case .pending:
            let isTooEarly = now - device.lastPoll < device.pollSeconds
            devices.update(name) {
                $0.lastPoll = now
                if isTooEarly { $0.pollSeconds += 5 }
            }
            return isTooEarly
                ? .error("slow_down", "the device polls too often")
                : .error("authorization_pending", "the person has not entered the code yet")
        case .denied:
            devices.remove(name)
            return .error("access_denied", "the person has declined")
        case .confirmed:
            devices.remove(name)
            return issue(device.scopes, family: newName(), nonce: nil, now: now)
        }
    }
}
