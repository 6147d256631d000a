// SPDX-License-Identifier: Apache-2.0
import CountersignAddresses
import CountersignDeviceManagement
import CountersignJSON
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

/// No page or header can load pages outside the profile's hosts, or without https. The input is the URL, then lines
/// with a header's name and value.
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

/// For every reply of a compliance service, texts are fit for a terminal, and pages are on the profile's hosts.
@Sendable func complianceReply(_ input: [UInt8]) {
    guard let service = complianceService else { return }
    do throws(DeviceManagementError) {
        let reply = try ComplianceReply(input, from: service)
        precondition(reply.page.map { service.pageOrigins.contains($0.origin) } ?? true)
        precondition((1...300).contains(reply.interval) && reply.rules.count <= 64)
        for text in [reply.title, reply.message].compactMap({ $0 }) + reply.rules.map(\.title) {
            precondition(!text.isEmpty || !reply.rules.isEmpty)
            precondition(text.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control })
        }
    } catch {
        check(error)
    }
}

private let complianceService: ComplianceService? = {
    let text = #"{"compliance_service": {"url": "https://mdm.example/comply"}}"#
    guard let document = try? JSONParser.parse(Array(text.utf8)),
        var reader = try? JSONReader(document, "the profile", .strict)
    else { return nil }
    return try? ComplianceService(&reader, origins: [], .secure)
}()

/// Errors are printed in terminals and logs.
private func check(_ error: DeviceManagementError) {
    precondition(error.detail.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control })
}
