// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignOAuth

/// Maps a special URL to the web view's action.
package enum SpecialURLViewActionResolver {
    /// The action for `url`, which the page wants to open. An app's own redirect URI, and a URL with a scheme that is
    /// not special, are `noop`.
    package static func action(
        for url: String, _ state: InteractiveWebviewState, _ rules: SpecialURLRules
    ) -> WebviewAction {
        do {
            if let action = try switchBrowser(url, rules) { return action }
            if let failure = try registration(url, rules) { return .fail(failure) }
            guard let url = try SpecialURL(url) else { return .noop }
            switch url.scheme {
            case .msauth: return try deviceManagement(url, state, rules)
            case .browser: return try browser(url, rules)
            case .wallet: return .openExternalBrowser(url.text, keepsView: true)
            case .companyPortal:
                return .fail(
                    DeviceManagementError(
                        .brokerRequired, "the provider wants the Company Portal app",
                        hint: "there is none for Linux: ask the organisation for an enrolment in the browser"))
            }
        } catch {
            return .fail(error)
        }
    }

    /// The identifier of this device in `url`, which later URLs of the session have to contain.
    static func deviceIdentifier(in url: SpecialURL) -> String? {
        guard url.scheme == .msauth, url.host.lowercased() == "profile_download_complete" else { return nil }
        return try? url.parameter("intuneDeviceId")
    }

    // MARK: msauth

    private static func deviceManagement(
        _ url: SpecialURL, _ state: InteractiveWebviewState, _ rules: SpecialURLRules
    ) throws(DeviceManagementError) -> WebviewAction {
        // These two compare exactly, and may be the first segment of a path.
        switch url.host == "msauth" ? url.path.dropFirst().prefix(while: { $0 != "/" }) : url.host[...] {
        case "wpj": return .fail(try registration(url))
        case "upgradeReg": return .fail(strongerRegistration)
        case "code": return .complete(url.text)
        default: break
        }
        switch url.host.lowercased() {
        case "": return .fail(DeviceManagementError(.malformed, "the page's msauth: URL has no host"))
        case "enroll": return try load(url, state, rules, isEnrollment: true)
        case "compliance": return try load(url, state, rules, isEnrollment: false)
        case "installprofile": return try installProfile(url, state, rules)
        case "profile_download_complete":
            return .loadRequest(WebviewRequest(try rules.page(try url.required("continueUrl"), "continueUrl")))
        case "in_app_enrollment_complete": return try enrollmentCompleted(url, rules)
        case "compliance_status": return try complianceStatus(url)
        case "jit_troubleshooting":
            return .fail(
                DeviceManagementError(
                    .troubleshootingRequired,
                    "the device could not be enrolled, and the provider offers help to find out why",
                    hint: "ask the organisation's administrators, who see the reason in its device management"))
        default:
            // Also profileInstalled and profileComplete.
            return .complete(url.text)
        }
    }

    /// `enroll` and `compliance`: a page to load in the view.
    private static func load(
        _ url: SpecialURL, _ state: InteractiveWebviewState, _ rules: SpecialURLRules, isEnrollment: Bool
    ) throws(DeviceManagementError) -> WebviewAction {
        let shipped = "intuneRedirectUrl"
        let draft = "cpurl"
        var page: EndpointURL
        var parameters: [(name: String, value: String)] = []
        if let text = try url.parameter(shipped) {
            page = try rules.page(text, shipped)
            if isEnrollment { parameters = [("in-app", "true"), ("webauthn", "1")] }
            parameters += try url.parameters(without: [shipped])
            let name = "intuneDeviceId"
            if isEnrollment, let identifier = state.deviceIdentifier, !parameters.contains(where: { $0.name == name }) {
                parameters.append((name, identifier))
            }
        } else if let text = try url.parameter(draft) {
            page = try rules.page(text, draft)
        } else {
            throw DeviceManagementError(
                .malformed, "the page's \(url.subject) URL has neither \(shipped) nor \(draft)")
        }
        page = page.adding(parameters + rules.parameters)
        return .loadRequest(WebviewRequest(page, headers: rules.headers))
    }

    private static func installProfile(
        _ url: SpecialURL, _ state: InteractiveWebviewState, _ rules: SpecialURLRules
    ) throws(DeviceManagementError) -> WebviewAction {
        let header = "X-Install-Url"
        let page: EndpointURL
        // A frame may have opened the URL, so the token goes to the page that the frame's own response names, or back
        // to the frame's origin.
        var mayHaveToken = true
        if let text = state.responseHeaders[header] {
            page = try rules.page(text, header)
        } else {
            let text = try url.required("url")
            page = try rules.page(text, "url")
            guard try url.parameter("requireASWebAuthenticationSession")?.lowercased() == "true" else {
                return .loadRequest(WebviewRequest(page))
            }
            mayHaveToken = page.origin == state.responder
        }
        let token = "X-Intune-AuthToken"
        let headers = mayHaveToken ? state.responseHeaders[token].map { [AdditionalHeader(token, $0)] } ?? [] : []
        return .openAuthenticationSession(
            AuthenticationSessionRequest(page, headers: headers, purpose: .installProfile))
    }

    private static func enrollmentCompleted(
        _ url: SpecialURL, _ rules: SpecialURLRules
    ) throws(DeviceManagementError) -> WebviewAction {
        let isDone = ["success", "check_in_timed_out"].contains(try url.parameter("status")?.lowercased())
        if isDone, rules.hasBroker { return .complete(url.text) }
        if let text = try url.parameter("errorUrl") {
            return .loadRequest(WebviewRequest(try rules.page(text, "errorUrl")))
        }
        guard isDone else {
            throw DeviceManagementError(
                .enrollmentFailed, "the provider reports that the enrolment of this device has failed",
                hint: "ask the organisation's administrators for the reason")
        }
        throw DeviceManagementError(
            .brokerRequired, "the device is enrolled, but only the provider's broker can go on from here",
            hint: "install the broker (com.microsoft.identity.broker1 on the session bus), and sign in again")
    }

    private static func complianceStatus(_ url: SpecialURL) throws(DeviceManagementError) -> WebviewAction {
        // Only this status permits another request for the token.
        guard try url.required("status") == "4" else {
            throw DeviceManagementError(
                .notCompliant, "the provider reports that this device does not comply with its policy",
                hint: "see \"countersign compliance status\"")
        }
        return .complete(url.text)
    }

    /// The same below the redirect URI, for a window in which `msauth:` means nothing: `REDIRECT/msauth/wpj`.
    private static func registration(
        _ text: String, _ rules: SpecialURLRules
    ) throws(DeviceManagementError) -> DeviceManagementError? {
        let base = rules.redirect.appending(segment: "msauth")
        guard let query = base?.appending(segment: "wpj")?.query(of: text) else {
            return base?.appending(segment: "upgradeReg")?.query(of: text).map { _ in strongerRegistration }
        }
        guard let url = try SpecialURL("msauth://wpj?\(query)") else { return nil }
        return try registration(url)
    }

    private static func registration(_ url: SpecialURL) throws(DeviceManagementError) -> DeviceManagementError {
        guard try url.parameter("app_link") == nil else {
            return DeviceManagementError(
                .brokerRequired, "the provider wants its broker on this machine, to sign in through it",
                hint: "install the broker that the organisation names, and sign in again")
        }
        return DeviceManagementError(
            .deviceRegistrationRequired, "the provider wants this device to be registered with it first",
            hint: "register the device with the organisation's tool for Linux, and sign in again")
    }

    private static let strongerRegistration = DeviceManagementError(
        .strongerRegistrationRequired, "the provider wants a stronger registration of this device, such as with a TPM",
        hint: "register the device again with the organisation's tool for Linux, and sign in again")

    // MARK: browser

    private static func browser(
        _ url: SpecialURL, _ rules: SpecialURLRules
    ) throws(DeviceManagementError) -> WebviewAction {
        guard !url.host.isEmpty else { throw DeviceManagementError(.malformed, "the page's browser: URL has no host") }
        let page = url.asWebPage
        if rules.redirect.query(of: page) != nil { return .complete(page) }
        // The same characters and hosts as in any other address.
        let address: EndpointURL
        do {
            address = try EndpointURL(String(page.prefix { $0 != "#" }), "the page's browser: URL")
        } catch {
            throw DeviceManagementError(.malformed, error.detail)
        }
        return .openExternalBrowser(address.description, keepsView: false)
    }

    // MARK: Another browser, and back

    /// `REDIRECT/switch_browser` and `REDIRECT/switch_browser_resume`; nil for any other URL.
    private static func switchBrowser(
        _ text: String, _ rules: SpecialURLRules
    ) throws(DeviceManagementError) -> WebviewAction? {
        for isReturn in [false, true] {
            let segment = isReturn ? "switch_browser_resume" : "switch_browser"
            guard let query = rules.redirect.appending(segment: segment)?.query(of: text) else { continue }
            guard let pairs = FormEncoding.decode(query.utf8), Set(pairs.map(\.name)).count == pairs.count else {
                throw DeviceManagementError(.malformed, "the parameters of the page's switch_browser URL are ambiguous")
            }
            func value(_ name: String) -> String? { pairs.first { $0.name == name && !$0.value.isEmpty }?.value }
            guard let action = value("action_uri"), let code = value("code") else {
                throw DeviceManagementError(
                    .malformed, "the page's switch_browser URL must have an action_uri and a code")
            }
            // The redirect carries a code that any page could have made up, so it must name the sign-in.
            guard value("state").map({ $0 == rules.requestState }) ?? !isReturn else {
                throw DeviceManagementError(
                    .malformed, "the page's \(segment) URL does not have the state of this sign-in")
            }
            let page = try rules.page(action, "action_uri")
            if isReturn {
                return .loadRequest(
                    WebviewRequest(page, headers: [AdditionalHeader("Authorization", "Bearer \(code)")]))
            }
            var parameters = [("code", code), ("redirect_uri", rules.redirect.text)]
            if let state = value("state") { parameters.append(("state", state)) }
            let scheme = String(rules.redirect.text.prefix { $0 != ":" })
            return .openAuthenticationSession(
                AuthenticationSessionRequest(
                    page.adding(parameters), callbackScheme: scheme,
                    isEphemeral: value("browser_modes").map(asksForPrivateSession) ?? false))
        }
        return nil
    }

    /// `browser_modes` is a bit field in base64url; its lowest bit asks for a private session.
    private static func asksForPrivateSession(_ modes: String) -> Bool {
        guard let bits = Base64URL.decode(modes.prefix { $0 != "=" }), let lowest = bits.last else { return false }
        return lowest & 1 != 0
    }
}
