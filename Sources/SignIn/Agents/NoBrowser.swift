// SPDX-License-Identifier: Apache-2.0

import CountersignOAuth

/// No browser of this machine: the person opens the printed address in any browser, and pastes the address to which
/// that is sent in the end.
package struct NoBrowser: UserAgent {
    /// Whether somebody can paste an address here.
    private let readsAddress: Bool

    package init(readsAddress: Bool) { self.readsAddress = readsAddress }

    package func notices(_ redirect: RedirectURI) -> Bool { readsAddress }

    package func show(_ page: SignInPage) async throws {}
}
