// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignOAuth

/// The rules of the profile and the machine for decisions about special URLs.
package struct SpecialURLRules: Sendable {
    /// The origins on which enrolment pages may be: the issuer's, and those that the profile names.
    package var pageOrigins: [Origin]
    /// Origins that may ask for a second window by response headers, and to which it may go.
    package var handoffOrigins: [Origin]
    /// Added to the requests for enrolment and compliance pages.
    package var headers: [AdditionalHeader] = []
    /// Added to the addresses of enrolment and compliance pages.
    package var parameters: [(name: String, value: String)] = []
    package var redirect: RedirectURI
    /// The `state` of the authorization request.
    package var requestState: String
    /// Whether the machine has a broker that can repeat the sign-in.
    package var hasBroker = false
    /// http to loopback hosts is permitted only for a provider on the developer's own machine.
    package var transport: EndpointURL.Transport

    package init(
        pageOrigins: [Origin], handoffOrigins: [Origin] = [], redirect: RedirectURI, requestState: String,
        transport: EndpointURL.Transport = .secure
    ) {
        self.pageOrigins = pageOrigins
        self.handoffOrigins = handoffOrigins
        self.redirect = redirect
        self.requestState = requestState
        self.transport = transport
    }

    /// A page that a page asks for. `name` is the parameter or header that contains it. Throws `foreignPage` unless it
    /// is https, on one of the profile's hosts.
    func page(_ text: String, _ name: String) throws(DeviceManagementError) -> EndpointURL {
        try page(text, name, on: pageOrigins)
    }

    func page(_ text: String, _ name: String, on origins: [Origin]) throws(DeviceManagementError) -> EndpointURL {
        let url: EndpointURL
        do {
            url = try EndpointURL(String(text.prefix { $0 != "#" }), name, transport)
        } catch {
            throw DeviceManagementError(.foreignPage, "\(error.detail); the page was not opened")
        }
        guard origins.contains(url.origin) else {
            throw DeviceManagementError(
                .foreignPage, "\(name) leads to \(url.origin), which is not one of the profile's hosts",
                hint: "if the organisation uses that host, its profile must name it in the hosts of special_urls")
        }
        return url
    }
}
