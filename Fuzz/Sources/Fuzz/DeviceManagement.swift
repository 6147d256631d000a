// SPDX-License-Identifier: Apache-2.0
import CountersignChallenges
import CountersignDeviceManagement
import CountersignOAuth

/// A profile that is accepted has an identifier, and payloads with an identifier each.
@Sendable func configurationProfile(_ input: [UInt8]) {
    do throws(DeviceManagementError) {
        let profile = try ConfigurationProfile(input)
        precondition(!profile.identifier.isEmpty)
        precondition(Set(profile.payloads.map(\.identifier)).count == profile.payloads.count)
    } catch {
        check(error)
    }
}

/// Whatever a page and its headers say, only pages of the profile's hosts are loaded, over https. The input is the URL,
/// then lines with a header's name and value.
@Sendable func specialURL(_ input: [UInt8]) {
    let lines = String(decoding: input, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
    guard let url = lines.first.map(String.init), let home = try? Origin(url: "https://mdm.example"),
        let redirect = try? RedirectURI("com.example.app://auth")
    else { return }
    let rules = SpecialURLRules(
        pageOrigins: [home], handoffOrigins: [home], redirect: redirect, requestState: "S-1")
    var state = InteractiveWebviewState()
    state.responseHeaders = ResponseHeaders(
        lines.dropFirst().map { line in
            let name = line.prefix { $0 != ":" }
            return (name: String(name), value: String(line[name.endIndex...].dropFirst()))
        })
    verify(SpecialURLViewActionResolver.action(for: url, state, rules), home)
    switch BrowserHandoff(of: state.responseHeaders, from: home, rules) {
    case .none, .ignored: break
    case .open(let request): precondition(request.url.origin == home)
    case .fail(let error): check(error)
    }
}

private func verify(_ action: WebviewAction, _ home: Origin) {
    switch action {
    case .loadRequest(let request): precondition(request.url.origin == home)
    case .openAuthenticationSession(let request): precondition(request.url.origin == home)
    case .fail(let error): check(error)
    case .openExternalBrowser(let url, let keepsView): precondition(url.hasPrefix("https://") || keepsView)
    case .noop, .complete, .dismiss: break
    }
}

/// Errors are printed in terminals and logs.
private func check(_ error: DeviceManagementError) {
    precondition(error.detail.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control })
}
