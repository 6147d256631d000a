// SPDX-License-Identifier: Apache-2.0

public import Countersign
import CountersignEnrollment
import CountersignOAuth
import Glibc

/// A user agent without a window, for ``FakeIssuer``: follows the redirects of the authorization page to the redirect
/// URI, as a browser does for a person who has nothing to type.
///
///     let signIn = try await enrollment.signIn(with: .custom(FakeBrowser()))
public struct FakeBrowser: UserAgent {
    /// Creates a browser. It has no state.
    public init() {}

    /// True: redirects to other URIs than `http` on the loopback interface are reported and not followed.
    public func notices(redirectURI: String) -> Bool { true }

    /// Follows at most ten redirects. Throws ``FakeBrowserError`` if the provider shows a page, because there is no
    /// person to see it.
    public func show(_ page: SignInPage) async throws {
        var url = page.url
        var isBack = false
        for _ in 0..<10 {
            let address = try EndpointURL(url, "the page", .secureOrLoopback)
            let exchange = WebExchange(address.origin, target: address.target)
            let response = try await exchange.run(
                .implicit(additional: [], revocationLists: []), now: { Int64(time(nil)) })
            isBack = isBack || url.hasPrefix(page.redirectURI)
            guard let location = response.field("location") else {
                guard isBack else { throw FakeBrowserError("the provider shows a page, status \(response.status)") }
                return
            }
            // The listener redirects to another of its pages, without the response in the address.
            url = location.hasPrefix("/") ? "http://\(address.origin.authority)\(location)" : location
            guard url.hasPrefix("http://"), (try? EndpointURL(url, "the page", .secureOrLoopback)) != nil else {
                guard page.redirected(to: url) else {
                    throw FakeBrowserError("the provider redirects to another machine: \(url)")
                }
                return
            }
        }
        throw FakeBrowserError("the provider redirects again and again")
    }
}

/// Why a ``FakeBrowser`` did not reach the redirect URI.
public struct FakeBrowserError: Error, CustomStringConvertible {
    /// A sentence for display.
    public let description: String

    init(_ description: String) { self.description = description }
}
