// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCryptography
import CountersignOAuth

/// The response header fields by which a page asks for a session in a second window: `x-ms-aswebauth-handoff-url` and
/// others with that prefix.
package enum BrowserHandoff: Equatable, Sendable {
    /// The response does not ask for one.
    case none
    /// It asks for one, but its origin may not.
    case ignored(responder: Origin)
    case open(AuthenticationSessionRequest)
    case fail(DeviceManagementError)

    private static let prefix = "x-ms-aswebauth-handoff-"

    /// - Parameter responder: The origin whose response has these `headers`.
    package init(of headers: ResponseHeaders, from responder: Origin, _ rules: SpecialURLRules) {
        guard let text = headers[Self.prefix + "url"] else {
            self = .none
            return
        }
        // Exact origins, in both places: a page of any other host could otherwise obtain the headers' tokens.
        guard rules.handoffOrigins.contains(responder) else {
            self = .ignored(responder: responder)
            return
        }
        do throws(DeviceManagementError) {
            self = .open(try Self.session(text, headers, rules))
        } catch {
            self = .fail(error)
        }
    }

    private static func session(
        _ text: String, _ headers: ResponseHeaders, _ rules: SpecialURLRules
    ) throws(DeviceManagementError) -> AuthenticationSessionRequest {
        let url = try rules.page(text, prefix + "url", on: rules.handoffOrigins)
        let scheme = headers[prefix + "redirect-scheme"] ?? SpecialURL.Scheme.msauth.rawValue
        // The callback is loaded in the view, so it must be one that the view understands.
        guard
            scheme.lowercased() == SpecialURL.Scheme.msauth.rawValue
                || rules.redirect.kind == .customScheme && rules.redirect.text.prefix(while: { $0 != ":" }) == scheme
        else {
            throw DeviceManagementError(
                .malformed,
                "\(prefix)redirect-scheme is \(PrintableText.quote(scheme)), which is not a callback's scheme")
        }
        return AuthenticationSessionRequest(
            url, headers: attached(headers),
            purpose: headers[prefix + "purpose"]?.lowercased() == "download-profile" ? .installProfile : .unknown,
            callbackScheme: scheme.lowercased(),
            isEphemeral: headers[prefix + "use-ephemeral-session"]?.lowercased() != "false")
    }

    /// The fields to send: those that are listed, have the prefix, and are in the same response.
    private static func attached(_ headers: ResponseHeaders) -> [AdditionalHeader] {
        guard headers[prefix + "include-headers"]?.lowercased() == "true",
            let list = headers[prefix + "attach-headers"]
        else { return [] }
        var names: Set<String> = []
        return list.split(separator: ",").compactMap { element in
            let name = element.filter { $0 != " " && $0 != "\t" }.lowercased()
            guard name.hasPrefix(prefix), names.insert(name).inserted, let value = headers[name] else { return nil }
            return AdditionalHeader(name, value)
        }
    }
}
